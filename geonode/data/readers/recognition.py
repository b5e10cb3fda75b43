"""Which reader a file belongs to, by its content and never by its name."""

from __future__ import annotations

import os
from pathlib import Path

from geonode.data.readers.base import HEAD, Reader, ReadingOptions, all_readers
from geonode.data.readers.clean import clean
from geonode.data.readers.recording import Recording
from geonode.errors import ReaderError
from geonode_runtime.wording import argument

PathLike = str | os.PathLike[str]
AS_IT_SAYS = ReadingOptions()
"""The file says everything."""


def read_file(path: PathLike, options: ReadingOptions = AS_IT_SAYS) -> Recording:
    """Everything that a file holds, by the reader that recognises it; ``options``: what the file does not say itself.

    Raises:
        ReaderError: missing, a folder, empty, of no known format, or damaged; a sheet of what is no workbook.
    """
    path = Path(path)
    reader = recognise(path)
    if options.sheet and not reader.has_sheets:
        raise ReaderError(
            f"{path}: a sheet '{options.sheet}' is named, and this is no workbook; leave {argument('sheet')} out."
        )
    reader.options = options
    recording = clean(reader.read(path))
    if len(recording.traces) == 1:  # a table of concentrations may name it by its file
        trace = recording.traces[0]
        trace.keys = tuple(dict.fromkeys((*trace.keys, path.name, path.stem)))
    return recording


def recognise(path: PathLike) -> Reader:
    """The reader whose ``sniff`` recognises the file's content.

    Raises:
        ReaderError: missing, a folder, empty, or of no known format.
    """
    path = Path(path)
    head = _head_of(path)
    readers = all_readers()
    for reader in readers:
        if reader.sniff(head):
            return reader
    known = ", ".join(reader.format for reader in readers if not reader.refuses)
    raise ReaderError(
        f"{path}: not recognised as spectra; write a CSV whose first column is 'wavelength' and whose other columns "
        f"are headed by their concentration (known formats: {known})."
    )


def _head_of(path: Path) -> bytes:
    """The beginning of a regular file that is there and not empty."""
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
            head = file.read(HEAD)
    except OSError as error:
        raise ReaderError(f"{path}: cannot be read ({error.strerror}).") from None
    if not head.strip():
        raise ReaderError(f"{path}: the file is empty; export the spectra again.")
    return head
