"""Ocean Optics SpectraSuite and OceanView text: a header, a ``>>>>>…<<<<<`` marker in any language, then pairs.

A Jaz writes five columns below the marker, headed W, D, R, S and P: wavelength, dark, reference, sample, and the
spectrum processed from them, which is what is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from geonode.data.readers import names, table, text, units
from geonode.data.readers.base import READERS, Particularity, Reader
from geonode.data.readers.dialect import Dialect, detect_dialect
from geonode.data.readers.recording import Recording, Trace

_MARKER = re.compile(r"^>{4,}.*<{4,}", re.MULTILINE)
_COLUMNS = {
    **{"W": "wavelength", "D": "dark", "R": "reference", "S": "sample", "P": "processed"},
}
_AXIS_MODE = re.compile(r"\s*x.?axis mode\s*:", re.I)
# Where the lamp gives no light, a ratio of counts is anything at all: this many times the 90th percentile is wild.
WILD = 20.0


@READERS.register("ocean")
class OceanReader(Reader):
    """Ocean Optics and OceanView text, one spectrum a file."""

    format = "Ocean Optics text"
    summary = "Ocean Optics / OceanView text (>>>>>…<<<<<)"
    particularity = Particularity.MARK

    def sniff(self, head: bytes) -> bool:
        """A marker of arrows, in any language."""
        return bool(_MARKER.search(text.decode_head(head)))

    def read(self, path: Path) -> Recording:
        """Read an Ocean Optics text file.

        Raises:
            ReaderError: no values below the marker, a row that is no pair, fewer pixels than the header says.
        """
        recording = self.recording(path, signal="signal")
        content = text.read_text(path)
        table.count_cells(content, recording)
        lines = content.split("\n")
        start = next(i for i, line in enumerate(lines) if _MARKER.match(line))
        end = next((i for i, line in enumerate(lines[start + 1 :], start + 1) if _MARKER.match(line)), len(lines))
        body = table.Lines.of(lines, start + 1, end)
        dialect = detect_dialect(body.texts, decimal=recording.decimal)
        if dialect is None:
            raise recording.fail("no pairs of numbers below the >>>>> marker; the file seems to be truncated.")
        header = dialect.split(body.texts[0])
        header = header if dialect.number(header[0]) is None and len(header) > 1 else None
        body = body if header is None else body[1:]
        axis, at = _columns(header, body, dialect, recording)
        columns = table.read_columns(body, (axis, at), dialect, recording)
        _set_axis_unit(lines[:start], recording)
        _check_pixels(lines[:start], len(body), recording)
        recording.mask_reasons = columns.reasons
        recording.traces.append(
            Trace(
                path.stem,
                columns.values[:, 0],
                columns.values[:, 1],
                f"row {body.numbers[0]} on",
                masked=columns.masked[:, 1],
                keys=(path.name, path.stem),
            )
        )
        recording.notes.append(f"read as {dialect.words}; the file does not say what was measured")
        _note_wild_values(recording.traces[0], recording)
        names.set_concentrations_from_names(recording, "the name of the file")
        return recording


def _columns(header: list[str] | None, body: table.Lines, dialect: Dialect, recording: Recording) -> tuple[int, int]:
    """(axis, values): two columns, or those that the header calls wavelength (W) and processed (P)."""
    width = 2 if header is None else len(header)
    if not len(body):
        raise recording.fail("no pairs of numbers below the >>>>> marker; the file seems to be truncated.")
    widths = {len(_cells(line, dialect)) for _, line in body}
    if header is None and len(widths) == 1 and (many := widths.pop()) > 2:
        raise recording.fail(
            f"{many} columns below the marker and no header that says what they are; export the processed spectrum "
            "alone, or write the names of the columns below the marker (W and P)."
        )
    wrong = next((number for number, line in body if len(_cells(line, dialect)) != width), None)
    if wrong is not None:
        what = "a pair of numbers" if width == 2 else f"{width} numbers, as the header has"
        raise recording.fail(f"row {wrong} is not {what}; repair or remove that row.")
    if header is None or width == 2:
        return 0, 1
    axis = next((k for k, cell in enumerate(header) if cell.upper() == "W" or units.wavelength_unit(cell)), 0)
    processed = [k for k, cell in enumerate(header) if cell.upper() == "P" or cell.lower().startswith("processed")]
    finished = [k for k, cell in enumerate(header) if k != axis and _is_finished(cell)]
    if len(processed or finished) != 1:
        raise recording.fail(
            f"{width} columns below the marker ({', '.join(map(text.shorten, header))}), and none of them is called P "
            "or processed; export the processed spectrum alone."
        )
    values = (processed or finished)[0]
    others = [_COLUMNS.get(cell.upper(), cell) for k, cell in enumerate(header) if k not in (axis, values)]
    recording.notes.append(f"the processed spectrum was read; left out: {', '.join(others)}")
    return axis, values


def _is_finished(header: str) -> bool:
    return (units.signal_of(header) or ("",))[0] in ("absorbance", "transmittance", "reflectance")


def _set_axis_unit(header: Sequence[str], recording: Recording) -> None:
    """What OceanView's header says of the abscissa (``XAxis mode: Raman Shifts``); nm where it says nothing."""
    said = next((line.partition(":")[2].strip() for line in header if _AXIS_MODE.match(line)), "")
    if not said:
        return
    unit = units.wavelength_unit(said)
    if unit is None:
        recording.notes.append(f"the abscissa is no wavelength: the file says '{text.shorten(said)}'")
    recording.wavelength_unit = unit or ""


def _cells(line: str, dialect: Dialect) -> list[str]:
    cells = dialect.split(line)
    while len(cells) > 2 and not cells[-1]:
        cells.pop()
    return cells


def _check_pixels(header: Sequence[str], found: int, recording: Recording) -> None:
    """``Number of Pixels in Processed Spectrum: 2048``, the last number of the last header line in any language."""
    last = next((line for line in reversed(header) if ":" in line), "")
    stated = last.rpartition(":")[2].strip()
    if "pix" not in last.lower() or not (stated.isascii() and stated.isdigit()):
        return
    recording.require_points(found, int(stated[:9]))


def _note_wild_values(trace: Trace, recording: Recording) -> None:
    size = np.abs(trace.values[np.isfinite(trace.values)])
    usual = float(np.percentile(size, 90)) if size.size else 0.0
    wild = size > WILD * usual
    if usual > 0 and wild.any():
        x = trace.wavelengths[np.isfinite(trace.values)][wild]
        recording.notes.append(
            f"{int(wild.sum())} values between {x.min():g} and {x.max():g} {recording.wavelength_unit} exceed {WILD:g} "
            "times what 90 % of the spectrum reaches; kept, so select a range of wavelengths without them"
        )
