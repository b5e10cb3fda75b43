"""PerkinElmer EnSpire plate export: tab-separated whatever its extension, one row per well and wavelength.

The preamble describes plate and background, the footer the instrument; between them stands the table, with a phantom
last column. Concentrations are in a note file of the user's, by well.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from geonode.data.readers import table, text
from geonode.data.readers.base import READERS, Particularity, Reader
from geonode.data.readers.dialect import Dialect
from geonode.data.readers.recording import Recording, Trace

_WELL = re.compile(r"[A-Za-z]{1,2}\d{1,3}")
_SATURATED = re.compile(r"saturated.*?wells?:\s*(.*)", re.IGNORECASE)
_COMMA = re.compile(r"\t[+-]?\d+,\d+(?:[eE][+-]?\d+)?(?=\t|$)")


@READERS.register("enspire")
class EnspireReader(Reader):
    """PerkinElmer EnSpire, one row per well and wavelength."""

    format = "PerkinElmer EnSpire export"
    summary = "PerkinElmer EnSpire (long format, tabs)"
    particularity = Particularity.MARK

    def sniff(self, head: bytes) -> bool:
        """``Plate information`` in line 1, and tabs."""
        beginning = text.decode_head(head[:4096])
        return beginning.lower().startswith("plate information") and "\t" in beginning

    def read(self, path: Path) -> Recording:
        """Read an EnSpire export of spectra.

        Raises:
            ReaderError: no table of wells, no wavelength column, a cell that is no number, wells of different lengths.
        """
        recording = self.recording(path)
        content = text.read_text(path)
        table.count_cells(content, recording)
        lines = content.split("\n")
        start = next((i for i, line in enumerate(lines) if line.lower().startswith("well\t")), None)
        if start is None:
            raise recording.fail("no table with a first column 'Well'; export the raw results of the wells.")
        header = [cell.strip() for cell in lines[start].rstrip().split("\t")]
        end = next((i for i, line in enumerate(lines[start + 1 :], start + 1) if not _is_row(line)), len(lines))
        rows = table.Lines.of(lines, start + 1, end)
        _require_one_table(lines, end, recording)
        if not len(rows):
            raise recording.fail("a header but no row of a well below it; the file seems to be truncated.")
        measurements = _measurements(header, recording)
        comma = recording.decimal == "," or (not recording.decimal and any(map(_COMMA.search, rows.texts)))
        dialect = Dialect("\t", "," if comma else ".")
        if comma:
            recording.notes.append("read with decimal commas")
        last = rows.texts[-1].split("\t", 1)[0].strip()
        for measurement in measurements:
            before = len(recording.traces)
            _read_measurement(measurement, header, rows, dialect, len(measurements) > 1, recording)
            _check_counts(recording.traces[before:], last, recording)
        if not recording.traces:
            raise recording.fail("no result in any well; the file seems to be truncated.")
        for line in lines[end:]:
            match = _SATURATED.search(line)
            if match:
                recording.notes.append(
                    f"the instrument reports saturation in {text.shorten(match.group(1).strip(), 80)}"
                )
        return recording


def _is_row(line: str) -> bool:
    return bool(_WELL.fullmatch(line.split("\t", 1)[0].strip()))


def _require_one_table(lines: list[str], end: int, recording: Recording) -> None:
    """Nothing of wells below the table: a second plate, or rows cut off by a damaged one."""
    again = next((i for i, line in enumerate(lines[end:], end) if line.lower().startswith("well\t")), None)
    if again is not None:
        raise recording.fail(f"row {again + 1} begins a second table of wells; export one plate at a time.")
    if any(_is_row(line) and line.count("\t") > 2 for line in lines[end:]):
        raise recording.fail(f"row {end + 1} is no row of a well, and rows of wells stand below it; repair that row.")


def _measurements(header: list[str], recording: Recording) -> list[tuple[str, int, list[int]]]:
    """(prefix, column of the result, columns of wavelengths) of each measurement, such as ``MeasA``."""
    found = []
    for column, cell in enumerate(header):
        prefix, colon, what = cell.rpartition(":")
        if what.strip().lower().startswith("result"):
            mine = [i for i, c in enumerate(header) if c.startswith(prefix + colon) and "wavelength" in c.lower()]
            if mine:
                found.append((prefix, column, mine))
    if not found:
        raise recording.fail(
            f"the table's columns ({', '.join(text.shorten(c) for c in header[:8])}) have no result with its "
            "wavelength; export a spectral scan."
        )
    return found


def _read_measurement(
    measurement: tuple[str, int, list[int]],
    header: list[str],
    rows: table.Lines,
    dialect: Dialect,
    several: bool,
    recording: Recording,
) -> None:
    """The wells of one measurement; a scan shorter than another of the same wells leaves its last cells blank."""
    prefix, result, wavelengths = measurement
    columns = table.read_columns(rows, [result, *wavelengths], dialect, recording, allow_empty=several)
    if columns.empty is not None:
        there = np.flatnonzero(~columns.empty[:, 0])
        half = there[columns.empty[there].any(axis=1)]
        if half.size:
            raise recording.fail(
                f"row {rows.numbers[half[0]]} has a result of {prefix} and no wavelength; repair that row."
            )
        kept = [int(k) for k in there]
        rows = table.Lines([rows.texts[k] for k in kept], [int(rows.numbers[k]) for k in kept])
        columns = table.Columns(columns.values[there], columns.masked[there], reasons=columns.reasons)
    values = columns.values
    varying = [k for k in range(1, values.shape[1]) if np.unique(values[:, k]).size > 1]
    if len(varying) > 1:
        raise recording.fail(f"{prefix or 'the result'} varies in two wavelengths; export one scan at a time.")
    axis = varying[0] if varying else 1
    for k, column in enumerate(wavelengths, start=1):
        if k != axis and values.size:
            recording.notes.append(f"{header[column]} is {values[0, k]:g} nm throughout")
    recording.mask_reasons += columns.reasons
    named = header[wavelengths[axis - 1]].lower()
    recording.signal = "absorbance" if "abs" in named else "fluorescence"
    wells: dict[str, list[int]] = {}
    for k, line in enumerate(rows.texts):
        wells.setdefault(line.split("\t", 1)[0].strip(), []).append(k)
    sample = header.index("Sample") if "Sample" in header else None
    for well, mine in wells.items():
        recording.traces.append(
            Trace(
                f"{well} {prefix}" if several else well,
                values[mine, axis],
                values[mine, 0],
                f"rows {rows.numbers[mine[0]]}–{rows.numbers[mine[-1]]}, column {result + 1}",
                masked=columns.masked[mine, 0],
                keys=(well,),
                attributes={} if sample is None else {"Sample": dialect.split(rows.texts[mine[0]])[sample]},
            )
        )


def _check_counts(traces: list[Trace], last: str, recording: Recording) -> None:
    """A truncated file ends within the scan of its last well; other wells may have scans of their own length."""
    for trace in traces:
        first = traces[0]
        if len(trace.values) < len(first.values) and last in trace.keys:
            raise recording.fail(
                f"well {trace.name} ({trace.place}) has {len(trace.values)} points and {first.name} "
                f"{len(first.values)}; the file seems to be truncated, so export it again."
            )
