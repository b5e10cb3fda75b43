"""Which line above a table names its columns, and which cell of that line stands over which column.

A line with as many cells as the rows have, empty ones at its end counted, names each column by the cell over it: one
under an empty cell has no name. Only a line of one cell less than the rows, as R and tables between blanks have it,
lacks the corner. Where such a line begins with the name of an axis nobody can tell which column has no name: it is
refused.
"""

from __future__ import annotations

import re

from geonode.data.readers import units
from geonode.data.readers.recording import Recording
from geonode.data.readers.tablefinder import FoundTable, axis_of, wavelengths_in
from geonode.data.readers.text import shorten

_ABSCISSA = re.compile(r"x|x[ _-]?(axis|achse|data|values?)|abscissa|abszisse", re.I)
_UNIT_CELL = re.compile(
    r"\[?\(?(nm|cm\^?-1|1/cm|[µμu]m|eV|a\.?u\.?|abs\.?|A|OD|%|%\s?[TR]|counts?|rfu|-|arb\.? ?units?|intensity)\)?\]?",
    re.I,
)


def header_of(found: FoundTable, recording: Recording) -> tuple[list[str] | None, list[str] | None, int]:
    """(names of the columns, the row above that names the samples, how many rows both take).

    The names are the row above the table if it has a cell for each column, or for each but the first. Where that row
    has units alone, the row above it names the columns, and a unit is added to the axis that lacks one.

    Raises:
        ReaderError: a row of names one short, of which nobody can tell what has no name.
    """
    header = _fitted(found, -1)
    if header is None:
        _require_told(found, recording)
        return None, None, 0
    titles = _fitted(found, -2)
    if (
        titles is not None
        and not any(found.dialect.number(cell) is not None for cell in header)
        and _only_units(header)
    ):
        if any(units.wavelength_unit(cell) or units.is_counter(cell) for cell in titles if cell):
            named = [f"{a} ({b})" if b and a else a or b for a, b in zip(titles, header, strict=True)]
            return named, None, 2
        if len({cell for cell in titles[1:] if cell}) > 1:
            return header, titles, 2
    return header, None, 1


def _fitted(found: FoundTable, which: int) -> list[str] | None:
    """A row above as the names of the table's columns, empty where one has none; None where it does not fit."""
    if len(found.above) < -which:
        return None
    cells, reach = found.above[which][1], found.reach[which]
    missing = found.width - len(cells)
    if missing <= 0:
        return cells if missing == 0 else None
    if _is_whole(found, reach):
        heads = len(cells) > 1 if not cells[0] else _heads_an_axis(cells[0])
        return [*cells, *[""] * missing] if heads else None
    without_corner = missing == 1 and len(cells) > 1 and cells[0] and (not _names_axis(cells[0]) or _rows_named(found))
    return ["", *cells] if without_corner else None


def _is_whole(found: FoundTable, reach: int) -> bool:
    """Whether a row has a cell, empty or not, for every column; where blanks part them empty ones leave no trace."""
    return found.dialect.delimiter != " " and reach >= found.width


def _heads_an_axis(cell: str) -> bool:
    return _names_axis(cell) or units.is_counter(cell)


def _names_axis(cell: str) -> bool:
    return units.wavelength_unit(cell) is not None or bool(_ABSCISSA.fullmatch(cell))


def _rows_named(found: FoundTable) -> bool:
    """Whether the first column is no axis but names the rows, by words or by numbers that count, as R writes them."""
    return bool(found.labels) or units.counts(found.column(0))


def _require_told(found: FoundTable, recording: Recording) -> None:
    """Refuse a row of names that is one short, where the one without a name may be any of them."""
    if not found.above:
        return
    (line, cells), reach = found.above[-1], found.reach[-1]
    if found.width - len(cells) != 1 or len(cells) < 2:
        return
    if _is_whole(found, reach):
        what = (
            f"its last cell is empty, and its first, '{shorten(cells[0])}', does not say that it heads the wavelengths"
        )
    else:
        what = f"it has {len(cells)} cells and the rows below it {found.width}, so one of the columns has no name"
    raise recording.fail(
        f"row {line}: {what}; write 'wavelength' over the wavelengths and a name over every other column."
    )


def refuse_unnamed_wavelength(found: FoundTable, header: list[str], recording: Recording) -> None:
    """Refuse samples in rows whose row of wavelengths ends before their values do.

    Raises:
        ReaderError: it does.
    """
    named = list(header)
    while named and not named[-1]:
        named.pop()
    down = axis_of(found.column(0))
    if down is not None and units.is_plausible(down):
        return
    for first in range(1, len(named) - 2):
        axis, _ = wavelengths_in(named[first:], found.dialect)
        if axis is not None and units.is_plausible(axis):
            raise recording.fail(
                f"row {found.above[-1][0]} holds wavelengths, and its column {len(named) + 1} none, under which there "
                "are values; give that wavelength, or remove the column."
            )


def _only_units(cells: list[str]) -> bool:
    return any(cells) and all(not cell or _UNIT_CELL.fullmatch(cell) for cell in cells)
