"""Tidy CSV: first column ``wavelength``, every other column headed by its concentration.

A replicate of the level ``5.0`` is headed ``5.0.1``, ``5.0.2``: so a header with one dot or none is a number, and one
with two dots is a number and the count of a replicate. ``0.0.1`` is replicate 1 of level 0, ``84.7.1`` replicate 1 of
level 84.7, and ``83.4`` a level of its own.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from geonode.data.readers import text
from geonode.data.readers.base import READERS, Particularity, Reader
from geonode.data.readers.recording import Recording, Trace

_FIRST = {"wavelength", "wavelengths", "wavelength (nm)", "wavelength_nm", "wavelength/nm", "wavelength [nm]"}


@READERS.register("tidy")
class TidyReader(Reader):
    """The table that geonode's documentation asks for."""

    format = "tidy CSV"
    summary = "tidy CSV (first column 'wavelength', the others headed by their concentration)"
    particularity = Particularity.HEADER

    def sniff(self, head: bytes) -> bool:
        """The first cell is ``wavelength`` and another one is a number or a replicate of one."""
        cells = [cell.strip().strip('"') for cell in text.decode_head(head).split("\n", 1)[0].split(",")]
        return cells[0].lower() in _FIRST and any(parse_header(cell) for cell in cells[1:])

    def read(self, path: Path) -> Recording:
        """Read a tidy CSV.

        Raises:
            ReaderError: a header that is no concentration, one concentration written in two ways, the same header
                twice, a row of the wrong length, a cell that is no number.
        """
        rows = text.rows_of(text.read_text(path), ",", path)
        recording = self.recording(path, concentrations_from="the column headers", signal="signal", repairs=False)
        header = rows[0]
        while header and not header[-1]:
            header.pop()
        headers = _parse_headers(header, recording)
        body = [(i, row) for i, row in enumerate(rows[1:], start=2) if any(row)]
        if not body:
            raise recording.fail("a header but no row of values below it; the file seems to be truncated.")
        values = np.empty((len(body), len(header)))
        for k, (line, row) in enumerate(body):
            values[k] = _parse_row(row, line, header, recording)
        for column, (concentration, _, _) in headers.items():
            recording.traces.append(
                Trace(header[column], values[:, 0], values[:, column], f"column {column + 1}", (concentration,))
            )
        return recording


def parse_header(cell: str) -> tuple[float, str, int] | None:
    """(concentration, the text of its level, number of the replicate), or None if the header is no concentration."""
    value = text.number(cell)
    if value is not None:
        return value, cell, 0
    level, _, replicate = cell.rpartition(".")
    value = text.number(level)
    if value is None or level.endswith(".") or not (replicate.isascii() and replicate.isdigit()):
        return None
    return value, level, int(replicate)


def _parse_headers(header: list[str], recording: Recording) -> dict[int, tuple[float, str, int]]:
    headers: dict[int, tuple[float, str, int]] = {}
    written: dict[float, str] = {}
    seen: dict[str, int] = {}
    for column, cell in enumerate(header[1:], start=1):
        parsed = parse_header(cell)
        if parsed is None:
            raise recording.fail(
                f"column {column + 1} is headed '{text.shorten(cell)}', which is no concentration; head it by its "
                "concentration, such as 5.0, and its replicates 5.0.1, 5.0.2."
            )
        if cell in seen:
            raise recording.fail(
                f"columns {seen[cell] + 1} and {column + 1} are both headed '{cell}'; head replicates "
                f"'{parsed[1]}', '{parsed[1]}.1', '{parsed[1]}.2'."
            )
        first = written.setdefault(parsed[0], parsed[1])
        if first != parsed[1]:
            raise recording.fail(
                f"column {column + 1} is headed '{cell}', which is the level '{first}' written in another way; head "
                f"replicates '{first}.1', '{first}.2'."
            )
        seen[cell] = column
        headers[column] = parsed
    for cell in seen:
        whole, dot, _ = cell.partition(".")
        if dot and whole in seen and text.number(cell) is not None:
            recording.notes.append(f"'{cell}' was taken as a level of its own, not as a replicate of '{whole}'")
    return headers


def _parse_row(row: list[str], line: int, header: list[str], recording: Recording) -> list[float]:
    while len(row) > len(header) and not row[-1]:
        row.pop()
    if len(row) != len(header):
        raise recording.fail(
            f"row {line} has {len(row)} cells and the header {len(header)}; complete or remove that row."
        )
    values = []
    for column, cell in enumerate(row):
        value = text.number(cell)
        if value is None:
            what = f"'{text.shorten(cell)}', which is no number" if cell else "empty"
            raise recording.fail(f"row {line}, column {column + 1} ('{header[column]}') is {what}; repair that cell.")
        values.append(value)
    return values
