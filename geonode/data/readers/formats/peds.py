"""PerkinElmer PEDS ASCII (FL WinLab, UV WinLab): a fixed header, ``#HDR``, ``#GR``, ``#DATA``, then pairs."""

from __future__ import annotations

from pathlib import Path

from geonode.data.readers import names, table, text, units
from geonode.data.readers.base import READERS, Particularity, Reader
from geonode.data.readers.dialect import Dialect
from geonode.data.readers.recording import Recording, Trace

_SIGNALS = {"FL": "fluorescence", "UV": "absorbance", "IR": "absorbance"}
_UNITS = {"NM": "nm", "CM-1": "cm-1", "CM": "cm-1"}


@READERS.register("peds")
class PedsReader(Reader):
    """PerkinElmer PEDS ASCII, one spectrum a file."""

    format = "PerkinElmer PEDS ASCII"
    summary = "PerkinElmer PEDS ASCII"
    particularity = Particularity.MARK

    def sniff(self, head: bytes) -> bool:
        """``PE``, the kind of instrument, ``SPECTRUM``, ``ASCII``, ``PEDS`` in line 1."""
        words = text.decode_head(head[:512]).split("\n", 1)[0].split()
        return len(words) >= 4 and words[0] == "PE" and "PEDS" in words and "ASCII" in words

    def read(self, path: Path) -> Recording:
        """Read a PEDS file; the concentration is nowhere in it.

        Raises:
            ReaderError: no ``#DATA``, a cell that is no number, fewer points than the header says.
        """
        recording = self.recording(path)
        content = text.read_text(path)
        table.count_cells(content, recording)
        lines = [line.strip() for line in content.split("\n")]
        if "#DATA" not in lines:
            raise recording.fail("the line #DATA is missing; the file seems to be truncated, so export it again.")
        start = lines.index("#DATA")
        body = table.Lines.of(lines, start + 1)
        dialect = Dialect(" ", "," if any("," in line for line in body.texts) else ".")
        wrong = next((number for number, line in body if len(line.split()) != 2), None)
        if wrong is not None:
            raise recording.fail(f"row {wrong} is not a pair of numbers; repair or remove that row.")
        if not len(body):
            raise recording.fail("no value below #DATA; the file seems to be truncated, so export it again.")
        columns = table.read_columns(body, (0, 1), dialect, recording)
        _check_points(lines[:start], len(body), recording)
        recording.mask_reasons = columns.reasons
        recording.signal = _SIGNALS.get(lines[0].split()[1], "signal")
        graph = lines[lines.index("#GR") + 1 : start] if "#GR" in lines[:start] else []
        said = graph[0] if graph else "NM"
        recording.wavelength_unit = _UNITS.get(said.upper()) or units.wavelength_unit(said) or ""
        if not recording.wavelength_unit:
            recording.notes.append(f"the abscissa is no wavelength: the file says '{text.shorten(said)}'")
        own = lines[2] if len(lines) > 2 and lines[2] else path.stem
        masked = columns.masked[:, 1]
        recording.traces.append(
            Trace(
                own,
                columns.values[:, 0],
                columns.values[:, 1],
                f"line {start + 2} on",
                masked=masked,
                keys=(path.name, path.stem, own),
            )
        )
        names.set_concentrations_from_names(recording, "the name of the spectrum")
        return recording


def _check_points(header: list[str], found: int, recording: Recording) -> None:
    """The header's number of points, the seventh line after ``#GR``, agrees with what is there."""
    if "#GR" not in header:
        return
    graph = header[header.index("#GR") + 1 :]
    stated = text.number(graph[6]) if len(graph) > 6 else None
    if stated is not None:
        recording.require_points(found, stated)
