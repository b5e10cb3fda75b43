"""NanoDrop series export: an empty first header cell, a number for each column, wavelengths below.

The columns' numbers are in no order of samples; what each one is stands in a sidecar of the same name (``.txt``) or in
another table that the caller names.
"""

from __future__ import annotations

from pathlib import Path

from geonode.data.readers import table, text
from geonode.data.readers.base import READERS, Particularity, Reader
from geonode.data.readers.recording import Recording, Trace

_DIALECT = table.Dialect(",", ".")


@READERS.register("nanodrop")
class NanoDropReader(Reader):
    """NanoDrop, numbered columns."""

    format = "NanoDrop series export"
    summary = "NanoDrop (empty first header cell, numbered columns)"
    particularity = Particularity.HEADER
    sidecars = (".txt", ".csv", ".tsv")

    def sniff(self, head: bytes) -> bool:
        """Line 1 is an empty cell and distinct whole numbers; line 2 begins with a wavelength."""
        lines = text.decode_head(head).split("\n", 2)
        cells = _DIALECT.split(lines[0])
        numbers = [cell for cell in cells[1:] if cell.isascii() and cell.isdigit()]
        if (
            len(lines) < 2
            or cells[0]
            or not numbers
            or len(numbers) != len(cells) - 1
            or len(set(numbers)) != len(numbers)
        ):
            return False
        wavelength = _DIALECT.number(_DIALECT.split(lines[1])[0])
        return wavelength is not None and 100 <= wavelength <= 3000

    def read(self, path: Path) -> Recording:
        """Read a NanoDrop series.

        Raises:
            ReaderError: a row of the wrong length, a cell that is no number.
        """
        recording = self.recording(path, signal="absorbance")
        content = text.read_text(path)
        table.count_cells(content, recording)
        lines = content.split("\n")
        header = _DIALECT.split(lines[0])
        rows = [(i, _DIALECT.split(line)) for i, line in enumerate(lines[1:], start=2) if line.strip(" ,")]
        columns = table.read_columns(rows, range(len(header)), _DIALECT, recording, len(header))
        recording.mask_reasons = columns.reasons
        for k in range(1, len(header)):
            masked = columns.masked[:, k]
            recording.traces.append(
                Trace(
                    header[k],
                    columns.values[:, 0],
                    columns.values[:, k],
                    f"column {k + 1}",
                    masked=masked,
                    keys=(header[k],),
                )
            )
        return recording
