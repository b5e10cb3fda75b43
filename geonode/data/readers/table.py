"""Delimited text of any locale: which delimiter, which decimal mark, and columns of numbers out of rows of cells."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from geonode.data.checks import Floats
from geonode.data.readers import text
from geonode.data.readers.recording import Recording

# A table of more cells is no set of standards; it bounds the memory that a file of text can ask for.
MAX_CELLS = 3_000_000

DEAD_PIXEL = "written as -0, as of a dead pixel"
OVERFLOW = "written as out of range"

_OVERFLOW = re.compile(r"[<>]\s*[\d.,]+|ov(e?r)?f(lo?w|lw)?|over(flow|range)?|sat(urated)?|#{2,}|-{3,}|\*{2,}", re.I)
# Number with a comma as its decimal mark, so that plain integers fit both marks.
_COMMA = re.compile(r"[+-]?(?:\d+(?:,\d*)?|,\d+)(?:[eE][+-]?\d{1,3})?")


@dataclass(frozen=True)
class Dialect:
    """``delimiter``: tab, semicolon, comma or blank (any run of blanks); ``decimal``: point or comma."""

    delimiter: str
    decimal: str

    @property
    def words(self) -> str:
        """As a note or an error says it."""
        names = {"\t": "tabs", ";": "semicolons", ",": "commas", " ": "blanks"}
        mark = "decimal comma" if self.decimal == "," else "decimal point"
        return f"separated by {names[self.delimiter]}, {mark}"

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
        """A number with this decimal mark, or None."""
        if self.decimal == ".":
            return text.number(cell)
        return float(cell.replace(",", ".")) if _COMMA.fullmatch(cell) else None

    def reading(self, cell: str) -> tuple[float, str] | None:
        """(value, "") of a reading, (NaN, reason) of one that says it is unusable, None of any other cell."""
        if cell == "-0":
            return np.nan, DEAD_PIXEL
        value = self.number(cell)
        if value is not None:
            return value, ""
        return (np.nan, OVERFLOW) if _OVERFLOW.fullmatch(cell) else None


# In order of preference where a line fits several: a comma that may be a decimal mark comes after one that may not.
DIALECTS = tuple(Dialect(d, m) for d, m in ["\t.", "\t,", ";.", ";,", ",.", " .", " ,"])


# Cells before the readings of a row that may name it: well, sample, dilution, date.
MAX_LABELS = 4


def detect_dialect(lines: Sequence[str], minimum: int = 2) -> Dialect | None:
    """The dialect in which most lines are rows of numbers; None if in none of them.

    A line counts for a dialect if it is at least ``minimum`` readings after at most `MAX_LABELS` other cells. Equal
    counts are settled by the number of readings in a row, then by the order of `DIALECTS`.
    """
    sample = [line for line in lines if line.strip()][:1000]
    best, score = None, (0, 0)
    for dialect in DIALECTS:
        widths: Counter[int] = Counter()
        for line in sample:
            if dialect.delimiter in line:
                cells = dialect.split(line[:20_000].strip(" "))
                while cells and not cells[-1]:
                    cells.pop()
                readings = leading_labels(cells, dialect)
                if len(cells) - readings >= minimum and readings <= MAX_LABELS:
                    widths[len(cells) - readings] += 1
        width, rows = max(widths.items(), key=lambda item: item[1], default=(0, 0))
        if (rows, width) > score and rows:
            best, score = dialect, (rows, width)
    return best


def leading_labels(cells: Sequence[str], dialect: Dialect) -> int:
    """How many cells come before the readings that end the row; empty cells among those do not count."""
    count = len(cells)
    while count and (not cells[count - 1] or dialect.reading(cells[count - 1]) is not None):
        count -= 1
    return count


@dataclass
class Columns:
    """Columns of readings.

    Attributes:
        values: ``[rows, columns]``, NaN where masked. masked: True where the cell says that it is unusable.
        reasons: how many were masked, by reason.
    """

    values: Floats
    masked: np.ndarray
    reasons: Counter[str] = field(default_factory=Counter)


def read_columns(
    rows: Iterable[tuple[int, list[str]]],
    columns: Sequence[int],
    dialect: Dialect,
    recording: Recording,
    width: int | None = None,
) -> Columns:
    """The cells of ``columns`` in numbered rows, as readings.

    Raises:
        ReaderError: a cell that is neither a number nor a word for out of range, or, where the ``width`` of the header
            is given, a row that goes beyond it.
    """
    values, masked, reasons = [], [], Counter()
    for line, row in rows:
        if width is not None and any(row[width:]):
            raise recording.fail(f"row {line} has {len(row)} cells and the header {width}; repair that row.")
        mine, bad = [], []
        for column in columns:
            cell = row[column] if column < len(row) else ""
            reading = dialect.reading(cell)
            if reading is None:
                what = f"'{text.shorten(cell)}', which is no number" if cell else "empty"
                raise recording.fail(f"row {line}, column {column + 1} is {what}; repair that cell.")
            mine.append(reading[0])
            bad.append(bool(reading[1]))
            if reading[1]:
                reasons[reading[1]] += 1
        values.append(mine)
        masked.append(bad)
    if len(values) * max(len(columns), 1) > MAX_CELLS:
        raise recording.fail(f"more than {MAX_CELLS} values, which no set of standards has; split the file.")
    shape = (len(values), len(columns))
    return Columns(
        np.array(values, dtype=np.float64).reshape(shape), np.array(masked, dtype=bool).reshape(shape), reasons
    )


def count_cells(content: str, recording: Recording) -> None:
    """Refuse text whose cells would not fit in memory before they are made."""
    cells = sum(content.count(mark) for mark in "\t;, ") + content.count("\n")
    if cells > 4 * MAX_CELLS:
        raise recording.fail(f"about {cells} cells, which no set of standards has; split the file.")


_UNIT = re.compile(r"[\[(]\s*([^\])]*?)\s*[\])]\s*$|[ _/](nm|cm-1|um|µm|1/cm)\.?\s*$", re.I)
_WAVELENGTH = re.compile(r"\bwave ?length|^\s*(nm|λ|lambda|wl)\b|\bnm\b", re.I)
_WAVENUMBER = re.compile(r"\bwave ?number|cm-1|1/cm|cm\^-1|cm⁻¹", re.I)


def wavelength_unit(header: str) -> str | None:
    """``nm``, ``µm`` or ``cm-1`` of a header of the wavelength axis; None if the header is none."""
    if _WAVENUMBER.search(header):
        return "cm-1"
    if re.search(r"[µμu]m\b", header) and not re.search(r"n(m|ano)", header, re.I):
        return "µm"
    return "nm" if _WAVELENGTH.search(header) else None


_SIGNALS = (
    (re.compile(r"(?<![a-z])(abs|absorbance|absorption|extinction|od)(?![a-z])", re.I), "absorbance", ""),
    (re.compile(r"^A$"), "absorbance", ""),
    (re.compile(r"%\s?T|T\s?%|transmi(ttance|ssion)", re.I), "transmittance", ""),
    (re.compile(r"%\s?R|R\s?%|reflect(ance|ivity)", re.I), "reflectance", ""),
    (re.compile(r"fluorescence|emission|excitation|\brfu\b", re.I), "fluorescence", ""),
    (re.compile(r"counts?|intensity", re.I), "intensity", ""),
)


def signal_of(header: str) -> tuple[str, str] | None:
    """(signal, unit) that a header names, such as ``Abs`` or ``%T``; None if it names none."""
    for pattern, signal, unit in _SIGNALS:
        if pattern.search(header):
            return signal, "%" if "%" in header and signal in ("transmittance", "reflectance") else unit
    return None
