"""Delimited text that no particular reader knows: any delimiter and decimal mark, samples in columns or in rows."""

from __future__ import annotations

from pathlib import Path

from geonode.data.readers import table, text
from geonode.data.readers.base import READERS, Particularity, Reader
from geonode.data.readers.recording import Recording
from geonode.data.readers.spectratable import read_spectra
from geonode.data.readers.tablefinder import looks_like_a_table


@READERS.register("delimited")
class DelimitedReader(Reader):
    """Any other table of numbers."""

    format = "delimited text"
    summary = "delimited text of any locale (samples in columns or rows)"
    particularity = Particularity.SHAPE

    def sniff(self, head: bytes) -> bool:
        """Three rows of numbers, in any dialect."""
        return looks_like_a_table(text.decode_head(head).split("\n")[:2000])

    def read(self, path: Path) -> Recording:
        """Read a table of spectra.

        Raises:
            ReaderError: no table, no axis of wavelengths, a row of the wrong length, a cell that is no number.
        """
        recording = self.recording(path, signal="signal")
        content = text.read_text(path)
        table.count_cells(content, recording)
        lines = content.split("\n")
        del content  # as large as the lines
        return read_spectra(lines, recording)
