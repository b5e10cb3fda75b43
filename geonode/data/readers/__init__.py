"""Files of spectra, recognised by their content, never by their extension.

A reader is a module with ``FORMAT`` and ``SUMMARY`` (what it reads, in words), ``sniff(head: bytes) -> bool`` and
``read(path) -> Recording``. To add one, write the module and list it in `READERS`; the first that recognises a file
reads it. Nothing is guessed silently: what a reader drops, masks, averages or assumes goes into the notes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from geonode.data.dataset import SpectralDataset
from geonode.data.readers import (
    cary,
    clariostar,
    delimited,
    enspire,
    jcamp,
    manifest,
    nanodrop,
    netcdf,
    ocean,
    ole2,
    opus,
    peds,
    shimadzu,
    spc,
    tidy,
    wdf,
)
from geonode.data.readers.assemble import assemble
from geonode.data.readers.clean import clean
from geonode.data.readers.concentrations import ConcentrationTable, NoEntryError, apply_mapping, apply_table, read_table
from geonode.data.readers.inspection import Inspection, inspect_file
from geonode.data.readers.recording import Recording, Trace
from geonode.errors import InputError, ReaderError

__all__ = [
    "READERS",
    "Inspection",
    "Recording",
    "Trace",
    "inspect_file",
    "load_standards",
    "read_file",
    "recognise",
    "record",
]

# In this order: the more particular first.
READERS: tuple[ModuleType, ...] = (
    netcdf,
    ole2,
    opus,
    wdf,
    spc,
    jcamp,
    peds,
    enspire,
    clariostar,
    ocean,
    shimadzu,
    cary,
    tidy,
    manifest,
    nanodrop,
    delimited,
)

_HEAD = 2**16

PathLike = str | os.PathLike[str]
Concentrations = PathLike | Mapping[str, float | Sequence[float]]


def load_standards(
    path: PathLike | Sequence[PathLike],
    *,
    select: str | None = None,
    concentration_unit: str | None = None,
    concentrations: Concentrations | None = None,
    column: str | Sequence[str] | None = None,
) -> SpectralDataset:
    """Read the spectra of standards from one file, or from several with the same wavelengths.

    Args:
        path: a file, or a list of files.
        select: keep the spectra whose name contains this (upper and lower case alike), to choose one series; also
            ``column=value`` of a table of concentrations, ``&`` for conditions that all must hold, commas between
            alternatives: ``"H148G & pH=7.4"``.
        concentration_unit: the unit, where the file does not say it.
        concentrations: where the files do not hold them: a table (note file) by name of spectrum, well or file, or a
            mapping from such names. Spectra that it lacks, or lists as NaN, are left out and noted.
        column: the column of that table, or one for each analyte, where several may be meant.

    Returns:
        The data set; `SpectralDataset.notes` lists what was dropped, masked, averaged or assumed.

    Raises:
        ReaderError: one sentence naming the file and the place; also for fewer than three levels.
        InputError: an empty list of files, or a column where the concentrations are a mapping.
    """
    recordings = record(path, concentrations=concentrations, column=column)
    data = assemble(recordings, select=select, concentration_unit=concentration_unit)
    try:
        return data.without_masked().require_levels(3)
    except InputError as error:
        raise ReaderError(str(error)) from None


def record(
    path: PathLike | Sequence[PathLike],
    *,
    concentrations: Concentrations | None = None,
    column: str | Sequence[str] | None = None,
) -> list[Recording]:
    """What each file holds, with the concentrations of a table where one is given or lies beside the file.

    Args and errors as for `load_standards`.
    """
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not paths:
        raise InputError("load_standards: the list of files is empty; name at least one.")
    recordings = [read_file(p) for p in paths]
    if isinstance(concentrations, Mapping):
        if column is not None:
            raise InputError("load_standards: a column is named, but the concentrations are no table; leave it out.")
        _apply_to_all(recordings, lambda r: apply_mapping(r, concentrations))
        return recordings
    if concentrations is not None:
        found = read_table(Path(concentrations))
        _apply_to_all(recordings, lambda r: apply_table(r, found, column))
        return recordings
    for recording in recordings:
        sidecar = _sidecar(recording)
        if sidecar is not None:
            apply_table(recording, sidecar, column)
            recording.notes.append(f"concentrations taken from {sidecar.path.name}, which lies beside the file")
        elif column is not None:
            raise InputError(
                f"{recording.path}: a column is named, but no table of concentrations; name the table too."
            )
    return recordings


def _apply_to_all(recordings: list[Recording], apply: Callable[[Recording], None]) -> None:
    """Apply to files, each of which may be one that the table lacks, as long as it knows one of them."""
    errors = []
    for recording in recordings:
        try:
            apply(recording)
        except NoEntryError as error:
            errors.append(error)
            for trace in recording.traces:
                trace.unknown, trace.concentration = True, None
    if len(errors) == len(recordings):
        raise errors[0]


def _sidecar(recording: Recording) -> ConcentrationTable | None:
    """The table of the same name beside the file, for formats that have one."""
    if recording.format != nanodrop.FORMAT:
        return None
    for suffix in nanodrop.SIDECARS:
        path = recording.path.with_suffix(suffix)
        if path != recording.path and path.is_file():
            return read_table(path)
    return None


def read_file(path: PathLike) -> Recording:
    """Everything that a file holds, by the reader that recognises it.

    Raises:
        ReaderError: missing, a folder, empty, of no known format, or damaged.
    """
    path = Path(path)
    recording = clean(recognise(path).read(path))
    if len(recording.traces) == 1:  # a table of concentrations may name it by its file
        trace = recording.traces[0]
        trace.keys = tuple(dict.fromkeys((*trace.keys, path.name, path.stem)))
    return recording


def recognise(path: PathLike) -> ModuleType:
    """The reader whose ``sniff`` recognises the file's content.

    Raises:
        ReaderError: missing, a folder, empty, or of no known format.
    """
    path = Path(path)
    if "\0" in str(path):
        raise ReaderError(f"{str(path)!r}: no name of a file; check the name.")
    if path.is_dir():
        raise ReaderError(f"{path}: a folder; name a file in it.")
    if not path.exists():
        raise ReaderError(f"{path}: there is no such file; check the name.")
    if not path.is_file():
        raise ReaderError(f"{path}: not a regular file; name a file of spectra.")
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise ReaderError(f"{path}: cannot be read ({error.strerror}).") from None
    if not head.strip():
        raise ReaderError(f"{path}: the file is empty; export the spectra again.")
    for reader in READERS:
        if reader.sniff(head):
            return reader
    known = ", ".join(reader.FORMAT for reader in READERS if reader is not ole2)
    raise ReaderError(
        f"{path}: not recognised as spectra; write a CSV whose first column is 'wavelength' and whose other columns "
        f"are headed by their concentration (known formats: {known})."
    )
