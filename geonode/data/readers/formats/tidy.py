"""Tidy CSV: first column ``wavelength``, every other column headed by its concentration.

A replicate of the level ``5.0`` is headed ``5.0.1``, ``5.0.2``: so a header with one dot or none is a number, and one
with two dots is a number and the count of a replicate. ``0.0.1`` is replicate 1 of level 0, ``84.7.1`` replicate 1 of
level 84.7, and ``83.4`` a level of its own.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from geonode.data.readers import table, text
from geonode.data.readers.axis import axis_unit
from geonode.data.readers.base import READERS, Particularity, Reader
from geonode.data.readers.dialect import Dialect
from geonode.data.readers.names import levels_of_headers, parse_header, quantity_in, without_thousands
from geonode.data.readers.recording import Recording, Trace
from geonode.data.readers.thousands import require_no_thousands
from geonode.data.readers.transposed import refuse_transposed

_FIRST = {"wavelength", "wavelengths", "wavelength (nm)", "wavelength_nm", "wavelength/nm", "wavelength [nm]"}
_DIALECT = Dialect(",", ".")
_QUOTED_COMMA = re.compile(r'"[^"]*,[^"]*"')


@READERS.register("tidy")
class TidyReader(Reader):
    """The table that geonode's documentation asks for."""

    format = "tidy CSV"
    summary = "tidy CSV (first column 'wavelength', the others headed by their concentration)"
    particularity = Particularity.HEADER

    def sniff(self, head: bytes) -> bool:
        """The first cell is ``wavelength``, another one is a number or a replicate of one, and none has a unit, or is
        empty over values."""
        first, _, rest = text.decode_head(head).partition("\n")
        cells, row = _DIALECT.split(first), _DIALECT.split(rest.partition("\n")[0])
        if any(value and not cell for cell, value in zip(cells[1:], row[1:], strict=False)):
            return False  # a column without a name may be that of an unknown
        if cells[0].lower() not in _FIRST or any(quantity_in(cell) for cell in cells[1:]):
            return False  # headers with units are read as names of samples are
        return any(parse_header(cell) for cell in cells[1:])

    def read(self, path: Path) -> Recording:
        """Read a tidy CSV.

        Raises:
            ReaderError: a header that is no concentration, one concentration written in two ways, the same header
                twice, a row of the wrong length, a cell that is neither a number nor a word for out of range.
        """
        recording = self.recording(
            path, concentrations_from="the column headers", signal="signal", averages_duplicates=False
        )
        content = text.read_text(path)
        table.count_cells(content, recording)
        lines = content.split("\n")
        del content  # as large as the lines
        header = [without_thousands(cell, recording.decimal) for cell in _DIALECT.split(lines[0])]
        while header and not header[-1]:
            header.pop()
        headers = _parse_headers(header, recording)
        body = table.Lines.of(lines, 1)
        if not len(body):
            raise recording.fail("a header but no row of values below it; the file seems to be truncated.")
        refuse_transposed(header[1:], _down(body), recording, header[0])
        dialect = _dialect(recording.decimal, body)
        columns = table.read_columns(
            body, range(len(header)), dialect, recording, len(header), header=header, exact=True, dead_pixels=False
        )
        recording.mask_reasons = columns.reasons
        axis = columns.values[:, 0]
        if (axis > 0.0).all():  # else refused for that, whatever the unit
            recording.wavelength_unit = axis_unit(header[0], axis, "first column", recording)
        for column, concentration in headers.items():
            recording.traces.append(
                Trace(
                    header[column],
                    columns.values[:, 0],
                    columns.values[:, column],
                    f"column {column + 1}",
                    (concentration,),
                    masked=columns.masked[:, column],
                )
            )
        return recording


def _dialect(decimal: str, body: table.Lines) -> Dialect:
    """How numbers are written where the mark that is ``decimal`` is known; commas within cells stand in quotes."""
    if not decimal or not any(_QUOTED_COMMA.search(line) for line in body.texts):
        return _DIALECT
    return Dialect(",", ".", ",") if decimal == "." else Dialect(",", ",")


def _down(body: table.Lines) -> np.ndarray:
    """The first column ``[rows]``, of ``20.0.3`` the level; NaN where a cell is no number."""
    cells = (parse_header(line.split(",", 1)[0].strip()) for line in body.texts)
    return np.array([np.nan if cell is None else cell[0] for cell in cells])


def _parse_headers(header: list[str], recording: Recording) -> dict[int, float]:
    """The concentration of each column but the first."""
    headers: dict[int, float] = {}
    written: dict[float, str] = {}
    seen: dict[str, int] = {}
    for column, cell in enumerate(header[1:], start=1):
        parsed = parse_header(cell)
        if parsed is None:
            require_no_thousands(header[1:], recording)
            raise recording.fail(
                f"column {column + 1} is headed '{text.shorten(cell)}', which is no concentration; remove that column "
                "if it is no standard, or head it by its concentration, such as 5.0, and its replicates 5.0.1, 5.0.2."
            )
        if cell in seen:
            raise recording.fail(
                f"columns {seen[cell] + 1} and {column + 1} are both headed '{cell}'; head the first of them "
                f"'{_pointed(parsed[1])}' and its replicates {_replicates(parsed[1])}."
            )
        first = written.setdefault(parsed[0], parsed[1])
        if first != parsed[1]:
            raise recording.fail(
                f"column {column + 1} is headed '{cell}', which is the level '{first}' written in another way; head "
                f"the first of them '{_pointed(first)}' and its replicates {_replicates(first)}."
            )
        seen[cell] = column
        headers[column] = parsed[0]
    levels_of_headers(header[1:], ".", recording)  # refuses 1.000 beside 500
    for cell in seen:
        whole, dot, count = cell.partition(".")
        counted = whole in seen and text.number(cell) is not None and not re.fullmatch(r"[1-9]\d*0", count)
        if dot and counted:  # 5.10 is noted with the levels
            recording.on_concentrations.append(
                f"'{cell}' was taken as a level of its own, not as a replicate of '{whole}'"
            )
    return headers


def _pointed(level: str) -> str:
    """A level with a point, without which ``5.1`` would be another level and no replicate."""
    return level if "." in level else f"{level}.0"


def _replicates(level: str) -> str:
    return f"'{_pointed(level)}.1', '{_pointed(level)}.2'"
