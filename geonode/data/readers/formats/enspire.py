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
from geonode.data.readers.recording import Recording, Trace

_WELL = re.compile(r"[A-Za-z]{1,2}\d{1,3}")
_SATURATED = re.compile(r"saturated.*?wells?:\s*(.*)", re.IGNORECASE)
_DIALECT = table.Dialect("\t", ".")


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
        rows = [(i + 1, [cell.strip() for cell in lines[i].split("\t")]) for i in range(start + 1, end)]
        if not rows:
            raise recording.fail("a header but no row of a well below it; the file seems to be truncated.")
        for measurement in _measurements(header, recording):
            _read_measurement(measurement, header, rows, recording)
        _check_counts(recording)
        for line in lines[end:]:
            match = _SATURATED.search(line)
            if match:
                recording.notes.append(
                    f"the instrument reports saturation in {text.shorten(match.group(1).strip(), 80)}"
                )
        return recording


def _is_row(line: str) -> bool:
    return bool(_WELL.fullmatch(line.split("\t", 1)[0].strip()))


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
    measurement: tuple[str, int, list[int]], header: list[str], rows: list[tuple[int, list[str]]], recording: Recording
) -> None:
    prefix, result, wavelengths = measurement
    rows = [(i, row) for i, row in rows if result < len(row) and row[result]]
    columns = table.read_columns(rows, [result, *wavelengths], _DIALECT, recording)
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
    for k, (_, row) in enumerate(rows):
        wells.setdefault(row[0], []).append(k)
    sample = header.index("Sample") if "Sample" in header else None
    several = sum(cell.rpartition(":")[2].strip().lower().startswith("result") for cell in header) > 1
    for well, mine in wells.items():
        masked = columns.masked[mine, 0]
        recording.traces.append(
            Trace(
                f"{well} {prefix}" if several else well,
                values[mine, axis],
                values[mine, 0],
                f"rows {rows[mine[0]][0]}–{rows[mine[-1]][0]}",
                masked=masked,
                keys=(well,),
                attributes={} if sample is None else {"Sample": rows[mine[0]][1][sample]},
            )
        )


def _check_counts(recording: Recording) -> None:
    """Wells of one scan have as many points; a truncated file ends within one."""
    if not recording.traces:
        raise recording.fail("no result in any well; the file seems to be truncated.")
    first = recording.traces[0]
    for trace in recording.traces:
        if len(trace.values) != len(first.values):
            raise recording.fail(
                f"well {trace.name} ({trace.place}) has {len(trace.values)} points and {first.name} "
                f"{len(first.values)}; the file seems to be truncated, so export it again."
            )
