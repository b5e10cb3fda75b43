"""Decimal commas in a text whose cells commas part: ``1,5,0,23`` is 1.5 and 0.23, or four numbers. Nobody can tell, so
such a table is refused, with the columns in which it shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from geonode.data.readers import units
from geonode.data.readers.recording import Recording

if TYPE_CHECKING:
    from geonode.data.readers.tablefinder import FoundTable

REMEDY = "export it with semicolons between the cells, or with decimal points"
_WHOLE = re.compile(r"[-+]?\d+")
_FRACTION = re.compile(r"0\d+")
"""No number begins with a zero before other digits: only what follows a decimal mark does."""


def comma_within(row: Sequence[str], surplus: int) -> int | None:
    """The column (from 0) at which a cell and the next are one number with a decimal comma; None where nothing shows
    it. ``surplus``: how many cells the row has too many. A fraction that begins with a zero shows it, and so does the
    only pair of whole numbers in a row of numbers with points, or a row without points that has about twice the
    cells."""
    pairs = [k for k in range(len(row) - 1) if _WHOLE.fullmatch(row[k]) and re.fullmatch(r"\d+", row[k + 1])]
    sure = next((k for k in pairs if _FRACTION.fullmatch(row[k + 1])), None)
    if sure is not None:
        return sure
    pointed = any("." in cell for cell in row)
    if pointed:
        return pairs[0] if 0 < len(pairs) <= surplus else None
    return pairs[-1] if pairs and 2 * surplus >= len(row) - 2 else None  # the last value is a pair in any case


def told(row: Sequence[str], number: int, width: int, at: int) -> str:
    """What to say of row ``number`` of the file, whose header has ``width`` cells."""
    return (
        f"row {number} has {len(row)} cells and the header {width}: commas stand between the numbers and within them, "
        f"as in columns {at + 1} and {at + 2} ('{row[at]},{row[at + 1]}'); {REMEDY}."
    )


def refuse_commas(found: FoundTable, recording: Recording) -> None:
    """Refuse a table of more cells than its header, where commas within numbers make the difference.

    Two signs: the header has just half the cells and no number has a point; or the header's first cell names the axis
    or the concentration, so that nothing stands before it, and yet it is shorter. A first column that counts, or names,
    may be what R writes beside the rows.

    Raises:
        ReaderError: such a table.
    """
    header = found.above[-1][1] if found.above else []
    if found.dialect.delimiter != "," or not 1 < len(header) < found.width or not all(header):
        return
    number, row = int(found.body.numbers[0]), found.dialect.split(found.body.texts[0])
    first = comma_within(row, found.width - len(header))
    halved = 2 * len(header) == found.width and not any("." in line for line in found.body.texts)
    if halved:
        raise recording.fail(told(row, number, len(header), first or 0))
    if not (units.wavelength_unit(header[0]) or header[0].lower().startswith(("wavelength", "conc"))):
        return
    for number, line in found.body:
        row = found.dialect.split(line)
        at = comma_within(row, found.width - len(header))
        if at is not None and not (len(header) == found.width - 1 and _names_rows(found)):
            raise recording.fail(told(row, number, len(header), at))


def _names_rows(found: FoundTable) -> bool:
    """Whether the first column counts the rows, or names them."""
    return found.labels > 0 or units.counts(found.column(0))
