"""Shimadzu UVProbe text: a title in quotes, ``"Wavelength nm."`` and ``"Abs."`` in quotes, then pairs; any locale."""

from __future__ import annotations

import re
from pathlib import Path

from geonode.data.readers import names, table, text, units
from geonode.data.readers.base import READERS, Particularity, Reader
from geonode.data.readers.dialect import detect_dialect
from geonode.data.readers.recording import Recording, Trace

_HEAD = re.compile(
    r'^"?(Wavelength|Wellenlänge|Longueur d.onde|Longitud de onda|Lunghezza d.onda|Comprimento de onda|波長|波长)'
    r' nm\.?"?\s*[\t,;]',
    re.IGNORECASE,
)


@READERS.register("shimadzu")
class ShimadzuReader(Reader):
    """Shimadzu UVProbe text."""

    format = "Shimadzu UVProbe text"
    summary = "Shimadzu UVProbe text"
    particularity = Particularity.MARK

    def sniff(self, head: bytes) -> bool:
        """Line 2 (or 1, exported without its title) begins with ``"Wavelength nm."``."""
        return any(_HEAD.match(line) for line in text.decode_head(head[:4096]).split("\n", 2)[:2])

    def read(self, path: Path) -> Recording:
        """Read a UVProbe text export.

        Raises:
            ReaderError: no values, a row of the wrong length, a cell that is no number.
        """
        recording = self.recording(path)
        content = text.read_text(path)
        table.count_cells(content, recording)
        lines = content.split("\n")
        start = next(i for i, line in enumerate(lines[:2]) if _HEAD.match(line))
        body = table.Lines.of(lines, start + 1)
        dialect = detect_dialect(body.texts, decimal=recording.decimal)
        if dialect is None:
            raise recording.fail("a header but no rows of numbers below it; the file seems to be truncated.")
        header = [cell.strip('"') for cell in dialect.split(lines[start])]
        while header and not header[-1]:
            header.pop()
        if len(header) < 2:
            raise recording.fail("a header without a column of values; export the spectrum again.")
        title = lines[0].strip().strip('"') if start else path.stem
        columns = table.read_columns(body, range(len(header)), dialect, recording, len(header))
        recording.mask_reasons = columns.reasons
        signal = units.signal_of(header[1].rstrip("."))
        recording.signal, recording.signal_unit = signal or ("signal", "")
        for k in range(1, len(header)):
            name = title if len(header) == 2 else f"{title} {header[k]}"
            masked = columns.masked[:, k]
            recording.traces.append(
                Trace(
                    name,
                    columns.values[:, 0],
                    columns.values[:, k],
                    f"column {k + 1}",
                    masked=masked,
                    keys=(title, path.name, path.stem) if len(header) == 2 else (header[k],),
                )
            )
        recording.notes.append(f"read as {dialect.words}")
        names.set_concentrations_from_names(recording, "the title")
        return recording
