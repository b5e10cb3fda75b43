"""BMG CLARIOstar (MARS) export: a header padded with commas, wells in rows, wavelengths in columns.

A standard's concentration is told by its dilution alone: 1/dilution, relative to the stock. ``Blank`` rows carry
dilution 1 too, and are concentration 0; ``X`` samples are unknowns.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from geonode.data.readers import table, text
from geonode.data.readers.base import READERS, Particularity, Reader
from geonode.data.readers.dialect import Dialect, detect_dialect
from geonode.data.readers.recording import Recording, Trace


@READERS.register("clariostar")
class ClariostarReader(Reader):
    """BMG CLARIOstar, wells in rows."""

    format = "BMG CLARIOstar export"
    summary = "BMG CLARIOstar (wells in rows, wavelengths in columns)"
    particularity = Particularity.MARK

    def sniff(self, head: bytes) -> bool:
        """``User:``, then ``Path:`` or ``Test ID:`` in the lines below."""
        lines = text.decode_head(head[:16384]).split("\n")[:4]
        return lines[0].startswith("User:") and any(line.startswith(("Path:", "Test ID:")) for line in lines[1:])

    def read(self, path: Path) -> Recording:
        """Read a CLARIOstar export of absorbance spectra.

        Raises:
            ReaderError: no row of wavelengths, a row of the wrong length, a cell that is no number.
        """
        recording = self.recording(path)
        content = text.read_text(path)
        table.count_cells(content, recording)
        lines = content.split("\n")
        start = next((i for i, line in enumerate(lines) if line.lower().startswith("well")), None)
        dialect = None if start is None else detect_dialect(lines[start + 1 :], decimal=self.options.decimal)
        if start is None or dialect is None:
            raise recording.fail(
                "no table of wells below the header; the file seems to be truncated, so export it again."
            )
        header = dialect.split(lines[start])
        while header and not header[-1]:
            header.pop()
        words = [k for k, cell in enumerate(header) if dialect.number(cell) is None]
        first = words[-1] + 1 if words else 0
        if first == len(header):
            raise recording.fail(f"row {start + 1} names no wavelengths; export the spectrum, not a single reading.")
        if first - 1 in words and any(k not in words for k in range(first)):
            raise recording.fail(
                f"row {start + 1}, column {first} is '{text.shorten(header[first - 1])}', which stands among the "
                "wavelengths and is none; repair that cell."
            )
        wavelengths = np.array([dialect.number(cell) for cell in header[first:]], dtype=np.float64)
        labels = header[:first]
        preamble = "\n".join(lines[:start])
        recording.signal = "absorbance" if re.search(r"absorbance|abs spectrum", preamble, re.I) else "signal"
        recording.signal_unit = "OD" if "OD" in preamble and recording.signal == "absorbance" else ""
        rows = table.Lines.of(lines, start + 1)
        columns = table.read_columns(rows, range(first, len(header)), dialect, recording, len(header))
        recording.mask_reasons = columns.reasons
        for k, (number, line) in enumerate(rows):
            row = dialect.split(line)[:first]
            attributes = dict(zip(labels, row, strict=False))
            well = row[0]
            recording.traces.append(
                Trace(
                    " ".join(dict.fromkeys([*row[1:2], well])),
                    wavelengths,
                    columns.values[k],
                    f"row {number}",
                    masked=columns.masked[k],
                    attributes=attributes,
                    keys=(well,),
                )
            )
        _set_concentrations(recording, dialect)
        return recording


def _set_concentrations(recording: Recording, dialect: Dialect) -> None:
    blanks, unknowns, standards = 0, 0, 0
    for trace in recording.traces:
        label = {name.casefold(): cell for name, cell in trace.attributes.items()}
        sample = label.get("sample", label.get("content", "")).casefold()
        dilution = dialect.number(label.get("dilution", ""))
        if sample.startswith("blank"):
            trace.concentration = (0.0,)
            blanks += 1
        elif sample.startswith("x") or "unknown" in sample:
            trace.unknown = True
            unknowns += 1
        elif dilution is not None and dilution > 0:
            trace.concentration = (1.0 / dilution,)
            trace.name += f" 1/{dilution:g}"
            standards += 1
    if standards:
        recording.concentrations_from = "the column 'Dilution'"
        recording.concentration_unit = "relative"
        recording.on_concentrations.append("concentration taken as 1/dilution, relative to the stock")
    if blanks:
        recording.on_concentrations.append(f"{blanks} blank{'s' if blanks > 1 else ''} taken as concentration 0")
        recording.concentrations_from = recording.concentrations_from or "the blanks"
    if unknowns:
        recording.notes.append(f"{unknowns} sample{'s' if unknowns > 1 else ''} marked X: unknowns, no standards")
