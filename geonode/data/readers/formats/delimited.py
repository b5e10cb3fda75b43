"""Delimited text that no particular reader knows: any delimiter and decimal mark, samples in columns or in rows.

What is assumed is noted: the delimiter and decimal mark, which of two possible axes holds the wavelengths, which column
the concentration, and how many lines around the table were not read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from geonode.data.checks import Floats
from geonode.data.readers import names, table, text
from geonode.data.readers.base import READERS, Particularity, Reader
from geonode.data.readers.concentrations import split_unit
from geonode.data.readers.formats import tidy
from geonode.data.readers.recording import Recording, Trace

_FEWEST_ROWS = 3


@dataclass
class _Table:
    """Rows of cells of the table and of the lines above it, numbered from 1."""

    dialect: table.Dialect
    above: list[tuple[int, list[str]]]
    body: list[tuple[int, list[str]]]
    width: int


@READERS.register("delimited")
class DelimitedReader(Reader):
    """Any other table of numbers."""

    format = "delimited text"
    summary = "delimited text of any locale (samples in columns or rows)"
    particularity = Particularity.SHAPE

    def sniff(self, head: bytes) -> bool:
        """Three rows of numbers, in any dialect."""
        content = text.decode_head(head)
        lines = content.split("\n")[:2000]
        dialect = table.detect_dialect(lines)
        return dialect is not None and sum(_is_data(dialect.split(line), dialect) for line in lines) >= _FEWEST_ROWS - 1

    def read(self, path: Path) -> Recording:
        """Read a table of spectra.

        Raises:
            ReaderError: no table, no axis of wavelengths, a row of the wrong length, a cell that is no number.
        """
        recording = self.recording(path, signal="signal")
        content = text.read_text(path)
        table.count_cells(content, recording)
        found = _find_table(content.split("\n"), recording)
        recording.notes.append(f"read as {found.dialect.words}")
        header = _header(found)
        columns = _wavelengths_in_rows(found, header)
        if columns is not None:
            _read_samples_in_rows(found, columns, header, recording)
        else:
            _read_samples_in_columns(found, header, recording)
        return recording


def _is_data(cells: list[str], dialect: table.Dialect) -> bool:
    cells = _strip(cells)
    labels = table.leading_labels(cells, dialect)
    return len(cells) - labels >= 2 and labels <= table.MAX_LABELS


def _strip(cells: list[str]) -> list[str]:
    """Without the empty cells that end a row."""
    end = len(cells)
    while end and not cells[end - 1]:
        end -= 1
    return cells[:end]


def _find_table(lines: list[str], recording: Recording) -> _Table:
    """From the first row of the commonest shape to the last; whatever is between them must be readings too."""
    dialect = table.detect_dialect(lines)
    if dialect is None:
        raise recording.fail("no rows of numbers; export the spectra as a table, with one wavelength a row.")
    numbered = ((i, _strip(dialect.split(line))) for i, line in enumerate(lines, start=1))
    rows = [(i, cells) for i, cells in numbered if any(cells)]
    shapes = [
        (table.leading_labels(cells, dialect), len(cells)) if _is_data(cells, dialect) else None for _, cells in rows
    ]
    common = Counter(labels for shape in shapes if shape for labels, _ in [shape]).most_common(1)
    if not common:
        raise recording.fail("no rows of numbers; export the spectra as a table, with one wavelength a row.")
    labels = common[0][0]
    mine = [k for k, shape in enumerate(shapes) if shape and shape[0] == labels and rows[k][1][0]]
    if len(mine) < 2:
        raise recording.fail("no table of at least two rows of numbers; export the spectra as a table.")
    width = Counter(len(rows[k][1]) for k in mine).most_common(1)[0][0]
    first, last = mine[0], mine[-1]
    if labels and _axis([dialect.number(cell) for cell in rows[first][1][labels:]]) is not None:
        first += 1  # names before numbers in every row: the wavelengths head them
    below = len(rows) - last - 1
    if below:
        recording.notes.append(
            f"{below} line{'s' if below > 1 else ''} below the table not read, from line {rows[last + 1][0]} on"
        )
    return _Table(dialect, rows[:first], rows[first : last + 1], width)


def _header(found: _Table) -> list[str] | None:
    """The row above the table if it has a cell for each column, or for each but the first."""
    if not found.above:
        return None
    cells = found.above[-1][1]
    if len(cells) == found.width:
        return cells
    return ["", *cells] if len(cells) == found.width - 1 and len(cells) > 1 else None


# --- samples in rows --------------------------------------------------------------------------------------------------


def _wavelengths_in_rows(found: _Table, header: list[str] | None) -> int | None:
    """The column at which a row of wavelengths above the samples begins, or None if they run down the first column."""
    if header is None:
        return None
    first = table.leading_labels(header, found.dialect)
    while first < len(header) and not header[first]:
        first += 1
    axis = _axis([found.dialect.number(cell) for cell in header[first:]])
    if axis is None or first == 0:
        return None
    down = _axis([found.dialect.number(cells[0]) for _, cells in found.body])
    if down is None:
        return first
    if table.wavelength_unit(header[0]) or _plausible(down) > _plausible(axis):
        return None
    # Both may be: the one that looks like nanometres or wavenumbers, then the longer.
    return first if (_plausible(axis), len(axis)) > (_plausible(down), len(down)) else None


def _axis(values: list[float | None]) -> Floats | None:
    """Values as an axis of wavelengths: three at least, positive, strictly rising or falling (some may be repeated)."""
    if len(values) < 3 or any(value is None for value in values):
        return None
    axis = np.array(values, dtype=np.float64)
    if not np.isfinite(axis).all() or axis.min() <= 0:
        return None
    steps = np.diff(axis)
    return axis if (steps >= 0).all() or (steps <= 0).all() else None


def _plausible(axis: Floats) -> bool:
    """In the range where spectra are measured, in nm or cm⁻¹."""
    return bool(axis.min() >= 100 and axis.max() <= 50_000)


def _read_samples_in_rows(found: _Table, first: int, header: list[str] | None, recording: Recording) -> None:
    assert header is not None  # the wavelengths stand in it
    labels = header[:first]
    wavelengths = np.array([found.dialect.number(cell) for cell in header[first:]], dtype=np.float64)
    columns = table.read_columns(found.body, range(first, len(header)), found.dialect, recording, len(header))
    recording.mask_reasons = columns.reasons
    recording.notes.append(f"samples in rows, wavelengths in row {found.above[-1][0]}")
    _note_above(found, 1, recording)
    concentration = _concentration_column(found, labels, recording)
    for k, (line, cells) in enumerate(found.body):
        masked = columns.masked[k]
        own = [cell for i, cell in enumerate(cells[:first]) if cell and i != concentration]
        value = None if concentration is None else found.dialect.number(cells[concentration])
        recording.traces.append(
            Trace(
                " ".join(own) or cells[0] or f"row {line}",
                wavelengths,
                columns.values[k],
                f"row {line}",
                concentration=None if value is None else (value,),
                masked=masked,
                attributes={label: cell for label, cell in zip(labels, cells, strict=False) if label},
                keys=tuple(cell for cell in cells[:first] if cell),
            )
        )
    if concentration is None:
        names.set_concentrations_from_names(recording, "the names of the samples")


def _concentration_column(found: _Table, labels: list[str], recording: Recording) -> int | None:
    """The label column that is the concentration: called so, or the only one if it holds numbers."""
    numeric = [
        k for k in range(len(labels)) if all(found.dialect.number(cells[k]) is not None for _, cells in found.body)
    ]
    called = [k for k in numeric if "conc" in labels[k].lower() or split_unit(labels[k])[1]]
    if len(called) == 1 or numeric == [0] == list(range(len(labels))):
        column = called[0] if called else 0
        recording.concentrations_from = f"column {column + 1}" + (f" '{labels[column]}'" if labels[column] else "")
        recording.concentration_unit = split_unit(labels[column])[1]
        recording.notes.append(f"{recording.concentrations_from} taken as the concentration")
        return column
    return None


# --- samples in columns -----------------------------------------------------------------------------------------------


def _read_samples_in_columns(found: _Table, header: list[str] | None, recording: Recording) -> None:
    if _axis([found.dialect.number(cells[0]) for _, cells in found.body]) is None:
        line, cell = next(
            ((i, cells[0]) for i, cells in found.body if found.dialect.number(cells[0]) is None), (found.body[0][0], "")
        )
        what = f"'{text.shorten(cell)}', which is no number" if cell else "not in order with the rows below it"
        raise recording.fail(
            f"no axis of wavelengths: the first column of row {line} is {what}, and no row of wavelengths stands above "
            "the table; have the wavelengths in the first column."
        )
    title_row = found.above[-2][1] if header is not None and len(found.above) > 1 else None
    if header is not None:
        recording.wavelength_unit = table.wavelength_unit(header[0]) or "nm"
        signal = next((s for cell in header[1:] if (s := table.signal_of(cell))), None)
        recording.signal, recording.signal_unit = signal or ("signal", "")
    if header is None or table.wavelength_unit(header[0]) is None:
        recording.notes.append("first column taken as wavelengths in nm")
    if _has_pairs(found, header):
        _note_above(found, 2 if title_row else 1, recording)
        _read_pairs(found, header, title_row, recording)
        return
    _note_above(found, 0 if header is None else 1, recording)
    columns = table.read_columns(found.body, range(found.width), found.dialect, recording, found.width)
    recording.mask_reasons = columns.reasons
    for k in range(1, found.width):
        own = header[k] if header is not None else ""
        alone = found.width == 2
        masked = columns.masked[:, k]
        recording.traces.append(
            Trace(
                recording.path.stem if alone and (not own or table.signal_of(own)) else own or f"column {k + 1}",
                columns.values[:, 0],
                columns.values[:, k],
                f"column {k + 1}",
                masked=masked,
                keys=(recording.path.name, recording.path.stem) if alone else tuple(filter(None, [own, str(k)])),
            )
        )
    _set_concentrations(found, header, recording)


def _set_concentrations(found: _Table, header: list[str] | None, recording: Recording) -> None:
    """From headers that are all numbers, as in a tidy CSV; else from names that hold a number with its unit."""
    if header is not None:
        point = [cell.replace(",", ".") if found.dialect.decimal == "," else cell for cell in header[1:]]
        parsed = [tidy.parse_header(cell) for cell in point]
        if len(parsed) > 1 and all(parsed):
            for trace, one in zip(recording.traces, parsed, strict=True):
                assert one is not None  # by the line above
                trace.concentration = (one[0],)
            recording.concentrations_from = "the column headers"
            recording.notes.append("column headers taken as the concentrations")
            return
    names.set_concentrations_from_names(recording, "the column headers")


def _has_pairs(found: _Table, header: list[str] | None) -> bool:
    """X,Y pairs side by side: by the header, or because every second column is an axis over the same range."""
    if found.width < 4 or found.width % 2:
        return False
    if header is not None and all(table.wavelength_unit(cell) for cell in header[::2]):
        return True
    first = None
    for k in range(0, found.width, 2):
        cells = [cells[k] for _, cells in found.body if k < len(cells) and cells[k]]
        axis = _axis([found.dialect.number(cell) for cell in cells])
        if axis is None or len(np.unique(axis)) < 0.9 * len(axis):
            return False
        if first is None:
            first = axis
        elif abs(axis.min() - first.min()) + abs(axis.max() - first.max()) > 0.2 * np.ptp(first):
            return False
    return True


def _read_pairs(found: _Table, header: list[str] | None, titles: list[str] | None, recording: Recording) -> None:
    recording.notes.append("every two columns taken as the wavelengths and values of one spectrum")
    for k in range(0, found.width, 2):
        rows = [(i, [*cells, "", ""]) for i, cells in found.body if any(cells[k : k + 2])]
        if len(rows) < 2:
            raise recording.fail(f"columns {k + 1} and {k + 2} have fewer than two pairs; complete or remove them.")
        columns = table.read_columns(rows, (k, k + 1), found.dialect, recording)
        recording.mask_reasons += columns.reasons
        title = next((row[k] for row in (titles, header) if row and k < len(row) and _is_title(row[k])), "")
        own = title or (header[k + 1] if header is not None and not table.signal_of(header[k + 1]) else "")
        masked = columns.masked[:, 1]
        recording.traces.append(
            Trace(
                own or f"column {k + 2}",
                columns.values[:, 0],
                columns.values[:, 1],
                f"columns {k + 1} and {k + 2}",
                masked=masked,
                keys=tuple(filter(None, [own, str(k // 2 + 1)])),
            )
        )
    names.set_concentrations_from_names(recording, "the titles of the columns")


def _is_title(cell: str) -> bool:
    return bool(cell) and table.wavelength_unit(cell) is None


def _note_above(found: _Table, used: int, recording: Recording) -> None:
    unread = len(found.above) - used
    if unread > 0:
        recording.notes.append(f"{unread} line{'s' if unread > 1 else ''} above the table not read")
