"""A small CSV that lists files of one spectrum each: ``file``, ``concentration`` and, if wanted, ``group``.

Other columns of numbers are further analytes if no column is called a concentration. Paths are relative to the CSV; a
column ``spectrum`` picks one of several in a file by its name.
"""

from __future__ import annotations

from pathlib import Path

from geonode.data.readers import text
from geonode.data.readers.base import READERS, Particularity, Reader, ReadingOptions
from geonode.data.readers.concentration_table import ConcentrationTable, read_table, split_unit
from geonode.data.readers.concentrations import listing, set_values
from geonode.data.readers.dilutions import untold_dilution
from geonode.data.readers.joining import normalise
from geonode.data.readers.recognition import read_file, recognise
from geonode.data.readers.recording import Recording, Trace
from geonode.errors import ReaderError

MOST_FILES = 2000

_FILE = (
    *("file", "files", "filename", "file name", "path", "datei", "dateiname", "fichier", "nom du fichier", "archivo"),
    *("fichero", "bestand", "arquivo", "文件", "ファイル"),
)
_GROUP, _SPECTRUM = ("group", "replicate group"), ("spectrum",)


@READERS.register("manifest")
class ManifestReader(Reader):
    """A list of files, each with its concentration."""

    format = "list of files"
    summary = "CSV that lists files with their concentrations (file, concentration, group)"
    particularity = Particularity.HEADER
    lists_files = True

    def sniff(self, head: bytes) -> bool:
        """A header with a column ``file`` and at least one other."""
        first = next((line for line in text.decode_head(head).split("\n") if line.strip()), "")
        for mark in "\t;,":
            cells = [split_unit(cell.strip().strip('"'))[0].lower() for cell in first.split(mark)]
            if len(cells) > 1:
                return any(cell in _FILE for cell in cells)
        return False

    def read(self, path: Path) -> Recording:
        """Read every file that the list names.

        Raises:
            ReaderError: no column of concentrations, a file that cannot be read or holds several spectra, a list of
                lists.
        """
        found = read_table(path, self.options.decimal)
        file = _column(found, _FILE)
        group, spectrum = _column(found, _GROUP), _column(found, _SPECTRUM)
        if file is None:
            raise found.fail("no column 'file'; head the column of file names so.")
        if len(found.rows) > MOST_FILES:
            raise found.fail(
                f"{len(found.rows)} files, more than {MOST_FILES}; write one data set with SpectralDataset.save."
            )
        analytes = _analytes(found, {file, group, spectrum})
        recording = self.recording(path, concentrations_from=f"{path.name}, {listing(analytes)}", repairs=False)
        recording.analytes = None if len(analytes) == 1 and "conc" in analytes[0].lower() else tuple(analytes)
        if not analytes:
            recording.concentrations_from, recording.analytes = "", None
        if len(analytes) == 1:
            values = [found.value(k, analytes[0]) for k in range(len(found.rows))]
            others = {name: [row.get(name, "") for row in found.rows] for name in found.header if name != analytes[0]}
            if why := untold_dilution(analytes[0], values, others, found.dialect.number):
                recording.untold = found.fail(why)
        formats: dict[str, int] = {}
        for k, row in enumerate(found.rows):
            part = _read_one(found, k, row[file], row.get(spectrum, "") if spectrum else "", self.options)
            trace = part.traces[0]
            set_values(trace, [found.value(k, name) for name in analytes])
            trace.attributes = {name: cell for name, cell in row.items() if name not in (file, spectrum)}
            trace.group = row[group] if group and row[group] else None
            trace.name, trace.place, trace.series = row[file], f"row {found.line(k)}", ""
            trace.keys = (row[file], Path(row[file]).stem)
            _merge(recording, part, row[file])
            if not analytes and trace.concentration is not None:  # else the list's own values replace the file's
                _take_concentrations(recording, part, row[file])
            recording.traces.append(trace)
            formats[part.format] = formats.get(part.format, 0) + 1
        units = {found.units.get(name, "") for name in analytes}  # stated in the header, or in the cells
        if analytes:
            recording.concentration_unit = units.pop() if len(units) == 1 else ""
        recording.format = f"{self.format} ({', '.join(f'{n} {name}' for name, n in formats.items())})"
        return recording


def files_listed(path: Path) -> list[Path]:
    """The files that a list names, there or not; none where the file is no list or cannot be read as one."""
    try:
        if not isinstance(recognise(path), ManifestReader):
            return []
        found = read_table(path)
    except ReaderError:
        return []
    file = _column(found, _FILE)
    return [path.parent / row[file] for row in found.rows if file is not None and row[file]]


def _column(found: ConcentrationTable, called: tuple[str, ...]) -> str | None:
    return next((name for name in found.header if name.lower() in called), None)


def _analytes(found: ConcentrationTable, taken: set[str | None]) -> list[str]:
    """The column that is called a concentration, whatever its cells; else every column of numbers."""
    candidates = [name for name in found.header if name not in taken]
    numeric = [name for name in candidates if found.is_numeric(name) and found.may_be_concentration(name)]
    called = [name for name in candidates if found.is_called_concentration(name)]
    called = [name for name in called if name in numeric] or called
    return called[:1] if called else numeric


def _read_one(found: ConcentrationTable, k: int, name: str, spectrum: str, options: ReadingOptions) -> Recording:
    """The recording of one listed file, cut down to its one spectrum."""
    place = f"row {found.line(k)}"
    if not name:
        raise found.fail(f"{place} names no file; complete or remove that row.")
    try:
        path = found.path.parent / name
        if isinstance(recognise(path), ManifestReader):
            raise found.fail(
                f"{place} lists '{text.shorten(name)}', which is a list of files itself; list the spectra."
            )
        part = read_file(path, options)
    except ReaderError as error:
        raise found.fail(f"{place} lists a file that cannot be read: {error}") from None
    traces: list[Trace] = part.traces
    if spectrum:
        traces = [trace for trace in traces if normalise(trace.name) == normalise(spectrum)]
    if len(traces) != 1:
        there = listing(trace.name for trace in part.traces)
        raise found.fail(
            f"{place} lists '{text.shorten(name)}', which holds {len(traces)} spectra to choose from ({there}); name "
            "one in a column 'spectrum'."
        )
    part.traces = traces
    return part


def _merge(recording: Recording, part: Recording, name: str) -> None:
    """Units and notes of one file into those of the list; units that contradict are refused."""
    for attribute in ("wavelength_unit", "signal", "signal_unit"):
        mine, theirs = getattr(recording, attribute), getattr(part, attribute)
        if attribute.startswith("signal") and part.signal == "signal" and recording.traces:
            continue  # a file that does not say what was measured agrees with any other
        if (
            recording.traces
            and mine != theirs
            and not (attribute.startswith("signal") and recording.signal == "signal")
        ):
            what = attribute.replace("_", " ")
            raise recording.fail(f"'{name}' differs from the files before it in {what} ({theirs} and {mine}).")
    if not recording.traces or recording.signal == "signal":
        recording.signal, recording.signal_unit = part.signal, part.signal_unit
    recording.wavelength_unit = part.wavelength_unit
    recording.notes += [note for note in part.notes if note not in recording.notes]


def _take_concentrations(recording: Recording, part: Recording, name: str) -> None:
    """What one file says of its concentration, where the list has none; another unit or other analytes are refused."""
    mine, theirs = ((r.concentration_unit, tuple(r.analytes or ())) for r in (recording, part))
    if recording.concentrations_from and mine != theirs:
        what, k = ("unit of concentration", 0) if mine[0] != theirs[0] else ("analytes", 1)
        raise recording.fail(f"'{name}' differs from the files before it in {what} ({theirs[k]} and {mine[k]}).")
    recording.concentrations_from = part.concentrations_from
    recording.concentration_unit, recording.analytes = part.concentration_unit, part.analytes
    recording.on_concentrations += [note for note in part.on_concentrations if note not in recording.on_concentrations]
