"""Which delimiter and which decimal mark a text has, and what a cell of it says."""

from __future__ import annotations

import csv
import functools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from geonode.data.readers import text
from geonode_runtime.wording import argument

DEAD_PIXEL = "written as -0, as of a dead pixel"
OVERFLOW = "written as out of range"

_OVERFLOW = (
    r"[<>]\s*[\d.,]+|ov(?:e?r)?f(?:lo?w|lw)?|over[ _-]?(?:flow|range)?|out[ _]of[ _]range|oor|sat(?:urated)?|"
    r"\+{3,}|#{2,}|-{3,}|\*{2,}"
)
_OVERFLOW_CELL = re.compile(_OVERFLOW, re.I)

# Cells before the readings of a row that may name it: well, sample, dilution, date.
MAX_LABELS = 4
# So much of a text tells its dialect: lines, and characters of a line.
_LINES, _LENGTH = 1000, 1000


@dataclass(frozen=True)
class Dialect:
    """How a text separates its cells and writes its numbers.

    Attributes:
        delimiter: tab, semicolon, comma or blank (any run of blanks).
        decimal: point or comma.
        thousands: what groups digits by three, where numbers say so beyond doubt; empty where nothing does.
    """

    delimiter: str
    decimal: str
    thousands: str = ""

    @property
    def words(self) -> str:
        """As a note or an error says it."""
        names = {"\t": "tabs", ";": "semicolons", ",": "commas", " ": "blanks"}
        mark = "decimal comma" if self.decimal == "," else "decimal point"
        groups = {"": "", " ": "blanks", "'": "apostrophes", ".": "points", ",": "commas"}[self.thousands]
        return f"separated by {names[self.delimiter]}, {mark}" + (f", {groups} between thousands" if groups else "")

    def split(self, line: str) -> list[str]:
        """The cells of one line, stripped; quotes are honoured."""
        if self.delimiter == " ":
            return [cell.strip('"') for cell in line.split()]
        if '"' not in line:
            return [cell.strip() for cell in line.split(self.delimiter)]
        try:
            return [cell.strip() for cell in next(csv.reader([line], delimiter=self.delimiter), [])]
        except csv.Error:  # a field beyond csv's limit: no spectrum has one
            return [cell.strip() for cell in line.split(self.delimiter)]

    def number(self, cell: str) -> float | None:
        """A number in this way of writing, or None."""
        if not self.thousands and self.decimal == ".":
            return text.number(cell)
        return float(self.plain(cell)) if _cell_pattern(self).fullmatch(cell) else None

    def plain(self, cell: str) -> str:
        """Text of a number, or of a whole line of them, with a point for its decimal mark and no thousands."""
        if self.thousands:
            for mark in _group_marks(self.thousands):
                cell = cell.replace(mark, "")
        return cell.replace(",", ".") if self.decimal == "," else cell

    def reading(self, cell: str) -> tuple[float, str] | None:
        """(value, "") of a reading, (NaN, reason) of one that says it is unusable, None of any other cell."""
        if cell == "-0":
            return np.nan, DEAD_PIXEL
        value = self.number(cell)
        if value is not None:
            return value, ""
        return (np.nan, OVERFLOW) if _OVERFLOW_CELL.fullmatch(cell) else None

    def unquoted(self, line: str) -> str:
        """The line without the quotes around cells that need none."""
        return _quoted(self.delimiter).sub(r"\1", line) if '"' in line else line

    def shape(self, line: str) -> tuple[int, int]:
        """(labels, cells) of a row: how many cells come before the readings that end it, and how many there are.

        Empty cells at the end do not count, and among the readings they are no labels.
        """
        line = self.unquoted(line).strip(" ").rstrip(self.delimiter + " ")
        if '"' in line:
            cells = self.split(line)
            while cells and not cells[-1]:
                cells.pop()
            return leading_labels(cells, self), len(cells)
        if self.delimiter == " ":
            line = " ".join(line.split())
        width = line.count(self.delimiter) + 1 if line else 0
        start, readings = 0, _row_pattern(self)
        for labels in range(min(MAX_LABELS + 1, width)):
            if readings.fullmatch(line, start):
                return labels, width
            start = line.find(self.delimiter, start) + 1
        return width, width


@functools.cache
def _group_marks(thousands: str) -> tuple[str, ...]:
    """Blanks that do not break, and typographic apostrophes, count as what they look like."""
    return {" ": (" ", "\u00a0", "\u202f", "\u2009"), "'": ("'", "’")}.get(thousands, (thousands,))


def _number(dialect: Dialect) -> str:
    mark = re.escape(dialect.decimal)
    plain = rf"(?:\d+(?:{mark}\d*)?|{mark}\d+)"
    if dialect.thousands:
        group = "[" + re.escape("".join(_group_marks(dialect.thousands))) + "]"
        plain = rf"(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})+(?:{mark}\d*)?|{plain})"
    return rf"[+-]?{plain}(?:[eE][+-]?\d{{1,3}})?"


@functools.cache
def _cell_pattern(dialect: Dialect) -> re.Pattern[str]:
    return re.compile(_number(dialect))


@functools.cache
def _row_pattern(dialect: Dialect) -> re.Pattern[str]:
    """Readings and empty cells alone, to the end of a line."""
    mark = re.escape(dialect.delimiter)
    overflow = _OVERFLOW.replace(r"\d.,", r"\d." if dialect.delimiter == "," else r"\d.,").replace(r"\s*", " *")
    pad = "" if dialect.delimiter == " " else " *"
    cell = rf"(?>{pad}(?:(?>{_number(dialect)}|{overflow}){pad})?)(?={mark}|$)"
    return re.compile(rf"{cell}(?:{mark}{cell})*+", re.I)


@functools.cache
def regular_rows(dialect: Dialect, width: int) -> re.Pattern[str]:
    """Lines that are so many plain numbers each, to be matched many at once."""
    number, mark = rf"(?>{_number(dialect)})", re.escape(dialect.delimiter)
    row = rf"{number}(?:{mark}{number}){{{width - 1}}}"
    return re.compile(rf"{row}(?:\n{row})*+")


@functools.cache
def _quoted(delimiter: str) -> re.Pattern[str]:
    mark = re.escape(delimiter)
    # The quote comes first and what stands before it is looked at then: so it is searched for as a letter is.
    return re.compile(rf'"(?<![^{mark} ]")([^"{mark}]*)"(?![^{mark} ])')


# In order of preference where a line fits several: a comma that may be a decimal mark comes after one that may not.
DIALECTS = tuple(Dialect(d, m) for d, m in ["\t.", "\t,", ";.", ";,", ",.", " .", " ,"])
QUOTED = Dialect(",", ",")
"""``"400,0","0,123"``: only where quotes tell one comma from the other."""
_QUOTED_COMMA = re.compile(r'"[+-]?\d+,\d+(?:[eE][+-]?\d+)?"')
# These read more numbers of a row, or more rows, only where both marks or one mark twice leave no doubt.
GROUPED = tuple(
    Dialect(delimiter, decimal, thousands)
    for delimiter in "\t;, "
    for decimal, thousands in [(".", ","), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'")]
    if (delimiter != "," or decimal == ".") and not delimiter == thousands == " "
)


def detect_dialect(lines: Sequence[str], minimum: int = 2, decimal: str = "") -> Dialect | None:
    """The dialect in which most lines are rows of numbers; None if in none of them.

    A line counts for a dialect if it is at least ``minimum`` readings after at most `MAX_LABELS` other cells. Equal
    counts are settled by the number of readings in a row, then by the order of `DIALECTS`. Where the ``decimal`` mark
    is known, others are not considered, and grouped numbers count even where they might be read otherwise.
    """
    sample: list[str] = []
    for line in lines:
        if line.strip():
            sample.append(line)
            if len(sample) == _LINES:
                break
    if decimal:
        return _with_decimal(sample, minimum, decimal)
    best, score = None, (0, 0)
    heads = [line[:_LENGTH] for line in sample]
    parting = {mark for mark in ",. '" if any(map(_group_pattern(mark).search, heads))}
    grouped = [one for one in GROUPED if one.thousands in parting]
    quoted = [QUOTED] if any(map(_QUOTED_COMMA.search, sample)) else []
    for dialect in (*DIALECTS, *quoted, *grouped):
        mine = _score(sample, dialect, minimum)
        if mine > score and mine[0]:
            best, score = dialect, mine
    return _with_groups_of_blanks(sample, minimum, score[0]) or best if best and best.delimiter == " " else best


def _with_groups_of_blanks(sample: list[str], minimum: int, rows: int) -> Dialect | None:
    """The dialect of tabs in which blanks part thousands, where it reads as many rows as blanks between numbers do.

    ``400<tab>623 415`` is two numbers and not three: whoever parts cells by blanks writes no tabs among them.
    """
    for dialect in GROUPED:
        if dialect.delimiter == "\t" and dialect.thousands == " ":
            lines = [line for line in sample if _group_pattern(" ").search(line)]
            if len(lines) >= rows and _score(lines, dialect, minimum)[0] >= rows:
                return dialect
    return None


def _with_decimal(sample: list[str], minimum: int, decimal: str) -> Dialect | None:
    """The dialect of this decimal mark that most lines fit; thousands are parted where a number shows it."""
    known = [one for one in (*DIALECTS, QUOTED, *GROUPED) if one.decimal == decimal]
    scores = [_score(sample, one, minimum) for one in known]
    best = max(scores, default=(0, 0))
    return known[scores.index(best)] if best[0] else None


@functools.cache
def _group_pattern(thousands: str) -> re.Pattern[str]:
    """Digits grouped by three, somewhere in a line."""
    return re.compile(rf"(?<![\d.,])[1-9]\d{{0,2}}[{re.escape(''.join(_group_marks(thousands)))}]\d{{3}}(?!\d)")


def _score(sample: list[str], dialect: Dialect, minimum: int) -> tuple[int, int]:
    """(rows of the commonest number of readings, that number)."""
    widths: Counter[int] = Counter()
    for line in sample:
        if dialect.delimiter not in line:
            continue
        if len(line) > _LENGTH:  # cut behind a whole cell
            line = line[: line.rfind(dialect.delimiter, 0, _LENGTH) + 1] or line
        labels, width = dialect.shape(line)
        if width - labels >= minimum and labels <= MAX_LABELS:
            widths[width - labels] += 1
    width, rows = max(widths.items(), key=lambda item: item[1], default=(0, 0))
    return rows, width


def leading_labels(cells: Sequence[str], dialect: Dialect) -> int:
    """How many cells come before the readings that end the row; empty cells among those do not count."""
    count = len(cells)
    while count and (not cells[count - 1] or dialect.reading(cells[count - 1]) is not None):
        count -= 1
    return count


def doubtful_number(cells: Sequence[str], mark: str) -> str | None:
    """A number whose mark may part thousands or be decimal, or None where the numbers beside it settle that.

    In doubt is ``1.050`` beside ``950``: three digits after every mark, and whole numbers without one. A leading zero,
    another number of digits, or numbers that all have the mark leave none.
    """
    found, whole = None, False
    for cell in cells:
        if mark not in cell:
            whole = whole or cell.lstrip("+-").isdigit()
        elif re.fullmatch(rf"[+-]?[1-9]\d{{0,2}}{re.escape(mark)}\d{{3}}", cell):
            found = found or cell
        else:
            return None
    return found if whole else None


def two_readings(cell: str, mark: str) -> str:
    """``1050 or 1.05``: what a number in doubt may say."""
    return f"{float(cell.replace(mark, '')):.10g} or {float(cell.replace(mark, '.')):.10g}"


def decimal_either_way() -> str:
    """What settles a number in doubt, as an option or an argument: ``--decimal . or --decimal ,``."""
    return f"{argument('decimal', '.')} or {argument('decimal', ',')}"
