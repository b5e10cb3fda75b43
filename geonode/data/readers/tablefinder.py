"""Where in a text the table of numbers stands, and what is written above it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from geonode.data.readers import units
from geonode.data.readers.dialect import MAX_LABELS, Dialect, detect_dialect, regular_rows
from geonode.data.readers.recording import Recording
from geonode.data.readers.table import Lines
from geonode_runtime.wording import argument

FEWEST_ROWS = 3
_NO_ROWS = "no rows of numbers; export the spectra as a table, with one wavelength a row."
_BLOCK = 4096
"""So many lines are looked at as one."""
_LEVEL = re.compile(r"\d+(\.\d+)?\.\d+")
"""A level with the count of a replicate, ``20.0.3``, or with a point where decimals have commas, ``20.3``: no number,
and no word for what stands below a table."""
_AXIS_CELL = re.compile(r"(?:X|wl[ _]?|nm[ _]?|abs[ _]?)?(\d+(?:[.,]\d+)?)[ _]?(nm|cm-1)?", re.I)


@dataclass
class FoundTable:
    """A table of numbers within a text.

    Attributes:
        dialect: how it is written. above: (number, cells) of the lines above that are not blank.
        reach: how many cells each of those has with the empty ones that end it.
        body: its rows. width: cells of most of them. labels: cells before the numbers of a row.
    """

    dialect: Dialect
    above: list[tuple[int, list[str]]]
    body: Lines
    width: int
    labels: int
    reach: list[int] = field(default_factory=list)
    _columns: dict[int, np.ndarray] = field(default_factory=dict)

    def column(self, k: int) -> np.ndarray:
        """The numbers of one column; NaN where a cell is none."""
        if k not in self._columns:
            parts = [self._numbers(k, self.body[i : i + _BLOCK]) for i in range(0, len(self.body), _BLOCK)]
            self._columns[k] = np.concatenate(parts) if parts else np.empty(0)
        return self._columns[k]

    def _numbers(self, k: int, rows: Lines) -> np.ndarray:
        numbers = (self.dialect.number(cell) for cell in self._cells(k, rows))
        return np.fromiter((np.nan if value is None else value for value in numbers), np.float64, len(rows))

    def cells(self, k: int) -> list[str]:
        """The cells of one column."""
        return list(self._cells(k, self.body))

    def _cells(self, k: int, rows: Lines) -> Iterator[str]:
        mark = self.dialect.delimiter
        for line in rows.texts:
            few = '"' not in line and mark != " "
            row = line.split(mark, k + 1)[: k + 1] if few else self.dialect.split(line)
            yield row[k].strip() if k < len(row) else ""


def looks_like_a_table(lines: list[str]) -> bool:
    """Three rows of numbers, the last of which may be cut off."""
    dialect = detect_dialect(lines)
    return dialect is not None and sum(_is_data(dialect.shape(line)) for line in lines) >= FEWEST_ROWS - 1


def _no_rows(recording: Recording) -> str:
    """What to do where no row holds numbers: an asked-for decimal mark may be why."""
    if not recording.decimal:
        return _NO_ROWS
    return f"no rows of numbers whose decimal mark is '{recording.decimal}'; leave {argument('decimal')} out."


def find_table(lines: list[str], recording: Recording) -> FoundTable:
    """From the first row of the commonest shape to the last; whatever is between them must be readings too.

    Raises:
        ReaderError: no two rows of numbers.
    """
    dialect = detect_dialect(lines, decimal=recording.decimal)
    if dialect is None:
        raise recording.fail(_no_rows(recording))
    shapes = _shapes(lines, dialect)
    data = (shapes[:, 1] - shapes[:, 0] >= 2) & (shapes[:, 0] <= MAX_LABELS)
    if not data.any():
        raise recording.fail(_no_rows(recording))
    labels = Counter(shapes[data, 0].tolist()).most_common(1)[0][0]
    begun = np.fromiter((not line.lstrip(" ").startswith(dialect.delimiter) for line in lines), bool, len(lines))
    if not (data & begun).any() and dialect.delimiter != " ":
        return find_table([line.lstrip(" ").removeprefix(dialect.delimiter) for line in lines], recording)
    mine = np.flatnonzero(data & (shapes[:, 0] == labels) & begun)
    if len(mine) < 2:
        raise recording.fail("no table of at least two rows of numbers; export the spectra as a table.")
    width = Counter(shapes[mine, 1].tolist()).most_common(1)[0][0]
    first, last = int(mine[0]), int(mine[-1])
    filled = np.flatnonzero(shapes[:, 1] > 0)
    first, last = _with_odd_rows(lines, filled, (int(mine[0]), int(mine[1])), (first, last), width, labels, dialect)
    if labels and _heads(_split(lines[first], dialect)[labels:], dialect):
        first = int(filled[np.searchsorted(filled, first) + 1])  # names before numbers: the wavelengths head them
    below = filled[filled > last]
    if below.size:
        recording.notes.append(
            f"{below.size} line{'s' if below.size > 1 else ''} below the table not read, from line {below[0] + 1} on"
        )
    over = filled[filled < first].tolist()
    above = [(i + 1, _split(lines[i], dialect)) for i in over]
    reach = [len(dialect.split(lines[i])) for i in over]
    return FoundTable(dialect, above, Lines.of(lines, first, last + 1), width, labels, reach)


def _with_odd_rows(
    lines: list[str],
    filled: np.ndarray,
    beginning: tuple[int, int],
    ends: tuple[int, int],
    width: int,
    labels: int,
    dialect: Dialect,
) -> tuple[int, int]:
    """The ends of a table with rows beside them that an odd cell alone keeps out: they belong to it, and are named for
    that cell. Above it such a row goes on with the axis; a header does not."""
    first, last = ends
    for i in filled[filled > last].tolist():
        cells = _split(lines[i], dialect)
        if len(cells) != width or not _LEVEL.fullmatch(cells[labels]):
            break
        last = i
    if labels or first != beginning[0]:
        return first, last

    def start(i: int) -> float | None:
        cells = _split(lines[i], dialect)
        return dialect.number(cells[0]) if len(cells) == width else None

    for i in filled[filled > last].tolist():
        if start(i) is None:
            break
        last = i
    above = filled[filled < first]
    x = [start(i) for i in (int(above[-1]), *beginning)] if above.size else [None]
    if all(one is not None for one in x):
        before, here, after = (float(one or 0.0) for one in x)
        step = after - here
        if step and 0.5 < (here - before) / step < 2.0:
            first = int(above[-1])
    return first, last


def _heads(cells: list[str], dialect: Dialect) -> bool:
    """Whether the first row of numbers behind a label is no sample, but the wavelengths of the rows below it."""
    axis = axis_of([_axis_number(cell, dialect) for cell in cells])
    return axis is not None and (units.is_plausible(axis) or units.counts(axis))


def _shapes(lines: list[str], dialect: Dialect) -> np.ndarray:
    """(labels, cells) ``[lines, 2]`` of each line; blocks of like rows of numbers are taken as one."""
    found = np.empty((len(lines), 2), dtype=np.int32)
    for start in range(0, len(lines), _BLOCK):
        block = lines[start : start + _BLOCK]
        labels, width = _shape(block[len(block) // 2], dialect)
        if labels == 0 and width > 1 and regular_rows(dialect, width).fullmatch("\n".join(block)):
            found[start : start + len(block)] = 0, width
        else:
            flat = (value for line in block for value in _shape(line, dialect))
            found[start : start + len(block)] = np.fromiter(flat, np.int32, 2 * len(block)).reshape(-1, 2)
    return found


def _shape(line: str, dialect: Dialect) -> tuple[int, int]:
    return dialect.shape(line) if line and not line.isspace() else (0, 0)


def _is_data(shape: tuple[int, int]) -> bool:
    labels, width = shape
    return width - labels >= 2 and labels <= MAX_LABELS


def _split(line: str, dialect: Dialect) -> list[str]:
    """Cells without the empty ones that end a row."""
    cells = dialect.split(line)
    while cells and not cells[-1]:
        cells.pop()
    return cells


def axis_of(values: Sequence[float | None] | np.ndarray) -> np.ndarray | None:
    """Values as an axis: three at least, rising or falling (some may be repeated); None if they are none."""
    if len(values) < 3:
        return None
    axis = np.array(values, dtype=np.float64)  # None becomes NaN
    if not np.isfinite(axis).all() or axis[0] == axis[-1]:
        return None
    steps = np.diff(axis)
    return axis if (steps >= 0).all() or (steps <= 0).all() else None


def wavelengths_in(cells: Sequence[str], dialect: Dialect) -> tuple[np.ndarray | None, str]:
    """(wavelengths that cells of a header hold, or None; the unit that they state): ``400``, ``400 nm``, ``X400``."""
    axis = axis_of([_axis_number(cell, dialect) for cell in cells])
    match = _AXIS_CELL.fullmatch(cells[0]) if cells else None
    return axis, (match.group(2) or "").lower() if match else ""


def _axis_number(cell: str, dialect: Dialect) -> float | None:
    value = dialect.number(cell)
    if value is not None:
        return value
    match = _AXIS_CELL.fullmatch(cell)
    return float(match.group(1).replace(",", ".")) if match else None
