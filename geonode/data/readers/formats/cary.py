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

from geonode.data.readers import table, text
from geonode.data.readers.base import READERS, Particularity, Reader
from geonode.data.readers.dialect import Dialect
from geonode.data.readers.names import set_concentrations_from_names
from geonode.data.readers.recording import Recording, Trace

_X = re.compile(r"wave(length|number) ?\(([^)]*)\)", re.IGNORECASE)
_SIGNALS = {"abs": ("absorbance", ""), "%t": ("transmittance", "%"), "%r": ("reflectance", "%")}
_BASELINE = re.compile(r"^baseline\b|\b(?:0|100) ?%T\b", re.IGNORECASE)
_POINT, _COMMA = Dialect(",", "."), Dialect(";", ",")  # a system with decimal commas parts the cells by semicolons


@READERS.register("cary")
class CaryReader(Reader):
    """Agilent Cary, pairs of columns."""

    format = "Agilent Cary export"
    summary = "Agilent Cary (X,Y pairs, titles above, metadata below)"
    particularity = Particularity.HEADER

    def sniff(self, head: bytes) -> bool:
        """Row 2 repeats ``Wavelength (nm),Abs`` (or another signal) pair by pair."""
        lines = text.decode_head(head).split("\n", 2)
        return len(lines) >= 2 and _dialect_of(lines[1]) is not None

    def read(self, path: Path) -> Recording:
        """Read a Cary export.

        Raises:
            ReaderError: a cell that is no number, half a pair, metadata blocks that do not match the columns.
        """
        recording = self.recording(path)
        content = text.read_text(path)
        table.count_cells(content, recording)
        lines = content.split("\n")
        del content  # as large as the lines
        dialect = _dialect_of(lines[1])
        assert dialect is not None  # else the file was not recognised
        titles, heads = dialect.split(lines[0]), dialect.split(lines[1])
        columns = [i for i in range(0, len(heads) - 1, 2) if _X.fullmatch(heads[i])]
        blank = dialect.delimiter + " \t"
        end = next((i for i, line in enumerate(lines[2:], start=2) if not line.strip(blank)), len(lines))
        names = _block_names([dialect.split(line) for line in lines[end:]])
        own = [titles[i] if i < len(titles) and titles[i] else f"column {i + 1}" for i in columns]
        if names and len(names) != len(columns):
            raise recording.fail(
                f"{len(columns)} spectra but {len(names)} metadata blocks below them, so the sample names cannot be "
                "told; the file seems to be truncated, so export it again."
            )
        if names and names != own:
            recording.notes.append("sample names taken from the metadata blocks, in column order; the titles differ")
        samples = _samples(columns, names or own, recording)
        _set_units(samples, heads, recording)
        _read_pairs(table.Lines.of(lines, 2, end), samples, heads, dialect, recording)
        where = "the sample names in the metadata blocks" if names else "the titles"
        set_concentrations_from_names(recording, where)
        return recording


def _dialect_of(line: str) -> Dialect | None:
    """How the cells of the second row are parted, if it is one of this format."""
    for dialect in (_POINT, _COMMA):
        cells = dialect.split(line)
        pairs = [(x, y) for x, y in zip(cells[::2], cells[1::2], strict=False) if x]
        if pairs and all(_X.fullmatch(x) and y for x, y in pairs):
            return dialect
    return None


def _block_names(rows: list[list[str]]) -> list[str]:
    """Names of the metadata blocks: a line with a trailing comma, repeated without it on the next line."""
    names = []
    for first, second in itertools.pairwise(rows):
        if len(first) >= 2 and first[0] and not any(first[1:]) and second == first[:1]:
            names.append(first[0])
    return names


def _samples(columns: list[int], names: list[str], recording: Recording) -> list[tuple[int, str]]:
    """First column and name of every pair but the baselines, which are measured in another unit, %T of no sample."""
    kept = []
    for column, name in zip(columns, names, strict=True):
        if _BASELINE.search(name) and len(columns) > 1:
            recording.notes.append(f"'{name}' (column {column + 1}) dropped: a baseline, not a sample")
        else:
            kept.append((column, name))
    return kept


def _set_units(samples: list[tuple[int, str]], heads: list[str], recording: Recording) -> None:
    """Units of the axis and of the signal, which all samples must share.

    Raises:
        ReaderError: two samples in different units.
    """
    units: dict[tuple[str, str], str] = {}
    for column, name in samples:
        match = _X.fullmatch(heads[column])
        assert match is not None  # the columns were chosen by it
        units.setdefault((match.group(2), heads[column + 1].strip()), name)
    if len({(x.lower(), y.lower()) for x, y in units}) > 1:
        said = ", ".join(f"'{name}' in {y} against {x}" for (x, y), name in list(units.items())[:2])
        raise recording.fail(f"the samples are in different units: {said}; export them alike.")
    for x_unit, signal in units:
        recording.wavelength_unit = x_unit
        recording.signal, recording.signal_unit = _SIGNALS.get(signal.lower(), (signal, ""))


def _read_pairs(
    rows: table.Lines, kept: list[tuple[int, str]], heads: list[str], dialect: Dialect, recording: Recording
) -> None:
    """Each pair down to its last value: pairs may be of different lengths."""
    wanted = [k for column, _ in kept for k in (column, column + 1)]
    named = {k: name for column, name in kept for k in (column, column + 1)}
    header = [named.get(k, "") for k in range(max(wanted, default=-1) + 1)]
    found = table.read_columns(rows, wanted, dialect, recording, len(heads), header=header, allow_empty=True)
    recording.mask_reasons = found.reasons
    assert found.empty is not None  # as asked for
    for k, (column, name) in enumerate(kept):
        empty = found.empty[:, 2 * k : 2 * k + 2]
        half = np.flatnonzero(empty[:, 0] != empty[:, 1])
        if half.size:
            where = column + 1 + int(empty[half[0], 1])
            raise recording.fail(f"row {rows.numbers[half[0]]}, column {where} ('{name}') is empty; repair that cell.")
        there = ~empty[:, 0]
        if not there.any():
            raise recording.fail(f"'{name}' (column {column + 1}) has no values; the file seems to be truncated.")
        x, y, masked = found.values[there, 2 * k], found.values[there, 2 * k + 1], found.masked[there, 2 * k + 1]
        recording.traces.append(Trace(name, x, y, f"column {column + 1}", masked=masked))
