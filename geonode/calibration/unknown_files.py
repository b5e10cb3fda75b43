"""Files of unknowns, read by the readers of standards: which spectra belong to one unknown, and whether they can be
compared with the standards at all."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from geonode.data import SpectralDataset
from geonode.data.axis_units import in_unit_of, no_such_axis
from geonode.data.checks import IDENTICAL_AT_LEAST, check_order, check_same_grid
from geonode.data.readers import record
from geonode.data.readers.concentrations import listing
from geonode.data.readers.dilutions import number_in, unused_dilutions
from geonode.data.readers.loading import named_paths
from geonode.data.readers.recording import Recording, Trace
from geonode.data.readers.selection import Found, select_traces
from geonode.errors import InputError
from geonode_runtime.given_numbers import short
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


@dataclass(frozen=True)
class AskedFiles:
    """What files hold of unknowns; ``one``: a single answer is wanted."""

    unknowns: list[UnknownSpectra]
    one: bool


def load_unknowns(
    path: PathLike | Sequence[PathLike],
    standards: SpectralDataset | None = None,
    *,
    select: str | None = None,
    replicates: bool = False,
) -> list[UnknownSpectra]:
    """Read the spectra of unknowns from one file or several; `GeodesicModel.quantify` takes what comes back.

    Args:
        path: a file that `geonode.load_standards` could read, or a list of such.
        standards: what they will be compared with, so that another signal or unit is refused at once; None for none.
        select: keep the spectra whose name contains this.
        replicates: they are all of one unknown; else each spectrum is one of its own.

    Returns:
        One `UnknownSpectra` for each unknown.

    Raises:
        ReaderError: a file that cannot be read as spectra.
        InputError: no file or an empty name; another signal or unit than the standards', the same spectrum twice,
            replicates on different wavelengths.
    """
    paths = named_paths(path, "load_unknowns", "GeodesicModel.quantify takes arrays and tables as they are")
    return read_unknowns(paths, standards, select=select, each=not replicates, average=replicates)


def asked_of_files(
    spectra: Any, standards: SpectralDataset, *, select: str | None, replicates: Any
) -> AskedFiles | None:
    """The unknowns in files, or of `load_unknowns`; None where ``spectra`` are numbers.

    Raises:
        InputError: a file of several spectra that is given as one unknown, ``select`` without files, labels of
            replicates for files, and as `load_unknowns`.
    """
    said = replicates_said(replicates)
    replicates = said is True
    if isinstance(spectra, UnknownSpectra):
        return AskedFiles([spectra], one=True)
    several = isinstance(spectra, list | tuple) and bool(spectra)
    if several and all(isinstance(one, UnknownSpectra) for one in spectra):
        return AskedFiles(list(spectra), one=False)
    files = isinstance(spectra, str | os.PathLike) or (
        several and all(isinstance(one, str | os.PathLike) for one in spectra)
    )
    if files and not isinstance(said, bool):
        raise InputError(
            "labels of replicates are for numbers; give the files of one sample alone, with "
            f"{argument('replicates', True)}."
        )
    if isinstance(spectra, str | os.PathLike):
        found = load_unknowns(spectra, standards, select=select, replicates=replicates)
        if len(found) > 1:
            raise InputError(
                f"{spectra}: {len(found)} spectra ({listing(one.name for one in found)}); give the file in a list for "
                f"an answer to each, say {argument('replicates', True)} where they are of one sample, or choose by "
                f"name with {argument('select')}."
            )
        return AskedFiles(found, one=True)
    if files:
        return AskedFiles(load_unknowns(spectra, standards, select=select, replicates=replicates), one=replicates)
    if select is not None:
        raise InputError("select chooses spectra of files by their names; numbers have none, so leave it out.")
    return None


def replicates_said(replicates: Any) -> bool | list[str]:
    """Whether all spectra are of one sample, or the label of each.

    Raises:
        InputError: neither of the two.
    """
    if isinstance(replicates, bool | np.bool_):
        return bool(replicates)
    if isinstance(replicates, str | bytes) or not isinstance(replicates, Iterable) or np.ndim(replicates) == 0:  # pyright: ignore[reportArgumentType]
        raise InputError(
            f"replicates must be True, False or one label for each spectrum, but {short(replicates)} was given."
        )
    return [str(one) for one in replicates]


def read_unknowns(
    paths: Sequence[str | os.PathLike[str]],
    standards: SpectralDataset | None,
    *,
    select: str | None = None,
    each: bool = False,
    average: bool = False,
    decimal: str | None = None,
    sheet: str | None = None,
) -> list[UnknownSpectra]:
    """Read the spectra of one unknown, or of several.

    Args:
        paths: files, one spectrum each, which are replicates of one unknown.
        standards: what they will be compared with; None for anything.
        select: keep the spectra of this name or, where none has it, those whose name contains it.
        each: every spectrum is an unknown of its own; a file may then hold several.
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
    recordings, left_out = _of_spectra(record(list(paths), decimal=decimal, sheet=sheet))
    if standards is not None:
        for recording in recordings:
            _require_comparable(recording, standards)
            _convert_axis(recording, standards)
    found: Found = []
    for recording in recordings:
        own = [(recording, trace) for trace in recording.traces]
        # Instruments say which of the wells are samples; blanks and standards beside them are none.
        marked = [(r, t) for r, t in own if t.unknown]
        found += marked or own
    found = select_traces(found, select, listing(str(path) for path in paths))
    if not each and not average:
        _require_one_each(found, select)
    _require_no_copies(found)
    groups = [[one] for one in found] if each else [found]
    on_all = [note for recording in recordings for note in recording.on_all]
    on_all += left_out
    return [_together(group, select, on_all) for group in groups]


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
    seen: dict[bytes, str] = {}
    for recording, trace in found:
        label, key = _label(recording, trace), trace.values.tobytes()
        if trace.values.size < IDENTICAL_AT_LEAST or not np.any(trace.values):
            continue  # too few to tell, or zero throughout, which is refused for that
        if key in seen:
            raise InputError(
                f"'{label}' is identical to '{seen[key]}' at every wavelength, so it is a copy and not a replicate; "
                "leave one of them out."
            )
        seen[key] = label


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
