"""Files of unknowns, read by the readers of standards: which spectra belong to one unknown, and whether they can be
compared with the standards at all."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from geonode.data import SpectralDataset
from geonode.data.axis_units import in_unit_of, no_such_axis
from geonode.data.checks import IDENTICAL_AT_LEAST, check_order, check_same_grid
from geonode.data.readers import record
from geonode.data.readers.concentrations import listing
from geonode.data.readers.dilutions import number_in, unused_dilutions
from geonode.data.readers.folders import files_of
from geonode.data.readers.loading import named_paths
from geonode.data.readers.recording import Recording, Trace
from geonode.data.readers.selection import Found, select_traces
from geonode.errors import InputError, ReaderError
from geonode_runtime.refused import Refused, require_one_taken
from geonode_runtime.replicates import ask_each
from geonode_runtime.wording import argument, either

PathLike = str | os.PathLike[str]

_SAYS_NOTHING = ("", "signal")


@dataclass(frozen=True)
class UnknownSpectra:
    """The replicate spectra of one unknown as their files have them.

    Attributes:
        name: of the unknown. spectra_names: ``k`` names, with their file.
        wavelengths: ``[V]`` ascending; spectra: ``[k, V]``; mask: ``[k, V]``, True where a value is unusable.
        notes: what the readers did, of all that were read together too, such as files of a folder that were left out.
    """

    name: str
    spectra_names: tuple[str, ...]
    wavelengths: np.ndarray
    spectra: np.ndarray
    mask: np.ndarray
    notes: tuple[str, ...]


def load_unknowns(
    path: PathLike | Sequence[PathLike],
    standards: SpectralDataset | None = None,
    *,
    select: str | None = None,
    replicates: bool = False,
) -> list[UnknownSpectra | Refused]:
    """Read the spectra of unknowns from one file or several; `GeodesicModel.quantify` takes what comes back.

    Args:
        path: a file that `geonode.load_standards` could read, or a list of such.
        standards: what they will be compared with, so that another signal or unit is refused at once; None for none.
        select: keep the spectra whose name contains this.
        replicates: they are all of one unknown; else each spectrum is one of its own.

    Returns:
        One `UnknownSpectra` for each unknown; in the place of a file or spectrum that cannot be taken, where there are
        others, a `Refused` with its reason.

    Raises:
        ReaderError: the only file, or each of several, cannot be read as spectra; a file of replicates.
        InputError: no file or an empty name; another signal or unit than the standards', the same spectrum twice,
            replicates on different wavelengths.
    """
    paths = named_paths(path, "load_unknowns", "GeodesicModel.quantify takes arrays and tables as they are")
    found = read_unknowns(paths, standards, select=select, each=not replicates, average=replicates)
    require_one_taken(found)
    return found


def read_unknowns(
    paths: Sequence[str | os.PathLike[str]],
    standards: SpectralDataset | None,
    *,
    select: str | None = None,
    each: bool = False,
    average: bool = False,
    decimal: str | None = None,
    sheet: str | None = None,
) -> list[UnknownSpectra | Refused]:
    """Read the spectra of one unknown, or of several.

    Args:
        paths: files, one spectrum each, which are replicates of one unknown.
        standards: what they will be compared with; None for anything.
        select: keep the spectra of this name or, where none has it, those whose name contains it.
        each: every spectrum is an unknown of its own; a file may then hold several, and what is wrong with one of
            several files or spectra costs no other its place: a `Refused` stands there.
        average: all that are kept are replicates of one unknown; a file may then hold several.
        decimal, sheet: as for `geonode.load_standards`.

    Raises:
        InputError: a file of which several spectra are kept and neither ``each`` nor ``average``, both of these,
            another signal or unit than the standards', the same spectrum twice, replicates on different wavelengths;
            and what readers refuse.
    """
    if each and average:
        raise InputError(
            f"{argument('each')} asks for an answer to every spectrum and {argument('average')} for one to all; give "
            "one of them."
        )
    how = {"decimal": decimal, "sheet": sheet}
    if each:
        return _read_each(paths, standards, select, how)
    recordings, left_out = _of_spectra(record(list(paths), **how))
    for recording in recordings:
        _made_comparable(recording, standards)
    found = _chosen(recordings, select, paths)
    if not average:
        _require_one_each(found, select)
    _require_no_copies(found)
    return [_together(found, select, _on_all(recordings, left_out))]


def _read_each(
    paths: Sequence[PathLike], standards: SpectralDataset | None, select: str | None, how: dict[str, Any]
) -> list[UnknownSpectra | Refused]:
    """Every spectrum as an unknown of its own, in the order of the files; what is wrong with one file or spectrum
    stands in its place.

    Raises:
        InputError: the only file cannot be read, or nothing is selected.
    """
    files, left_out = _files_of_each(paths)
    alone = len(files) == 1
    read = [one if isinstance(one, Refused) else _recorded(one, standards, how, alone) for one in files]
    recordings = [one for one in read if isinstance(one, Recording)]
    if not recordings:
        return [one for one in read if isinstance(one, Refused)]
    recordings, empty = _of_spectra(recordings)
    on_all = _on_all(recordings, [*left_out, *empty])
    found = _chosen(recordings, select, paths)
    copies = _copies(found)
    unknowns: list[UnknownSpectra | Refused] = []
    for one in read:
        if isinstance(one, Refused):
            unknowns.append(one)
            continue
        unknowns += [_alone(r, t, copies.get(id(t)), select, on_all) for r, t in found if r is one]
    return unknowns


def _files_of_each(paths: Sequence[PathLike]) -> tuple[list[PathLike | Refused], list[str]]:
    """The files, folders replaced by what is in them or by why they cannot be taken, and what must be said of folders.

    Raises:
        ReaderError: the only path is a folder without spectra.
    """
    found: list[PathLike | Refused] = []
    said: list[str] = []
    for path in paths:
        try:
            files, left_out = files_of([path])
        except ReaderError as error:
            if len(paths) == 1:
                raise
            files, left_out = [Refused(Path(path).name, str(error))], []
        found += files
        said += left_out
    return found, said


def _recorded(
    file: PathLike, standards: SpectralDataset | None, how: dict[str, Any], alone: bool
) -> Recording | Refused:
    """What a file holds, or why it cannot be taken; that is raised where it is the only one."""
    try:
        (recording,) = record([file], **how)
        _made_comparable(recording, standards)
        return recording
    except InputError as error:
        if alone:
            raise
        unread = isinstance(error, ReaderError)
        return Refused(Path(file).name, _or_no_spectra(file, str(error)) if unread else str(error))


def _or_no_spectra(file: PathLike, reason: str) -> str:
    """Among others it may be no file of spectra at all, such as a list of times; one that is not there is not that."""
    if not Path(file).is_file():
        return reason
    return f"{reason.removesuffix('.')}; if {Path(file).name} holds no spectra, leave it out."


def _alone(
    recording: Recording, trace: Trace, copy: str | None, select: str | None, on_all: list[str]
) -> UnknownSpectra | Refused:
    try:
        if copy is not None:
            raise InputError(copy)
        return _together([(recording, trace)], select, on_all)
    except InputError as error:
        label = _label(recording, trace)
        return Refused(label, str(error), (label,))


def _chosen(recordings: Sequence[Recording], select: str | None, paths: Sequence[PathLike]) -> Found:
    """The spectra that are meant."""
    found: Found = []
    for recording in recordings:
        own = [(recording, trace) for trace in recording.traces]
        # Instruments say which of the wells are samples; blanks and standards beside them are none.
        marked = [(r, t) for r, t in own if t.unknown]
        found += marked or own
    return select_traces(found, select, listing(str(path) for path in paths))


def _on_all(recordings: Sequence[Recording], left_out: list[str]) -> list[str]:
    return [*(note for recording in recordings for note in recording.on_all), *left_out]


def _made_comparable(recording: Recording, standards: SpectralDataset | None) -> None:
    if standards is not None:
        _require_comparable(recording, standards)
        _convert_axis(recording, standards)


def _of_spectra(recordings: list[Recording]) -> tuple[list[Recording], list[str]]:
    """Those in which a spectrum is, and what must be said of the others, such as a list of times beside the spectra."""
    empty = [
        f"{r.path.name} left out, for no spectrum is in it: {'; '.join(r.notes)}" for r in recordings if not r.traces
    ]
    if len(empty) == len(recordings):
        one = recordings[0]
        raise InputError(f"{one.path}: no spectrum is in it ({'; '.join(one.notes)}); give files of spectra.")
    return [recording for recording in recordings if recording.traces], empty


def _convert_axis(recording: Recording, standards: SpectralDataset) -> None:
    """Wavelengths in the standards' unit, in place, where both files say theirs.

    Raises:
        InputError: they do not convert, or cannot be in the unit that is said.
    """
    mine, unit = recording.wavelength_unit, standards.wavelength_unit
    if mine in ("", unit) or not unit:
        return
    name, grid = str(recording.path), np.asarray(standards.wavelengths)
    for trace in recording.traces:
        moved = in_unit_of(grid, unit, trace.wavelengths, mine, name)
        if moved is None:
            raise InputError(no_such_axis(name, mine, unit))
        trace.wavelengths = moved
    recording.wavelength_unit = unit
    recording.notes.append(f"wavelengths converted from {mine} to {unit}, that of the standards")


def _require_comparable(recording: Recording, standards: SpectralDataset) -> None:
    own = (recording.signal, recording.signal_unit)
    theirs = (standards.signal, standards.signal_unit)
    for what, mine, wanted in zip(("signal", "unit of the signal"), own, theirs, strict=True):
        if mine not in _SAYS_NOTHING and wanted not in _SAYS_NOTHING and mine != wanted:
            raise InputError(
                f"{recording.path}: its {what} is {mine} and that of the standards {wanted}; export it like the "
                "standards."
            )


def _require_one_each(found: Found, select: str | None) -> None:
    """Of each file one spectrum: several would be averaged, and whether they are of one sample only the user knows."""
    for recording in {id(r): r for r, _ in found}.values():
        names = [trace.name for r, trace in found if r is recording]
        if len(names) > 1:
            called = "" if select is None else f" named like '{select}'"
            raise InputError(
                f"{recording.path}: {len(names)} spectra{called} ({listing(names)}); choose one by its whole name "
                f"({argument('select')}), {ask_each()}, or say that all are replicates of one sample "
                f"({either('--average', 'replicates=True')})."
            )


def _require_no_copies(found: Found) -> None:
    for said in _copies(found).values():
        raise InputError(said)


def _copies(found: Found) -> dict[int, str]:
    """Of each trace (its ``id``) that is a copy of one before it, what must be said."""
    seen: dict[bytes, str] = {}
    copies: dict[int, str] = {}
    for recording, trace in found:
        label, key = _label(recording, trace), trace.values.tobytes()
        if trace.values.size < IDENTICAL_AT_LEAST or not np.any(trace.values):
            continue  # too few to tell, or zero throughout, which is refused for that
        if key in seen:
            copies[id(trace)] = (
                f"'{label}' is identical to '{seen[key]}' at every wavelength, so it is a copy and not a replicate; "
                "leave one of them out."
            )
        else:
            seen[key] = label
    return copies


def _label(recording: Recording, trace: Trace) -> str:
    return recording.path.name if trace.name == recording.path.stem else f"{recording.path.name}: {trace.name}"


def _together(group: Found, select: str | None, on_all: list[str]) -> UnknownSpectra:
    names = [_label(recording, trace) for recording, trace in group]
    for (_, trace), name in zip(group, names, strict=True):
        check_order(trace.wavelengths, name)
    orders = [np.argsort(trace.wavelengths, kind="stable") for _, trace in group]
    grid = group[0][1].wavelengths[orders[0]]
    spectra = np.empty((len(group), len(grid)))
    mask = np.zeros(spectra.shape, dtype=bool)
    for i, ((_, trace), order) in enumerate(zip(group, orders, strict=True)):
        check_same_grid(grid, trace.wavelengths[order], names[0], names[i], "replicates of one unknown")
        spectra[i] = trace.values[order]
        if trace.masked is not None:
            mask[i] = trace.masked[order]
    recordings = {id(r): r for r, _ in group}.values()
    notes = [f"{r.path.name}: {note}" for r in recordings for note in r.notes]
    notes += unused_dilutions([trace.attributes for _, trace in group], number_in)
    called = [trace.name for _, trace in group] if len(recordings) == 1 else names
    name = names[0] if len(group) == 1 else select or _common_name(called)
    return UnknownSpectra(name, tuple(names), grid, spectra, mask, (*notes, *on_all))


def _common_name(names: list[str]) -> str:
    """What all names begin with, or the first and how many more there are."""
    same = itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    shared = "".join(letters[0] for letters in same).strip(" _-.,#(")
    return shared if len(shared) >= 3 else f"{names[0]} and {len(names) - 1} more"
