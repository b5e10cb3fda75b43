"""A folder of spectra, one file a sample, as fibre spectrometers leave them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from geonode.data.readers.concentrations import listing
from geonode.data.readers.recognition import PathLike, recognise
from geonode.errors import ReaderError


def files_of(paths: Sequence[PathLike], note: Path | None = None) -> tuple[list[PathLike], list[str]]:
    """The files of ``paths``, each folder replaced by the files of spectra in it, and what must be said of the others.

    Args:
        paths: files and folders. note: the table of concentrations, which may lie among the spectra.

    Raises:
        ReaderError: a folder without a file of spectra.
    """
    found: list[PathLike] = []
    said: list[str] = []
    for path in paths:
        if not Path(path).is_dir():
            found.append(path)
            continue
        spectra, others = _parted(Path(path), note)
        if not spectra:
            raise ReaderError(f"{path}: no file in this folder is recognised as spectra; name the files themselves.")
        found += spectra
        if others:
            said.append(f"left out of the folder {path}, since they are no spectra of their own: {listing(others)}")
    return found, said


def _parted(folder: Path, note: Path | None) -> tuple[list[PathLike], list[str]]:
    spectra: list[PathLike] = []
    others: list[str] = []
    for file in sorted(folder.iterdir(), key=lambda file: _natural(file.name)):
        hidden = file.name.startswith(".")
        if hidden or not file.is_file() or (note is not None and note.exists() and file.samefile(note)):
            continue
        try:
            reader = recognise(file)
            other = reader.refuses or reader.lists_files
        except ReaderError:
            other = True
        if other:
            others.append(file.name)
        else:
            spectra.append(file)
    return spectra, others


def _natural(name: str) -> list[tuple[int, str]]:
    """An order in which ``scan 10`` follows ``scan 9``."""
    return [(int(part), "") if part.isdigit() else (0, part.casefold()) for part in re.split(r"(\d+)", name)]
