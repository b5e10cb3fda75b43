"""Columns of numbers out of lines of text, a block of lines at a time.

A block is read by numpy's parser, which knows nothing of words for out of range and says little about errors; only
where that fails is the block taken apart cell by cell. Both give the same numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from geonode.data.checks import Floats
from geonode.data.readers import text
from geonode.data.readers.decimal_commas import comma_within, told
from geonode.data.readers.dialect import DEAD_PIXEL, Dialect, decimal_either_way, two_readings
from geonode.data.readers.recording import Recording

# A table of more cells is no set of standards; it bounds the memory that a file of text can ask for.
MAX_CELLS = 6_000_000

_MARKED = re.compile(r"[+-]?\d+(?:[.,]\d+)+")
"""Digits with marks between them: a number in another way of writing than the rest of its table."""
_BLOCK = 2**20
"""Characters of one block, about."""
_CLOSER = 64
"""Lines of the pieces in which a block that numpy cannot parse is tried again: an odd cell costs no more than these."""


@dataclass
class Lines:
    """Some lines of a text, with the numbers that they have in it (from 1).

    Attributes:
        texts: the lines. numbers: as many line numbers.
    """

    texts: Sequence[str]
    numbers: Sequence[int]

    @classmethod
    def of(cls, texts: Sequence[str], start: int, end: int | None = None, blank: str = " ,;\t") -> Lines:
        """Those of ``texts[start:end]`` that are not made of ``blank`` characters alone."""
        end = len(texts) if end is None else end
        if all(texts[i].strip(blank) for i in range(start, end)):
            return cls(texts[start:end], range(start + 1, end + 1))
        kept = [i for i in range(start, end) if texts[i].strip(blank)]
        return cls([texts[i] for i in kept], np.array(kept, dtype=np.int64) + 1)  # pyright: ignore[reportArgumentType]

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, where: slice) -> Lines:
        return Lines(self.texts[where], self.numbers[where])

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return ((int(n), line) for n, line in zip(self.numbers, self.texts, strict=True))


@dataclass
class Columns:
    """Columns of readings.

    Attributes:
        values: ``[rows, columns]``, NaN where masked or empty. masked: True where the cell says that it is unusable.
        empty: True where a cell is empty, if such are allowed; else None.
        reasons: how many were masked, by reason.
    """

    values: Floats
    masked: np.ndarray
    empty: np.ndarray | None = None
    reasons: Counter[str] = field(default_factory=Counter)


def read_columns(
    rows: Lines,
    columns: Sequence[int],
    dialect: Dialect,
    recording: Recording,
    width: int | None = None,
    *,
    header: Sequence[str] | None = None,
    exact: bool = False,
    allow_empty: bool = False,
    dead_pixels: bool = True,
) -> Columns:
    """The cells of ``columns`` in numbered lines, as readings.

    Args:
        rows: the lines.
        columns: which cells, from 0.
        dialect: how they are written.
        recording: what errors name.
        width: cells of the header; a row that goes beyond it is refused.
        header: names of the columns, for messages.
        exact: a row of fewer cells than ``width`` is refused as a row, not for its first missing cell.
        allow_empty: an empty cell is no error.
        dead_pixels: ``-0`` is a dead pixel, as instruments write it, and not the zero that a program computed.

    Raises:
        ReaderError: a cell that is neither a number nor a word for out of range, a number in doubt (`1.050` beside
            `950`), a row of the wrong length, more than `MAX_CELLS` cells.
    """
    shape = (len(rows), len(columns))
    if shape[0] * max(shape[1], 1) > MAX_CELLS:
        raise recording.fail(f"more than {MAX_CELLS} values, which no set of standards has; split the file.")
    found = Columns(np.empty(shape), np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool) if allow_empty else None)
    if not len(rows):
        return found
    job = _Job(columns, dialect, recording, width, header or (), exact, dead_pixels, found)
    step = max(1, min(_BLOCK // (len(rows.texts[0]) + 1), 2**14))
    for start in range(0, len(rows), step):
        job.read(rows[start : start + step], start)
    _require_no_doubt(rows, columns, dialect, recording)
    return found


@dataclass
class _Job:
    """What reading a block of lines needs to know."""

    columns: Sequence[int]
    dialect: Dialect
    recording: Recording
    width: int | None
    header: Sequence[str]
    exact: bool
    dead_pixels: bool
    found: Columns

    def read(self, block: Lines, start: int) -> None:
        values = self._at_once(block)
        if values is None and len(block) > _CLOSER:
            for first in range(0, len(block), _CLOSER):
                self.read(block[first : first + _CLOSER], start + first)
        elif values is None:
            self._cell_by_cell(block, start)
        else:
            self.found.values[start : start + len(block)] = values
            if self.found.empty is not None:
                self.found.empty[start : start + len(block)] = np.isnan(values)

    def _at_once(self, block: Lines) -> Floats | None:
        """All values of a block by numpy's parser; None where a cell needs a closer look."""
        mark, lines = self.dialect.delimiter, block.texts
        decimal = self.dialect.decimal
        if self.dialect.thousands or mark == decimal or (decimal == "," and any("." in line for line in lines)):
            return None
        if any('"' in line for line in lines):
            lines = [self.dialect.unquoted(line) for line in lines]
        if self.width is not None and mark != " " and max(line.count(mark) for line in lines) >= self.width:
            return None
        if self.found.empty is not None:
            if any("n" in line or "N" in line for line in lines):
                return None
            most = max(self.columns) if self.columns else 0
            gap = re.compile(rf"(?<={re.escape(mark)}) *(?={re.escape(mark)}|$)|^ *(?={re.escape(mark)})")
            lines = [gap.sub("nan", line + mark * max(0, most - line.count(mark))) for line in lines]
        if self.dialect.decimal == ",":
            lines = [line.replace(",", ".") for line in lines]
        whole = list(self.columns) == list(range(lines[0].count(mark) + 1)) and mark != " "
        try:
            values = np.loadtxt(
                lines,
                delimiter=None if mark == " " else mark,
                usecols=None if whole else self.columns,
                comments=None,
                ndmin=2,
            )
        except (ValueError, OverflowError):
            return None
        if values.shape != (len(block), len(self.columns)):
            return None
        odd = ~np.isfinite(values) if self.found.empty is None else np.isinf(values)
        dead = self.dead_pixels and (np.signbit(values) & (values == 0)).any()
        return None if dead or odd.any() else values

    def _cell_by_cell(self, block: Lines, start: int) -> None:
        number = self.dialect.number
        for k, (line, content) in enumerate(block, start=start):
            row = self.dialect.split(content)
            if self.width is not None:
                self._require_width(row, line)
            values: list[float] = []
            for j, column in enumerate(self.columns):
                cell = row[column] if column < len(row) else ""
                value = number(cell) if cell != "-0" else None
                values.append(self._odd(cell, k, j, line, column) if value is None else value)
            self.found.values[k] = values  # a row at once: cell by cell takes numpy as long as all the rest

    def _odd(self, cell: str, k: int, j: int, line: int, column: int) -> float:
        """What stands for a cell that is no plain number."""
        reading = self.dialect.reading(cell)
        if reading is not None and reading[1] == DEAD_PIXEL and not self.dead_pixels:
            return 0.0
        if reading is None:
            if not cell and self.found.empty is not None:
                self.found.empty[k, j] = True
                return np.nan
            raise self._wrong(cell, line, column)
        if reading[1]:
            self.found.masked[k, j] = True
            self.found.reasons[reading[1]] += 1
        return reading[0]

    def _require_width(self, row: list[str], line: int) -> None:
        assert self.width is not None
        short = self.exact and len(row) < self.width
        if any(row[self.width :]) or short:
            at = None if short or self.dialect.delimiter != "," else comma_within(row, len(row) - self.width)
            if at is not None:
                raise self.recording.fail(told(row, line, self.width, at))
            what = "complete or remove" if short else "repair"
            raise self.recording.fail(f"row {line} has {len(row)} cells and the header {self.width}; {what} that row.")

    def _wrong(self, cell: str, line: int, column: int):
        what = f"'{text.shorten(cell)}', which is no number" if cell else "empty"
        named = f" ('{text.shorten(self.header[column])}')" if column < len(self.header) else ""
        remedy = "repair that cell" if cell else "repair that cell, or remove the column where it has no values"
        if cell.endswith("%"):
            remedy = "write all values of the spectra as percentages, without the sign, or none"
        if _MARKED.fullmatch(cell) and not self.recording.decimal:
            remedy = f"say which mark is decimal ({decimal_either_way()}), or write it like the other numbers"
        return self.recording.fail(f"row {line}, column {column + 1}{named} is {what}; {remedy}.")


def _require_no_doubt(rows: Lines, columns: Sequence[int], dialect: Dialect, recording: Recording) -> None:
    """Refuse ``1.050`` beside ``950``, unless another number of the table shows what the mark means.

    A comma is in doubt beside whole numbers of the axis too: counts may all be above a thousand. A point is not, since
    it is what most programs write.
    """
    if dialect.thousands or recording.numbers_are_typed or recording.decimal:
        return
    mark = re.escape(dialect.decimal)
    settled = re.compile(
        rf"(?<!\d)0*{mark}\d|{mark}\d{{0,2}}(?!\d)|{mark}\d{{4}}|\d{{4}}{mark}|{mark}\d{{3}}[eE{mark}]"
    )
    doubtful = re.compile(rf"(?<![\d{'.' if dialect.delimiter == ',' else '.,'}])[1-9]\d{{0,2}}{mark}\d{{3}}(?!\d)")
    quoted = dialect.delimiter == dialect.decimal
    first: tuple[int, str, str] | None = None
    for number, line in rows:
        if dialect.decimal in line:
            cells = " ".join(_QUOTED_NUMBER.findall(line)) if quoted else line
            if settled.search(cells):
                return
            if first is None and (match := doubtful.search(cells)):
                first = number, line, match.group()
    if first is None:
        return
    number, line, cell = first
    values = set(columns[1:]) or set(columns)
    if dialect.decimal == ",":
        values |= {0}
    if not any(_has_whole(dialect.split(one), values) for one in rows.texts):
        return
    column = next((k for k, one in enumerate(dialect.split(line)) if one.lstrip("+-") == cell), 0)
    raise recording.fail(
        f"row {number}, column {column + 1} is '{cell}', which is {two_readings(cell, dialect.decimal)}: three digits "
        f"follow every such mark, and other numbers have none; say which it is ({decimal_either_way()}), or export "
        "it without separators between thousands."
    )


_QUOTED_NUMBER = re.compile(r'"([+-]?[\d.,]+(?:[eE][+-]?\d+)?)"')


def _has_whole(cells: list[str], columns: set[int]) -> bool:
    return any(k in columns and cell.isdigit() and cell != "0" for k, cell in enumerate(cells))


def count_cells(content: str, recording: Recording) -> None:
    """Refuse text whose cells would not fit in memory before they are made."""
    cells = sum(content.count(mark) for mark in "\t;, ") + content.count("\n")
    if cells > 4 * MAX_CELLS:
        raise recording.fail(f"about {cells} cells, which no set of standards has; split the file.")
