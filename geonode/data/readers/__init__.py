"""Files of spectra, recognised by their content, never by their extension.

A reader is a module with ``FORMAT`` and ``SUMMARY`` (what it reads, in words), ``sniff(head: bytes) -> bool`` and
``read(path) -> Recording``. To add one, write the module and list it in `READERS`; the first that recognises a file
reads it. Nothing is guessed silently: what a reader drops, masks, averages or assumes goes into the notes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from geonode.data.dataset import SpectralDataset
from geonode.data.readers import cary, netcdf, tidy
from geonode.data.readers.assemble import assemble
from geonode.data.readers.recording import Recording, Trace
from geonode.errors import InputError, ReaderError

__all__ = ["READERS", "Recording", "Trace", "load_standards", "read_file", "recognise"]

# In this order: the more particular first.
READERS: tuple[ModuleType, ...] = (netcdf, cary, tidy)

_HEAD = 2**16

PathLike = str | os.PathLike[str]


def load_standards(
    path: PathLike | Sequence[PathLike], *, select: str | None = None, concentration_unit: str | None = None
) -> SpectralDataset:
    """Read the spectra of standards from one file, or from several with the same wavelengths.

    Args:
        path: a file, or a list of files.
        select: keep the spectra whose name contains this (upper and lower case alike), to choose one series.
        concentration_unit: the unit, where the file does not say it.

    Returns:
        The data set; `SpectralDataset.notes` lists what was dropped, masked, averaged or assumed.

    Raises:
        ReaderError: one sentence naming the file and the place; also for fewer than three levels.
    """
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not paths:
        raise InputError("load_standards: the list of files is empty; name at least one.")
    data = assemble([read_file(p) for p in paths], select=select, concentration_unit=concentration_unit)
    data = data.without_masked()
    try:
        return data.require_levels(3)
    except InputError as error:
        raise ReaderError(str(error)) from None


def read_file(path: PathLike) -> Recording:
    """Everything that a file holds, by the reader that recognises it.

    Raises:
        ReaderError: missing, a folder, empty, of no known format, or damaged.
    """
    path = Path(path)
    return recognise(path).read(path)


def recognise(path: PathLike) -> ModuleType:
    """The reader whose ``sniff`` recognises the file's content.

    Raises:
        ReaderError: missing, a folder, empty, or of no known format.
    """
    path = Path(path)
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
    known = "; ".join(reader.SUMMARY for reader in READERS)
    raise ReaderError(
        f"{path}: not recognised as spectra; write a CSV whose first column is 'wavelength' and whose other columns "
        f"are headed by their concentration (known formats: {known})."
    )
