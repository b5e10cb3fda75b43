"""From what readers found to one `SpectralDataset`: one grid, one unit, a concentration for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from geonode.data import checks
from geonode.data.dataset import SpectralDataset
from geonode.data.readers.recording import Recording, Trace
from geonode.data.readers.text import shorten
from geonode.errors import InputError, ReaderError

Found = list[tuple[Recording, Trace]]


def assemble(
    recordings: Sequence[Recording], *, select: str | None = None, concentration_unit: str | None = None
) -> SpectralDataset:
    """One data set of the traces of all files, or of those whose name contains ``select``.

    Raises:
        ReaderError: nothing selected, several series and none selected, a spectrum without a concentration, different
            wavelengths or units, and whatever `SpectralDataset` refuses.
    """
    where = ", ".join(str(recording.path) for recording in recordings)
    first = recordings[0]
    if len(recordings) == 1 and first.dataset is not None and select is None:
        return _with_unit(first.dataset, concentration_unit, where)
    found = _select(recordings, select, where)
    _require_one_series(found, select, where)
    _require_concentrations(found, where)
    shared: dict[str, Any] = {
        "concentration_unit": _common(recordings, "concentration_unit", where),
        "wavelength_unit": _common(recordings, "wavelength_unit", where),
        "signal": _common(recordings, "signal", where),
        "signal_unit": _common(recordings, "signal_unit", where),
    }
    several = len(recordings) > 1
    names = [f"{recording.path.name}: {trace.name}" if several else trace.name for recording, trace in found]
    notes = [f"{r.path.name}: {note}" if several else note for r in recordings for note in r.notes]
    wavelengths, spectra, mask = _on_one_grid(found, names, notes, where)
    groups = [trace.group for _, trace in found]
    try:
        data = SpectralDataset(
            spectra,
            np.array([trace.concentration for _, trace in found], dtype=np.float64),
            wavelengths,
            groups=groups if all(group is not None for group in groups) else None,
            analytes=first.analytes,
            names=names,
            mask=mask,
            notes=notes,
            source=where,
            **shared,
        )
    except InputError as error:
        raise ReaderError(str(error)) from None
    return _with_unit(data, concentration_unit, where)


def _select(recordings: Sequence[Recording], select: str | None, where: str) -> Found:
    found = [(recording, trace) for recording in recordings for trace in recording.traces]
    if not found:
        raise ReaderError(f"{where}: no spectrum found.")
    if select is None:
        return found
    chosen = [(r, t) for r, t in found if select.casefold() in t.name.casefold()]
    if not chosen:
        raise ReaderError(
            f"{where}: no spectrum is named like '{select}'; there are {_listed(t.name for _, t in found)}."
        )
    return chosen


def _require_one_series(found: Found, select: str | None, where: str) -> None:
    series = list(dict.fromkeys(trace.series for _, trace in found if trace.series))
    if len(series) > 1:
        within = f" named like '{select}'" if select else ""
        raise ReaderError(
            f"{where}: {len(series)} series{within} ({_listed(series)}); choose one by a part of its name, "
            f"such as --select {_telling_part(series)}."
        )


def _telling_part(series: list[str]) -> str:
    """A word of the last series that no other series has, for the example in a message."""
    words = series[-1].replace("-", "_").replace(" ", "_").split("_")
    return next((w for w in reversed(words) if w and not any(w in other for other in series[:-1])), series[-1])


def _require_concentrations(found: Found, where: str) -> None:
    without = [trace.name for _, trace in found if trace.concentration is None]
    if without:
        raise ReaderError(
            f"{where}: no concentration is known for {_listed(without)}; select the standards by name, or write a "
            "CSV whose first column is 'wavelength' and whose other columns are headed by their concentration."
        )
    sizes = {len(trace.concentration or ()) for _, trace in found}
    if len(sizes) > 1:
        raise ReaderError(f"{where}: spectra of different numbers of analytes ({sorted(sizes)}); read them apart.")


def _common(recordings: Sequence[Recording], attribute: str, where: str) -> str:
    """The one value of an attribute; an empty one agrees with any other."""
    values = list(dict.fromkeys(v for r in recordings if (v := getattr(r, attribute))))
    if len(values) > 1:
        what = attribute.replace("_", " ")
        raise ReaderError(f"{where}: the files differ in {what} ({', '.join(values)}); convert them to one first.")
    return values[0] if values else ""


def _on_one_grid(found: Found, names: list[str], notes: list[str], where: str):
    """(wavelengths [W], spectra [N, W], mask [N, W]) in ascending order; refuses grids that differ."""
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
    """The data set with its concentration unit stated by the caller; a contradiction is refused."""
    if unit is None or unit == data.concentration_unit:
        return data
    if data.concentration_unit:
        raise InputError(
            f"{where}: concentrations are in {data.concentration_unit}, not in {unit}; leave the unit out, or convert."
        )
    return data.with_metadata(concentration_unit=unit)


def _listed(names: Iterable[str], limit: int = 12) -> str:
    quoted = [f"'{shorten(name, 60)}'" for name in names]
    more = len(quoted) - limit
    return ", ".join(quoted[:limit]) + (f" and {more} more" if more > 0 else "")
