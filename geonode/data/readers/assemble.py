"""From what readers found to one `SpectralDataset`: one grid, one unit, a concentration for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from geonode.data import checks
from geonode.data.dataset import SpectralDataset
from geonode.data.readers.concentrations import listing
from geonode.data.readers.names import spelled
from geonode.data.readers.naming import how_to_call_blanks, how_to_head_replicates
from geonode.data.readers.recording import Recording
from geonode.data.readers.selection import Found, alternatives, narrowed, said_of_selection, select_traces
from geonode.data.readers.transmittance import transmittance_note
from geonode.data.readers.unit_words import beside_label, label_notes
from geonode.errors import InputError, ReaderError
from geonode_runtime.given_numbers import short
from geonode_runtime.wording import argument, either


def assemble(
    recordings: Sequence[Recording], *, select: str | None = None, concentration_unit: str | None = None
) -> SpectralDataset:
    """One data set of the traces of all files, or of those whose name contains ``select``.

    Raises:
        ReaderError: nothing selected, several series and none selected, a spectrum without a concentration, different
            wavelengths or units, and whatever `SpectralDataset` refuses.
    """
    files = [str(recording.path) for recording in recordings]
    where, first = checks.named_files(files), recordings[0]
    if len(recordings) == 1 and first.dataset is not None and select is None:
        return _with_unit(first.dataset, concentration_unit, where)
    found = [(recording, trace) for recording in recordings for trace in recording.traces]
    if not found:
        raise ReaderError(f"{where}: no spectrum found.")
    of_all = len(found)
    found = select_traces(found, select, where)
    kept = said_of_selection(found, select, of_all)
    found, unknown = _without_unknowns(found)
    _require_one_series(found, select, where)
    _take_label(found, recordings, concentration_unit)
    _require_concentrations(found, recordings, where)
    _require_one_condition(found, select, where)
    shared: dict[str, Any] = {
        "concentration_unit": _common(recordings, "concentration_unit", where),
        "wavelength_unit": _common(recordings, "wavelength_unit", where),
        "signal": _common(recordings, "signal", where),
        "signal_unit": _common(recordings, "signal_unit", where),
    }
    found, zeros = _without_repeated_zeros(found)
    several = len(recordings) > 1
    names = [f"{recording.path.name}: {trace.name}" if several else trace.name for recording, trace in found]
    notes = [*merged_notes(recordings), *kept]
    if unknown:
        notes.append(f"{len(unknown)} spectra of unknown concentration left out: {listing(unknown)}")
    if zeros:
        notes.append(f"spectra of zeros beside another of their level left out, which say nothing: {listing(zeros)}")
    wavelengths, spectra, mask = _on_one_grid(found, names, notes, where)
    concentrations = np.array([trace.concentration for _, trace in found], dtype=np.float64)
    seen = np.where(mask, np.nan, spectra)
    if said := transmittance_note(shared["signal"], shared["signal_unit"], seen, concentrations):
        notes.append(said)
    groups = [trace.group for _, trace in found]
    try:
        data = SpectralDataset(
            spectra,
            concentrations,
            wavelengths,
            groups=groups if all(group is not None for group in groups) else None,
            analytes=first.analytes,
            names=names,
            mask=mask,
            notes=notes,
            source=files,
            **shared,
        )
    except InputError as error:
        raise ReaderError(str(error)) from None
    return _with_unit(data, concentration_unit, where)


def merged_notes(recordings: Sequence[Recording]) -> list[str]:
    """The notes of all files; one that several share stands once, with their number."""
    on_all = [note for recording in recordings for note in recording.on_all]
    if len(recordings) == 1:
        return [*recordings[0].said_of_standards(), *on_all]
    files: dict[str, list[str]] = {}
    for recording in recordings:
        for note in recording.said_of_standards():
            files.setdefault(note, []).append(recording.path.name)
    return [*(f"{_these(names, len(recordings))}: {note}" for note, names in files.items()), *on_all]


def _these(names: list[str], every: int) -> str:
    if len(names) == 1:
        return names[0]
    return f"all {every} files" if len(names) == every else f"{len(names)} of {every} files"


def _require_one_series(found: Found, select: str | None, where: str) -> None:
    series = list(dict.fromkeys(trace.series for _, trace in found if trace.series))
    if len(series) > (len(alternatives(select)) if select else 1):
        within = f" named like '{select}'" if select else ""
        fullest = _fullest(series, found)
        part = _telling_part(fullest, found)
        if part is None:  # its name is a part of names in the others, as those of sheets 1 and 2 are
            is_sheet = any(trace.place.startswith(f"sheet '{fullest}'") for _, trace in found)
            sheet = f"read one alone, {argument('sheet', fullest)}, or " if is_sheet else ""
            remedy = f"{sheet}name them so that a part of the name tells each from the others"
        else:
            remedy = (
                f"choose one by a part of its name, such as {argument('select', narrowed(select, part))}, or several, "
                "such as a series and its blank, with commas"
            )
        raise ReaderError(f"{where}: {len(series)} series{within} ({listing(series)}); {remedy}.")


def _fullest(series: list[str], found: Found) -> str:
    """The series of the most levels, the last of equals: an example that can be a calibration, not the blanks."""
    return max(series[::-1], key=lambda one: len({trace.concentration for _, trace in found if trace.series == one}))


def _telling_part(one: str, found: Found) -> str | None:
    """A word of the name of a series, or all of it, that selects the series and nothing else; None where none does."""
    whole = {id(trace) for _, trace in found if trace.series == one}

    def tells(word: str) -> bool:
        try:
            return {id(trace) for _, trace in select_traces(found, word, "")} == whole
        except ReaderError:
            return False

    words = [word for word in reversed(one.replace("-", "_").replace(" ", "_").split("_")) if word]
    return next(filter(tells, [*words, one]), None)


def _without_unknowns(found: Found) -> tuple[Found, list[str]]:
    """Standards alone, and the names of the rest: those whose concentration the file or a table says is unknown."""
    standards = [(recording, trace) for recording, trace in found if not trace.unknown]
    return standards, [trace.name for _, trace in found if trace.unknown]


def _without_repeated_zeros(found: Found) -> tuple[Found, list[str]]:
    """One blank of zeros for each level, and the names of the others.

    An instrument that was zeroed on its blank writes zeros whenever it measures it again: no copy of a file, and no
    replicate that says how much two measurements differ.
    """
    kept, left, seen = [], [], set()
    for recording, trace in found:
        if len(trace.values) and not trace.values.any():
            if trace.concentration in seen:
                left.append(trace.name)
                continue
            seen.add(trace.concentration)
        kept.append((recording, trace))
    return kept, left


def _take_label(found: Found, recordings: Sequence[Recording], unit: Any) -> None:
    """Concentrations of names such as ``5 drops``, where the caller says that unit and the file says none."""
    if not isinstance(unit, str) or not unit.strip() or any(r.concentration_unit for r in recordings):
        return
    values = [beside_label(trace.name, unit) for _, trace in found]
    if None in values or any(trace.concentration is not None for _, trace in found):
        return
    for (_, trace), value in zip(found, values, strict=True):
        trace.concentration = (float(value or 0.0),)


def _require_concentrations(found: Found, recordings: Sequence[Recording], where: str) -> None:
    for recording, _ in found:
        if recording.untold is not None:
            raise recording.untold
    if not found:
        raise ReaderError(f"{where}: every spectrum is of unknown concentration; give the concentrations of standards.")
    without = [trace.name for _, trace in found if trace.concentration is None]
    if without:
        doubt = next((f"{trace.doubt}; write it in one way, or " for _, trace in found if trace.doubt), "")
        part, out = "no concentration is known", "" if doubt else how_to_head_replicates(without)
        if len(without) < len(found):
            part = "the file says no concentration"
            unit = next((recording.concentration_unit for recording, _ in found if recording.concentration_unit), "")
            out = "" if doubt else how_to_call_blanks(without, unit) + "take out what is no standard, "
        raise ReaderError(
            f"{where}: {part} for {listing(without, 3)}; {doubt}{out}give a table of them "
            f"({argument('concentrations', 'NOTE', literal=True)}), "
            "select the standards by name, or write a CSV whose first column is 'wavelength' and whose others are "
            "headed by their concentration."
        )
    sizes = {len(trace.concentration or ()) for _, trace in found}
    if len(sizes) > 1:
        raise ReaderError(f"{where}: spectra of different numbers of analytes ({sorted(sizes)}); read them apart.")
    names = {tuple(r.analytes) if r.analytes else None for r in recordings if r.traces}
    if len(names) > 1:
        raise ReaderError(f"{where}: the files differ in their analytes ({listing(map(str, names))}); read them apart.")


def _require_one_condition(found: Found, select: str | None, where: str) -> None:
    """Refuse standards of one concentration that differ in something else by design, such as pH."""
    for name in dict.fromkeys(key for _, trace in found for key in trace.conditions):
        by_level: dict[tuple[float, ...], set[float]] = {}
        for _, trace in found:
            by_level.setdefault(trace.concentration or (), set()).add(trace.conditions.get(name, float("nan")))
        values = sorted({value for group in by_level.values() for value in group})
        if len(values) <= len(found) / 2 and any(len(group) > 1 for group in by_level.values()):
            own = (found[0][0].analytes or ("CONCENTRATION",))[0]
            shown = ", ".join(f"{value:g}" for value in values[:6]) + (" …" if len(values) > 6 else "")
            command = f"--column {_quoted(own)} --column {_quoted(name)}: geonode fit and quantify take two"
            python = f"column=[{own!r}, {name!r}], and geonode.analytes.fit_plane"
            one = narrowed(select, f"{name}={_fullest_value(name, values, found):g}")
            raise ReaderError(
                f"{where}: standards of one concentration differ in '{name}' ({shown}); keep one value, such "
                f"as {argument('select', one)}, or make it a second analyte beside the first "
                f"({either(command, python)})."
            )


def _fullest_value(name: str, values: list[float], found: Found) -> float:
    """The value of a condition at which there are the most levels; of equals the middle one."""
    levels = {
        value: len({trace.concentration for _, trace in found if trace.conditions.get(name) == value})
        for value in values
    }
    best = [value for value in values if levels[value] == max(levels.values())]
    return best[len(best) // 2]


def _quoted(name: str) -> str:
    """A name as a shell takes it."""
    return f"'{name}'" if set(name) & set(" ()[]/%'") else name


def _common(recordings: Sequence[Recording], attribute: str, where: str) -> str:
    """The one value of an attribute; one that says nothing agrees with any other."""
    values = list(dict.fromkeys(v for r in recordings if (v := getattr(r, attribute))))
    if attribute == "signal" and len(values) > 1:
        values = [value for value in values if value != "signal"]
    if len(values) > 1:
        what = attribute.replace("_", " ")
        raise ReaderError(f"{where}: the files differ in {what} ({', '.join(values)}); convert them to one first.")
    return values[0] if values else ""


def _on_one_grid(found: Found, names: list[str], notes: list[str], where: str):
    """(wavelengths [W], spectra [N, W], mask [N, W]) in ascending order; refuses grids that differ."""
    for _, trace in found:
        try:
            checks.check_order(trace.wavelengths, where)
        except InputError as error:
            raise ReaderError(str(error)) from None
    orders = [np.argsort(trace.wavelengths, kind="stable") for _, trace in found]
    grid = found[0][1].wavelengths[orders[0]]
    if not np.array_equal(orders[0], np.arange(len(grid))):
        descending = np.array_equal(orders[0], np.arange(len(grid))[::-1])
        notes.append(f"wavelengths were {'descending' if descending else 'unsorted'} and were put in order")
    spectra = np.empty((len(found), len(grid)))
    mask = np.zeros(spectra.shape, dtype=bool)
    for i, ((_, trace), order) in enumerate(zip(found, orders, strict=True)):
        try:
            checks.check_same_grid(grid, trace.wavelengths[order], names[0], names[i], where)
        except InputError as error:
            raise ReaderError(str(error)) from None
        spectra[i] = trace.values[order]
        if trace.masked is not None:
            mask[i] = trace.masked[order]
    return grid, spectra, mask


def _with_unit(data: SpectralDataset, unit: str | None, where: str) -> SpectralDataset:
    """The data set with its concentration unit stated by the caller, or by the file, and what must be said of it; a
    contradiction is refused."""
    if unit is not None and not isinstance(unit, str):
        raise InputError(f"concentration_unit must be the name of a unit, such as 'µM', but {short(unit)} was given.")
    told = [note for note in label_notes(unit or data.concentration_unit) if note not in data.notes]
    if unit is None or spelled(unit) == spelled(data.concentration_unit):
        return data.with_metadata(notes=(*data.notes, *told)) if told else data
    if data.concentration_unit:
        raise InputError(
            f"{where}: concentrations are in {data.concentration_unit}, not in {unit}; leave the unit out, or convert."
        )
    return data.with_metadata(concentration_unit=unit, notes=(*data.notes, *told))
