"""A table of numbers to spectra: samples in rows, in columns, or in pairs of columns; which column is the axis.

What is assumed is noted: how the text is written, which of two possible axes holds the wavelengths, which column the
concentration, which columns were left out, and how many lines around the table were not read.
"""

from __future__ import annotations

import re

import numpy as np

from geonode.data.readers import names, table, units
from geonode.data.readers.axis import axis_unit, in_nanometres
from geonode.data.readers.concentration_table import SPREAD, split_unit
from geonode.data.readers.decimal_commas import refuse_commas
from geonode.data.readers.dilutions import untold_dilution
from geonode.data.readers.recording import Recording, Trace
from geonode.data.readers.tablefinder import FEWEST_ROWS, FoundTable, axis_of, find_table, header_of, wavelengths_in
from geonode.data.readers.text import shorten
from geonode.data.readers.transposed import refuse_transposed
from geonode.data.readers.unused_columns import unused_columns
from geonode.data.readers.which_spectrum import numbers_say_which

_RAW = re.compile(r"\b(dark|ref(erence)?|background|raw|baseline|scope)\b", re.I)


def read_spectra(lines: list[str], recording: Recording) -> Recording:
    """Fill a recording with the spectra of the table that stands in the lines.

    Raises:
        ReaderError: no table, no axis of wavelengths, a row of the wrong length, a cell that is no number.
    """
    found = find_table(lines, recording)
    recording.notes.append(f"read as {found.dialect.words}")
    header, titles, used = header_of(found)
    refuse_commas(found, recording)
    if header is not None and _is_plate(found, header):
        raise recording.fail(
            f"a plate of {len(found.body)} × {found.width - found.labels} wells with one reading each, and no "
            "spectrum; export the spectral scan."
        )
    first = _wavelengths_in_rows(found, header)
    if first is not None:
        assert header is not None  # the wavelengths stand in it
        _note_above(found, 1, recording)
        _read_rows(found, first, header, recording)
    elif _has_pairs(found, header):
        titles = found.above[-2][1] if header is not None and len(found.above) > 1 else None
        _note_above(found, 2 if titles else 1, recording)
        _read_pairs(found, header, titles, recording)
    else:
        _note_above(found, used, recording)
        _read_columns(found, header, titles, recording)
    return recording


def _is_plate(found: FoundTable, header: list[str]) -> bool:
    """Rows A, B, C, … under columns 1, 2, 3, …: wells, each with one number."""
    numbers = [cell for cell in header[1:] if cell]
    if numbers[:2] != ["1", "2"] or numbers != [str(k + 1) for k in range(len(numbers))]:
        return False
    letters = [cell.upper() for cell in found.cells(0)]
    return found.labels == 1 and letters == [chr(65 + k) for k in range(len(letters))] and len(letters) <= 16


def _note_above(found: FoundTable, used: int, recording: Recording) -> None:
    unread = len(found.above) - used
    if unread > 0:
        recording.notes.append(f"{unread} line{'s' if unread > 1 else ''} above the table not read")


# --- samples in rows --------------------------------------------------------------------------------------------------


def _wavelengths_in_rows(found: FoundTable, header: list[str] | None) -> int | None:
    """The column at which a row of wavelengths above the samples begins, or None if they run down a column."""
    if header is None:
        return None
    first = next((k for k in range(len(header)) if wavelengths_in(header[k:], found.dialect)[0] is not None), 0)
    first = max(first, 1) if first or not header[0] else first
    axis, unit = wavelengths_in(header[first:], found.dialect)
    if axis is None or first == 0 or axis.min() <= 0 or units.counts(axis):
        return None
    if units.wavelength_unit(header[0]) and not found.labels:
        return None
    down = axis_of(found.column(0))
    if down is None or unit:
        return first
    if units.is_plausible(down) > units.is_plausible(axis):
        return None
    # Both may be: the one that looks like nanometres or wavenumbers, then the longer.
    return first if (units.is_plausible(axis), len(axis)) > (units.is_plausible(down), len(down)) else None


def _read_rows(found: FoundTable, first: int, header: list[str], recording: Recording) -> None:
    labels, dialect = header[:first], found.dialect
    wavelengths, stated = wavelengths_in(header[first:], dialect)
    assert wavelengths is not None  # as found above
    if sum(dialect.number(cell) is not None for cell in header[1:first]) > 1:
        raise recording.fail(
            f"row {found.above[-1][0]}, column {first} is '{shorten(header[first - 1])}', which stands among the "
            "wavelengths and is none, or not in order with them; repair that cell."
        )
    recording.wavelength_unit = stated or axis_unit("", wavelengths, "the row of wavelengths", recording)
    columns = table.read_columns(found.body, range(first, len(header)), dialect, recording, len(header))
    recording.mask_reasons = columns.reasons
    recording.notes.append(f"samples in rows, wavelengths in row {found.above[-1][0]}")
    label_cells = [found.cells(k) for k in range(first)]
    concentration = _concentration_column(label_cells, labels, found, recording)
    for k, number in enumerate(found.body.numbers):
        cells = [column[k] for column in label_cells]
        own = [cell for i, cell in enumerate(cells) if cell and i != concentration]
        value = None if concentration is None else dialect.number(cells[concentration])
        recording.traces.append(
            Trace(
                " ".join(own) or cells[0] or f"row {number}",
                wavelengths,
                columns.values[k],
                f"row {number}",
                concentration=None if value is None else (value,),
                masked=columns.masked[k],
                attributes={label: cell for label, cell in zip(labels, cells, strict=True) if label},
                keys=tuple(cell for cell in cells if cell),
            )
        )
    if concentration is None:
        names.set_concentrations_from_names(recording, "the names of the samples")


def _concentration_column(
    cells: list[list[str]], labels: list[str], found: FoundTable, recording: Recording
) -> int | None:
    """The label column that is the concentration: called so, or the only one if it holds numbers."""
    number = found.dialect.number
    called = [k for k in range(len(labels)) if "conc" in labels[k].lower() or split_unit(labels[k])[1]]
    called = [k for k in called if not SPREAD.search(labels[k])]
    numeric = [k for k in range(len(labels)) if all(number(cell) is not None for cell in cells[k])]
    wrong = [k for k in called if "conc" in labels[k].lower() and k not in numeric]
    _refuse_counted([(k, cells[k]) for k in wrong], labels, found, recording)
    for k in wrong:
        odd = [i for i, cell in enumerate(cells[k]) if number(cell) is None and names.quantity_in(cell) is None]
        if odd and len(odd) < len(cells[k]) and not names.is_unknown(cells[k][odd[0]]):
            raise recording.fail(
                f"row {found.body.numbers[odd[0]]}, column {k + 1} ('{labels[k]}') is '{shorten(cells[k][odd[0]])}', "
                "which is no concentration; give its number, or NaN for an unknown."
            )
        return None
    called = [k for k in called if k in numeric]
    alone = numeric == [0] == list(range(len(labels))) and not numbers_say_which(labels[0], map(number, cells[0]))
    if len(called) == 1 or alone:
        column = called[0] if called else 0
        values = [number(cell) for cell in cells[column]]
        others = {labels[k]: cells[k] for k in range(len(labels)) if k != column}
        if why := untold_dilution(labels[column], values, others, number):
            recording.untold = recording.fail(why)  # where they are standards, and nobody names the column
        recording.concentrations_from = f"column {column + 1}" + (f" '{labels[column]}'" if labels[column] else "")
        recording.concentration_unit = split_unit(labels[column])[1]
        recording.on_concentrations.append(f"{recording.concentrations_from} taken as the concentration")
        recording.on_concentrations += unused_columns(others)
        return column
    return None


def _refuse_counted(
    columns: list[tuple[int, list[str]]], labels: list[str], found: FoundTable, recording: Recording
) -> None:
    """Refuse ``20.0.3`` in a column of concentrations: so columns of replicates are headed, and rows need no count."""
    for k, cells in columns:
        i = next((i for i, cell in enumerate(cells) if names.is_replicate(cell)), None)
        if i is not None:
            level = cells[i].rpartition(".")[0]
            raise recording.fail(
                f"row {found.body.numbers[i]}, column {k + 1} ('{labels[k]}') is '{cells[i]}', a level with the count "
                f"of a replicate, as columns are headed; in rows write {level} in each row of that level, without the "
                "count."
            )


# --- samples in columns -----------------------------------------------------------------------------------------------


def _read_columns(found: FoundTable, header: list[str] | None, titles: list[str] | None, recording: Recording) -> None:
    if header is not None and titles is None and not found.labels and units.wavelength_unit(header[0]):
        refuse_transposed(header[1:], found.column(0), recording, header[0])
    at, left_out = _choose_axis(found, header, titles, recording)
    columns = table.read_columns(found.body, range(found.width), found.dialect, recording, found.width, header=header)
    recording.mask_reasons = columns.reasons
    axis = columns.values[:, at]
    if header is not None:
        signal = next((s for k, cell in enumerate(header) if k != at and (s := units.signal_of(cell))), None)
        recording.signal, recording.signal_unit = signal or ("signal", "")
    called = header[at] if header is not None else ""
    recording.wavelength_unit = axis_unit(called, axis, _ordinal(at), recording)
    axis = in_nanometres(axis, recording)
    kept = [k for k in range(found.width) if k != at and k not in left_out]
    for k in kept:
        own = titles[k] if titles is not None and titles[k] else header[k] if header is not None else ""
        alone = len(kept) == 1
        recording.traces.append(
            Trace(
                recording.path.stem if alone and (not own or units.signal_of(own)) else own or f"column {k + 1}",
                axis,
                columns.values[:, k],
                f"column {k + 1}",
                masked=columns.masked[:, k],
                keys=(recording.path.name, recording.path.stem) if alone else (own or str(k),),
            )
        )
    _set_concentrations(found, None if header is None else [(titles or header)[k] for k in kept], recording)


def _ordinal(k: int) -> str:
    return "first column" if k == 0 else f"column {k + 1}"


def _choose_axis(
    found: FoundTable, header: list[str] | None, titles: list[str] | None, recording: Recording
) -> tuple[int, set[int]]:
    """(the column of wavelengths, columns that are no spectra), by the header if it names one, else the first."""
    cells = header or [""] * found.width
    named = [k for k, cell in enumerate(cells) if units.wavelength_unit(cell) and axis_of(found.column(k)) is not None]
    at = named[0] if named else 0
    if not named and found.width > 2 and _only_counts(found, cells):
        second = axis_of(found.column(1))
        if second is not None and units.is_plausible(second) and len(np.unique(second)) > 0.9 * len(second):
            at = 1
    axis = axis_of(found.column(at))
    if axis is None:
        raise recording.fail(_no_axis(found))
    if not named and (units.counts(axis) or (units.is_counter(cells[at]) and cells[at])):
        called = f" ('{shorten(cells[at])}')" if cells[at] else ""
        raise recording.fail(
            f"no axis of wavelengths: the {_ordinal(at)}{called} counts ({axis[0]:g}, {axis[1]:g}, {axis[2]:g}, and "
            "so on); have the wavelengths in a column headed 'wavelength'."
        )
    left_out = set(named) - {at} | {
        k for k in range(found.width) if k != at and (k < at or header) and _counts(found, cells, k)
    }
    left_out |= {k for k, cell in enumerate(cells) if k != at and units.is_temperature(cell)}
    named_twice = [f"{title} {cell}" for title, cell in zip(titles or cells, cells, strict=True)]
    left_out |= _raw_columns(named_twice, at, left_out)
    for k in sorted(left_out):
        called = f" '{shorten(cells[k])}'" if cells[k] else ""
        recording.notes.append(f"column {k + 1}{called} left out: {_why_left_out(named_twice[k], k in named)}")
    return at, left_out


def _why_left_out(cell: str, axis: bool) -> str:
    if axis:
        return "a second axis, and no spectrum"
    if units.is_temperature(cell):
        return "a temperature, and no spectrum"
    return "not the processed spectrum" if _RAW.search(cell) else "it counts, and is no spectrum"


def _counts(found: FoundTable, cells: list[str], k: int) -> bool:
    """Whether a column only counts, by its header and by its numbers."""
    if cells[k] and not units.is_counter(cells[k]):
        return False
    if not cells[k] and k:
        return False
    axis = axis_of(found.column(k))
    return axis is not None and bool((np.diff(axis) > 0).all()) and bool((axis == np.round(axis)).all())


def _only_counts(found: FoundTable, cells: list[str]) -> bool:
    axis = axis_of(found.column(0))
    if axis is None:
        return False
    return (units.counts(axis) and not cells[0]) or (_counts(found, cells, 0) and bool(cells[0])) or units.counts(axis)


def _raw_columns(cells: list[str], at: int, left_out: set[int]) -> set[int]:
    """What a spectrum was computed from (dark, reference, …), where the spectrum itself stands beside it."""
    rest = [k for k in range(len(cells)) if k != at and k not in left_out]
    raw = {k for k in rest if _RAW.search(cells[k])}
    final = [
        k for k in rest if (units.signal_of(cells[k]) or ("",))[0] in ("absorbance", "transmittance", "reflectance")
    ]
    return set(rest) - set(final) if raw and len(final) == 1 and final[0] not in raw else set()


def _no_axis(found: FoundTable) -> str:
    if len(found.body) < FEWEST_ROWS:
        return (
            f"{len(found.body)} rows of numbers, and a spectrum needs {FEWEST_ROWS} at least; export more wavelengths."
        )
    numbers = found.column(0)
    k = next(iter(np.flatnonzero(np.isnan(numbers)).tolist()), None)
    if k is None:
        steps = np.sign(np.diff(numbers))
        k = int(np.flatnonzero(steps * steps[0] < 0)[0]) + 1 if (steps * steps[0] < 0).any() else 0
        what = "not in order with the rows above it" if k else "the same as in every other row"
    else:
        cell = found.cells(0)[k]
        what = f"'{shorten(cell)}', which is no number" if cell else "empty"
    return (
        f"no axis of wavelengths: the first column of row {found.body.numbers[k]} is {what}, and no row of wavelengths "
        "stands above the table; have the wavelengths in the first column."
    )


def _set_concentrations(found: FoundTable, header: list[str] | None, recording: Recording) -> None:
    """From headers that are all numbers, as in a tidy CSV; else from names that hold a number with its unit."""
    if header is not None and len(header) > 1:
        levels = names.levels_of_headers(header, found.dialect.decimal, recording)
        if levels is not None:
            for trace, level in zip(recording.traces, levels, strict=True):
                trace.concentration = (level,)
            recording.concentrations_from = "the column headers"
            recording.on_concentrations.append("column headers taken as the concentrations")
            return
    names.set_concentrations_from_names(recording, "the column headers")


# --- pairs ------------------------------------------------------------------------------------------------------------


def _has_pairs(found: FoundTable, header: list[str] | None) -> bool:
    """X,Y pairs side by side: by the header, or because every second column is an axis over the same range."""
    if found.width < 4 or found.width % 2 or found.labels:
        return False
    if header is not None and all(units.wavelength_unit(cell) for cell in header[::2]):
        return not any(units.wavelength_unit(cell) for cell in header[1::2])
    first = None
    rows = [found.dialect.split(line) for line in found.body.texts[:: max(1, len(found.body) // 200)]]
    for k in range(0, found.width, 2):
        cells = [row[k] for row in rows if k < len(row) and row[k]]
        axis = axis_of([found.dialect.number(cell) for cell in cells])
        if axis is None or len(np.unique(axis)) < 0.9 * len(axis):
            return False
        if first is None:
            first = axis
        elif abs(axis.min() - first.min()) + abs(axis.max() - first.max()) > 0.2 * np.ptp(first):
            return False
    return True


def _read_pairs(found: FoundTable, header: list[str] | None, titles: list[str] | None, recording: Recording) -> None:
    recording.notes.append("every two columns taken as the wavelengths and values of one spectrum")
    columns = table.read_columns(
        found.body, range(found.width), found.dialect, recording, found.width, allow_empty=True
    )
    recording.mask_reasons = columns.reasons
    assert columns.empty is not None  # as asked for
    for k in range(0, found.width, 2):
        there = ~columns.empty[:, k : k + 2].all(axis=1)
        half = np.flatnonzero(there & columns.empty[:, k : k + 2].any(axis=1))
        if half.size:
            column = k + 1 + int(columns.empty[half[0], k + 1])
            raise recording.fail(f"row {found.body.numbers[half[0]]}, column {column} is empty; repair that cell.")
        if there.sum() < 2:
            raise recording.fail(f"columns {k + 1} and {k + 2} have fewer than two pairs; complete or remove them.")
        title = next((row[k] for row in (titles, header) if row and k < len(row) and _is_title(row[k])), "")
        own = title or (header[k + 1] if header is not None and not units.signal_of(header[k + 1]) else "")
        recording.traces.append(
            Trace(
                own or f"column {k + 2}",
                columns.values[there, k],
                columns.values[there, k + 1],
                f"columns {k + 1} and {k + 2}",
                masked=columns.masked[there, k + 1],
                keys=(own or str(k // 2 + 1),),
            )
        )
    called = header[0] if header is not None else ""
    if header is not None:
        signal = next((s for cell in header[1::2] if (s := units.signal_of(cell))), None)
        recording.signal, recording.signal_unit = signal or ("signal", "")
    axes = np.concatenate([trace.wavelengths for trace in recording.traces])
    recording.wavelength_unit = axis_unit(called, axes, "first column of each pair", recording)
    unit = recording.wavelength_unit
    for trace in recording.traces:
        converted = units.to_nanometres(trace.wavelengths, unit)
        if converted is not None:
            trace.wavelengths, recording.wavelength_unit = converted, "nm"
    names.set_concentrations_from_names(recording, "the titles of the columns")


def _is_title(cell: str) -> bool:
    return bool(cell) and units.wavelength_unit(cell) is None
