"""Files of standards to one data set: every command and `geonode.load_standards` begin here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from geonode.data.checks import named_files
from geonode.data.dataset import SpectralDataset
from geonode.data.readers.assemble import assemble
from geonode.data.readers.base import ReadingOptions
from geonode.data.readers.concentration_table import ConcentrationTable, read_table
from geonode.data.readers.concentrations import NoEntryError, apply_columns, apply_mapping, apply_table, listing
from geonode.data.readers.folders import files_of
from geonode.data.readers.recognition import PathLike, read_file
from geonode.data.readers.recording import Recording
from geonode.data.readers.tablefinder import FEWEST_ROWS
from geonode.errors import InputError, ReaderError
from geonode_runtime.given_paths import as_path

Concentrations = PathLike | Mapping[str, float | Sequence[float]]


def load_standards(
    path: PathLike | Sequence[PathLike],
    *,
    select: str | None = None,
    concentration_unit: str | None = None,
    concentrations: Concentrations | None = None,
    column: str | Sequence[str] | None = None,
    decimal: str | None = None,
    sheet: str | None = None,
) -> SpectralDataset:
    """Read the spectra of standards from one file, or from several with the same wavelengths.

    Args:
        path: a file, a folder of files, or a list of them.
        select: keep the spectra whose name contains this (upper and lower case alike), to choose one series; also
            ``column=value`` of a table of concentrations, ``&`` for conditions that all must hold, commas between
            alternatives: ``"H148G & pH=7.4"``.
        concentration_unit: the unit, where the file does not say it.
        concentrations: where the files do not hold them: a table (note file) by name of spectrum, well or file, or a
            mapping from such names. Spectra that it lacks, or lists as NaN, are left out and noted.
        column: the column of that table, or one for each analyte, where several may be meant; without a table, a
            column of the file itself, beside the spectra.
        decimal: the decimal mark, ``"."`` or ``","``, where numbers such as ``1.050`` may be read in two ways; the
            other mark then parts thousands. Without it what is in doubt is refused.
        sheet: of workbooks, the name or the number (from 1) of the sheet that is meant.

    Returns:
        The data set; `SpectralDataset.notes` lists what was dropped, masked, averaged or assumed.

    Raises:
        ReaderError: one sentence naming the file and the place; also for fewer than three levels.
        InputError: no file, an empty name or list, a unit that is no text, or a column where the concentrations are a
            mapping.
    """
    recordings = record(path, concentrations=concentrations, column=column, decimal=decimal, sheet=sheet)
    return standards_of(recordings, select=select, concentration_unit=concentration_unit)


def standards_of(
    recordings: Sequence[Recording], *, select: str | None = None, concentration_unit: str | None = None
) -> SpectralDataset:
    """The data set that ``recordings`` make together.

    Args and errors as for `load_standards`.
    """
    data = assemble(recordings, select=select, concentration_unit=concentration_unit)
    _require_wavelengths(data)
    try:
        return data.without_masked().require_levels(3)
    except InputError as error:
        left = next((r.without_entry for r in recordings if r.without_entry), "")
        raise ReaderError(str(error).removesuffix(".") + (f"; {left}." if left else ".")) from None


def _require_wavelengths(data: SpectralDataset) -> None:
    """No fewer than a file of an unknown needs to be told from any other table."""
    if data.shape[1] < FEWEST_ROWS:
        count = data.shape[1]
        raise ReaderError(
            f"{named_files(data.files)}: {count} wavelength{'s' if count > 1 else ''}, and a spectrum read from a "
            f"file needs {FEWEST_ROWS} at least; export more of them."
        )


def record(
    path: PathLike | Sequence[PathLike],
    *,
    concentrations: Concentrations | None = None,
    column: str | Sequence[str] | None = None,
    decimal: str | None = None,
    sheet: str | None = None,
) -> list[Recording]:
    """What each file holds, with the concentrations of a table where one is given or lies beside the file.

    Args and errors as for `load_standards`.
    """
    paths = named_paths(
        path,
        "load_standards",
        "geonode.fit takes DataFrames and DataArrays as they are, and geonode.SpectralDataset(spectra, concentrations, "
        "wavelengths) arrays",
    )
    options = ReadingOptions(decimal or "", sheet or "")
    table = None if concentrations is None or isinstance(concentrations, Mapping) else concentrations
    note = None if table is None else as_path(table, "the table of concentrations")
    paths, left_out = files_of(paths, note)
    recordings = [_read_among(p, paths, options) for p in paths]
    recordings[0].on_all += left_out
    if isinstance(concentrations, Mapping):
        if column is not None:
            raise InputError("load_standards: a column is named, but the concentrations are no table; leave it out.")
        _apply_to_all(recordings, lambda r: apply_mapping(r, concentrations))
        return recordings
    if note is not None:
        found = read_table(note, options.decimal)
        used: set[int] = set()
        _apply_to_all(recordings, lambda r: used.update(apply_table(r, found, column)))
        _note_unused(recordings, found, used)
        return recordings
    for recording in recordings:
        sidecar = _sidecar(recording, options.decimal)
        if sidecar is not None:
            apply_table(recording, sidecar, column)
            recording.on_concentrations.append(
                f"concentrations taken from {sidecar.path.name}, which lies beside the file"
            )
        elif column is not None:
            apply_columns(recording, column)
    return recordings


def named_paths(path: Any, who: str, instead: str) -> list[PathLike]:
    """The files that ``path`` names, one or a list of them.

    Raises:
        InputError: in the name of the function ``who``: what names no file, with what to do ``instead``; an empty list;
            an empty name, which would be that of the folder one is in.
    """
    table = hasattr(path, "columns") or hasattr(path, "dims") or not isinstance(path, Iterable | os.PathLike)
    paths: list[Any] = [path] if table or isinstance(path, str | os.PathLike) else list(path)
    if table or not all(isinstance(p, str | os.PathLike) for p in paths):
        raise InputError(f"{who} reads files, and {type(path).__name__} is none; {instead}.")
    if not paths:
        raise InputError(f"{who}: the list of files is empty; name at least one.")
    for one in paths:
        as_path(one, f"{who}: the name of a file")
    return paths


def _read_among(path: PathLike, paths: Sequence[PathLike], options: ReadingOptions) -> Recording:
    """One of ``paths``; where it cannot be read and another can, it may be no file of spectra at all, which is said."""
    try:
        return read_file(path, options)
    except ReaderError as error:
        if not any(_can_be_read(other, options) for other in [p for p in paths if p != path][:_TRIED]):
            raise
        name = Path(path).name
        raise ReaderError(
            f"{str(error).removesuffix('.')}; if {name} holds no spectra, take it out of the {len(paths)} files that "
            "are read together, or name those that do."
        ) from None


_TRIED = 3
"""So many others are looked at where one cannot be read."""


def _can_be_read(path: PathLike, options: ReadingOptions) -> bool:
    try:
        read_file(path, options)
    except ReaderError:
        return False
    return True


def _note_unused(recordings: list[Recording], found: ConcentrationTable, used: set[int]) -> None:
    """Say which entries of a table belong to no spectrum: one of them may be misspelt."""
    left = [" ".join(filter(None, row.values())) for k, row in enumerate(found.rows) if k not in used]
    if left:
        recordings[0].on_all.append(f"no spectrum for these entries of {found.path.name}: {listing(left)}")


def _apply_to_all(recordings: list[Recording], apply: Callable[[Recording], None]) -> None:
    """Apply to files, each of which may be one that the table lacks, as long as it knows one of them."""
    errors = []
    for recording in recordings:
        try:
            apply(recording)
        except NoEntryError as error:
            errors.append(error)
            recording.on_concentrations = []
            for trace in recording.traces:
                trace.unknown, trace.concentration = True, None
    if len(errors) == len(recordings):
        raise errors[0]


def _sidecar(recording: Recording, decimal: str) -> ConcentrationTable | None:
    """The table of the same name beside the file, for formats that have one."""
    for suffix in recording.sidecars:
        path = recording.path.with_suffix(suffix)
        if path != recording.path and path.is_file():
            return read_table(path, decimal)
    return None
