"""Agilent Cary export: X,Y pairs side by side, sample titles above, metadata blocks below.

Row 1 has a title in every second cell, row 2 ``Wavelength (nm),Abs`` for each pair; wavelengths descend and are off
the nominal grid. After a blank line comes one block a spectrum, whose first two lines are the sample's real name: the
titles of row 1 may have been edited, and then the concentrations stand only there, in the order of the columns.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np

from geonode.data.readers import text
from geonode.data.readers.base import READERS, Particularity, Reader
from geonode.data.readers.names import set_concentrations_from_names
from geonode.data.readers.recording import Recording, Trace

_X = re.compile(r"wave(length|number) ?\(([^)]*)\)", re.IGNORECASE)
_SIGNALS = {"abs": ("absorbance", ""), "%t": ("transmittance", "%"), "%r": ("reflectance", "%")}
_BASELINE = re.compile(r"^baseline\b|\b(?:0|100) ?%T\b", re.IGNORECASE)


@READERS.register("cary")
class CaryReader(Reader):
    """Agilent Cary, pairs of columns."""

    format = "Agilent Cary export"
    summary = "Agilent Cary (X,Y pairs, titles above, metadata below)"
    particularity = Particularity.HEADER

    def sniff(self, head: bytes) -> bool:
        """Row 2 repeats ``Wavelength (nm),Abs`` (or another signal) pair by pair."""
        lines = text.decode_head(head).split("\n", 2)
        if len(lines) < 2:
            return False
        cells = [cell.strip() for cell in lines[1].split(",")]
        pairs = [(x, y) for x, y in zip(cells[::2], cells[1::2], strict=False) if x]
        return bool(pairs) and all(_X.fullmatch(x) and y for x, y in pairs)

    def read(self, path: Path) -> Recording:
        """Read a Cary export.

        Raises:
            ReaderError: a cell that is no number, half a pair, metadata blocks that do not match the columns.
        """
        rows = text.rows_of(text.read_text(path), ",", path)
        recording = self.recording(path)
        titles, heads = rows[0], rows[1]
        columns = [i for i in range(0, len(heads) - 1, 2) if _X.fullmatch(heads[i])]
        end = next((i for i, row in enumerate(rows[2:], start=2) if not any(row)), len(rows))
        names = _block_names(rows[end:])
        own = [titles[i] if i < len(titles) and titles[i] else f"column {i + 1}" for i in columns]
        if names and len(names) != len(columns):
            raise recording.fail(
                f"{len(columns)} spectra but {len(names)} metadata blocks below them, so the sample names cannot be "
                "told; the file seems to be truncated, so export it again."
            )
        if names and names != own:
            recording.notes.append("sample names taken from the metadata blocks, in column order; the titles differ")
        _set_units(heads[columns[0]], heads[columns[0] + 1], recording)
        for column, name in zip(columns, names or own, strict=True):
            if _BASELINE.search(name) and len(columns) > 1:
                recording.notes.append(f"'{name}' (column {column + 1}) dropped: a baseline, not a sample")
                continue
            x, y = _read_pair(rows, end, column, name, recording)
            recording.traces.append(Trace(name, x, y, f"column {column + 1}"))
        set_concentrations_from_names(recording, "the sample names in the metadata blocks" if names else "the titles")
        return recording


def _block_names(rows: list[list[str]]) -> list[str]:
    """Names of the metadata blocks: a line with a trailing comma, repeated without it on the next line."""
    names = []
    for first, second in itertools.pairwise(rows):
        if len(first) >= 2 and first[0] and not any(first[1:]) and second == first[:1]:
            names.append(first[0])
    return names


def _set_units(x_head: str, y_head: str, recording: Recording) -> None:
    match = _X.fullmatch(x_head)
    assert match is not None  # the columns were chosen by it
    recording.wavelength_unit = match.group(2)
    recording.signal, recording.signal_unit = _SIGNALS.get(y_head.lower(), (y_head, ""))


def _read_pair(rows: list[list[str]], end: int, column: int, name: str, recording: Recording):
    """The two columns of a pair down to its last value; pairs may be of different lengths."""
    x, y = [], []
    for line, row in enumerate(rows[2:end], start=3):
        cells = [*row, "", ""][column : column + 2] if column < len(row) else ["", ""]
        if not any(cells):
            continue
        values = [text.number(cell) for cell in cells]
        for offset, (cell, value) in enumerate(zip(cells, values, strict=True)):
            if value is None:
                what = f"'{text.shorten(cell)}', which is no number" if cell else "empty"
                raise recording.fail(
                    f"row {line}, column {column + offset + 1} ('{name}') is {what}; repair that cell."
                )
        x.append(values[0])
        y.append(values[1])
    if not x:
        raise recording.fail(f"'{name}' (column {column + 1}) has no values; the file seems to be truncated.")
    return np.array(x, dtype=np.float64), np.array(y, dtype=np.float64)
