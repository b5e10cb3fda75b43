"""Workbooks of Excel and LibreOffice (.xlsx, .xlsb, .ods), through the package ``python-calamine`` of the extra
``readers``; any other ZIP archive is refused by its name.

Every sheet with a table of spectra is read as text would be, but for the numbers, which a workbook holds as numbers: no
decimal mark and no thousands have to be told. Numbers that a sheet holds as text are read as those of a text are, with
the same doubts. A cell shown as percent is the percentage, and a merged header heads each of its columns. Several such
sheets are several series, to be selected by their names.
"""

from __future__ import annotations

import inspect
import json
import zipfile
from pathlib import Path

from geonode.data.readers import foreign, sheet_marks
from geonode.data.readers.base import READERS, Particularity, Reader
from geonode.data.readers.concentrations import listing
from geonode.data.readers.percent_cells import spectra_as_shown
from geonode.data.readers.recording import Recording
from geonode.data.readers.spectratable import read_spectra
from geonode.data.readers.tablefinder import looks_like_a_table
from geonode.errors import ReaderError
from geonode_runtime.wording import argument

_ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
# Runs in a process of its own: numbers as Python writes them, anything else as text.
_CODE = r"""
import re
from python_calamine import CalamineWorkbook
marked = re.compile(r'\s*[+-]?\d*[.,]\d[\d.,]*(?:[eE][+-]?\d+)?\s*|\s*[+-]?\d+[.,][\d.,]*\s*')
def cell(value):
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return '' if value is None else str(value)
book = CalamineWorkbook.from_path(path)
sheets, cells, written, merged, marks = {}, 0, [], [], marks_of(path)
for name in book.sheet_names:
    content = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
    rows = [[cell(value) for value in row] for row in content]
    if any(isinstance(value, str) and marked.fullmatch(value) for row in content for value in row):
        written.append(name)
    cells += sum(map(len, rows))
    if cells > 6_000_000:
        raise ValueError('more than 6000000 cells, which no set of standards has')
    if name in marks and write_as_shown(rows, *marks[name]):
        merged.append(name)
    sheets[name] = rows
found, meta = [], {'sheets': json.dumps(sheets), 'written': json.dumps(written), 'merged': json.dumps(merged)}
"""


class SheetsDifferError(ReaderError):
    """Sheets that cannot be read together: the text says which to name."""


@READERS.register("workbook")
class WorkbookReader(Reader):
    """Excel and OpenDocument workbooks, one sheet or several."""

    format = "workbook"
    summary = "workbook of Excel or LibreOffice: .xlsx, .xlsb, .ods (needs the extra 'readers')"
    particularity = Particularity.SIGNATURE
    has_sheets = True

    def sniff(self, head: bytes) -> bool:
        """The signature of a ZIP archive, which every workbook is."""
        return head.startswith(_ZIP)

    def read(self, path: Path) -> Recording:
        """Read every sheet that has a table of spectra.

        Raises:
            ReaderError: another archive, without the package, damaged, no sheet with spectra, sheets whose units
                differ.
        """
        recording = self.recording(path, signal="signal")
        recording.format = _kind(path)
        code = inspect.getsource(sheet_marks) + _CODE
        _, meta = foreign.parse("python_calamine", "python-calamine", code, recording, "save the sheet as CSV")
        shown = {name: spectra_as_shown(rows) for name, rows in json.loads(meta["sheets"]).items()}
        sheets = {name: _lines(rows) for name, (rows, _) in shown.items()}
        told = {name: said for name, (_, said) in shown.items()}
        for name in json.loads(meta["merged"]):
            told[name].append("each column under a merged header is headed by it")
        if self.options.sheet:
            name = _chosen(sheets, self.options.sheet, recording)
            sheets = {name: sheets[name]}
        tables = {name: lines for name, lines in sheets.items() if looks_like_a_table(lines)}
        if not tables:
            raise recording.fail(
                f"a workbook with no table of spectra in its sheets ({listing(sheets) or 'none'}); have one wavelength "
                "a row, and the samples in columns headed by their concentration."
            )
        written = json.loads(meta["written"])
        for name, lines in tables.items():
            try:
                _read_sheet(name, lines, len(tables) > 1, name not in written, recording)
                recording.notes += [f"sheet '{name}': {said}" if len(tables) > 1 else said for said in told[name]]
            except ReaderError as error:
                others = [other for other in tables if other != name]
                if not others or isinstance(error, SheetsDifferError):
                    raise
                raise ReaderError(
                    f"{str(error).removesuffix('.')}; where sheet '{name}' is not meant, name the one that is, such as "
                    f"{argument('sheet', others[0])}."
                ) from None
        other = [name for name in sheets if name not in tables and any(map(str.strip, sheets[name]))]
        if other:
            recording.notes.append(f"sheets without spectra not read: {listing(other)}")
        return recording


def _chosen(sheets: dict[str, list[str]], wanted: str, recording: Recording) -> str:
    """The name of the sheet of this name, upper and lower case alike, or of this number, from 1."""
    called = [name for name in sheets if name.strip().casefold() == wanted.strip().casefold()]
    if not called and wanted.isdigit() and 1 <= int(wanted) <= len(sheets):
        called = [list(sheets)[int(wanted) - 1]]
    if len(called) != 1:
        raise recording.fail(f"no sheet is named '{wanted}'; there are {listing(sheets)}.")
    return called[0]


def _kind(path: Path) -> str:
    """Which workbook an archive is.

    Raises:
        ReaderError: it is none, or damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            kind = archive.read("mimetype")[:200].decode("latin-1") if "mimetype" in names else ""
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError, ValueError, KeyError):
        raise ReaderError(
            f"{path}: a ZIP archive, as workbooks are, and damaged or cut off; copy it anew, or save the sheet as CSV."
        ) from None
    if any(name.startswith("xl/") for name in names):
        return "Excel workbook"
    if "spreadsheet" in kind:
        return "OpenDocument workbook"
    first = listing(names[:3]) or "nothing"
    raise ReaderError(
        f"{path}: a ZIP archive that holds {first}, and no workbook of spectra; unpack it, or export the spectra as "
        "text (CSV)."
    )


def _lines(rows: list[list[str]]) -> list[str]:
    return ["\t".join(" ".join(cell.split()) for cell in row) for row in rows]


def _read_sheet(name: str, lines: list[str], several: bool, typed: bool, recording: Recording) -> None:
    """The spectra of one sheet, added to the recording; of several sheets each is a series.

    Where none of its numbers is ``typed``, as text is, the decimal mark that was said counts.
    """
    part = Recording(recording.path, recording.format, [], signal="signal", numbers_are_typed=typed)
    part.decimal = "" if typed else recording.decimal
    try:
        read_spectra(lines, part)
    except ReaderError as error:
        raise recording.fail(f"sheet '{name}': {str(error).removeprefix(f'{recording.path}: ')}") from None
    for trace in part.traces:
        trace.place = f"sheet '{name}', {trace.place}"
        if several:
            trace.series = " ".join(filter(None, [name, trace.series]))
            trace.name = f"{name}: {trace.name}"
    for attribute in ("wavelength_unit", "signal", "signal_unit", "concentration_unit"):
        mine, theirs = getattr(recording, attribute), getattr(part, attribute)
        if recording.traces and mine != theirs:
            first = recording.traces[0].place.split("'")[1]
            if not any(trace.concentration for trace in part.traces) and any(t.concentration for t in recording.traces):
                raise SheetsDifferError(
                    f"{recording.path}: its sheet '{first}' says concentrations and '{name}' none; name that of the "
                    f"standards ({argument('sheet', first)}), or give '{name}' concentrations too."
                )
            what = f"differ in {attribute.replace('_', ' ')} ({mine or 'none'} and {theirs or 'none'})"
            raise SheetsDifferError(
                f"{recording.path}: its sheets {what}; say which is meant, such as {argument('sheet', first)}."
            )
        setattr(recording, attribute, theirs)
    recording.concentrations_from = recording.concentrations_from or part.concentrations_from
    recording.mask_reasons += part.mask_reasons
    where = f"sheet '{name}': " if several else ""
    recording.notes += [where + note for note in part.notes if not note.startswith("read as separated")]
    recording.on_concentrations += [where + note for note in part.on_concentrations]
    recording.traces += part.traces
