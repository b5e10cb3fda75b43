"""Ocean Optics SpectraSuite and OceanView text: a header, a ``>>>>>…<<<<<`` marker in any language, then pairs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from geonode.data.readers import names, table, text
from geonode.data.readers.base import READERS, Particularity, Reader
from geonode.data.readers.recording import Recording, Trace

_MARKER = re.compile(r"^>{4,}.*<{4,}", re.MULTILINE)
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
        end = next((i for i, line in enumerate(lines[start + 1 :], start + 1) if _MARKER.match(line)), None)
        body = [(i + 1, lines[i]) for i in range(start + 1, len(lines) if end is None else end) if lines[i].strip()]
        dialect = table.detect_dialect([line for _, line in body])
        if dialect is None:
            raise recording.fail("no pairs of numbers below the >>>>> marker; the file seems to be truncated.")
        rows = [(i, dialect.split(line)) for i, line in body]
        wrong = next((i for i, row in rows if len(row) != 2), None)
        if wrong is not None:
            raise recording.fail(f"row {wrong} is not a pair of numbers; repair or remove that row.")
        columns = table.read_columns(rows, (0, 1), dialect, recording)
        _check_pixels(lines[:start], len(rows), recording)
        recording.mask_reasons = columns.reasons
        masked = columns.masked[:, 1]
        recording.traces.append(
            Trace(
                path.stem,
                columns.values[:, 0],
                columns.values[:, 1],
                f"row {start + 2} on",
                masked=masked,
                keys=(path.name, path.stem),
            )
        )
        recording.notes.append(f"read as {dialect.words}; the file does not say what was measured")
        _note_wild_values(recording.traces[0], recording)
        names.set_concentrations_from_names(recording, "the name of the file")
        return recording


def _check_pixels(header: list[str], found: int, recording: Recording) -> None:
    """``Number of Pixels in Processed Spectrum: 2048``, the last number of the last header line in any language."""
    last = next((line for line in reversed(header) if ":" in line), "")
    stated = last.rpartition(":")[2].strip()
    if "pix" in last.lower() and stated.isascii() and stated.isdigit() and int(stated[:9]) != found:
        raise recording.fail(
            f"{found} points but the header says {stated[:9]}; the file seems to be truncated, so export it again."
        )


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
