"""Files of standards to one data set: every command and `geonode.load_standards` begin here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from geonode.data.dataset import SpectralDataset
from geonode.data.readers.assemble import assemble
from geonode.data.readers.concentrations import ConcentrationTable, NoEntryError, apply_mapping, apply_table, read_table
from geonode.data.readers.recognition import PathLike, read_file
from geonode.data.readers.recording import Recording
from geonode.errors import InputError, ReaderError

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
    for suffix in recording.sidecars:
        path = recording.path.with_suffix(suffix)
        if path != recording.path and path.is_file():
            return read_table(path)
    return None
