"""What a file is: its format, spectra, concentrations and where they were found, and everything that was done to it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from geonode.data.checks import format_level, named_files
from geonode.data.dataset import SpectralDataset
from geonode.data.readers.assemble import merged_notes
from geonode.data.readers.loading import record, standards_of
from geonode.data.readers.recording import Recording, Trace
from geonode.errors import InputError


@dataclass(frozen=True)
class Inspection:
    """Findings on one file, or on several that are read together.

    Attributes:
        file: its path, or of several their number and the first and last. format: what it is, in words.
        spectra: number of spectra. points: fewest and most wavelengths of a spectrum.
        wavelengths: lowest and highest, in ``wavelength_unit``. signal: what was measured, in ``signal_unit``.
        samples: (name, concentration or None, place in the file) of each spectrum, in the file's order; a concentration
            has one value per analyte.
        concentrations_from: where the concentrations were found; empty if nowhere.
        concentration_unit, analytes: of the concentrations, as far as known.
        series: names of the series in it, if it holds several.
        masked: number of unusable values. notes: what was dropped, masked, averaged or assumed.
        problem: why it is no set of standards as it stands, in one sentence; empty if it is one.
    """

    file: str
    format: str
    spectra: int
    points: tuple[int, int]
    wavelengths: tuple[float, float]
    wavelength_unit: str
    signal: str
    signal_unit: str
    samples: tuple[tuple[str, tuple[float, ...] | None, str], ...]
    concentrations_from: str
    concentration_unit: str
    analytes: tuple[str, ...]
    series: tuple[str, ...]
    masked: int
    notes: tuple[str, ...]
    problem: str

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def lines(self, samples: int = 12) -> list[str]:
        """A description, one finding a line, with at most so many samples."""
        low, high = self.points
        points = f"{low}" if low == high else f"{low} to {high}"
        unit = f" [{self.signal_unit}]" if self.signal_unit else ""
        result = [
            f"{self.file}: {self.format}",
            f"spectra: {self.spectra} × {points} wavelengths, {self.wavelengths[0]:g}–{self.wavelengths[1]:g} "
            f"{self.wavelength_unit or '(unit not stated)'}, {self.signal}{unit}",
            f"concentrations: {self._concentrations()}",
        ]
        if len(self.series) > 1:
            result.append(f"series: {', '.join(self.series)}")
        for name, point, place in self.samples[:samples]:
            result.append(f"  {name} ({place}): " + ("unknown" if point is None else format_level(point)))
        if len(self.samples) > samples:
            result.append(f"  … {len(self.samples) - samples} more")
        result += [f"note: {note}" for note in self.notes]
        result.append(f"as standards: {self.problem or 'ready'}")
        return result

    def _concentrations(self) -> str:
        known = [point for _, point, _ in self.samples if point is not None]
        if not known:
            return "none in the file"
        levels = sorted(set(known))
        listed = " ".join(format_level(level) for level in levels[:12]) + (" …" if len(levels) > 12 else "")
        unit = f" {self.concentration_unit}" if self.concentration_unit else ""
        of = f" of {' and '.join(self.analytes)}" if self.analytes else ""
        return f"{len(levels)} levels{of}, {listed}{unit}, from {self.concentrations_from or 'the file'}"


def inspect_file(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    concentrations: str | os.PathLike[str] | Mapping[str, float | Sequence[float]] | None = None,
    column: str | Sequence[str] | None = None,
    select: str | None = None,
    decimal: str | None = None,
    sheet: str | None = None,
) -> Inspection:
    """Read a file, or a folder or several files, as `geonode.load_standards` would, and say what was found.

    Arguments as for `geonode.load_standards`: ``path``, ``concentrations``, ``column``, ``decimal``, ``sheet``;
    ``select`` bears on ``problem`` alone.

    Raises:
        ReaderError: a file cannot be read as spectra at all.
    """
    recordings = record(path, concentrations=concentrations, column=column, decimal=decimal, sheet=sheet)
    return inspected(recordings, select)[0]


def inspected(recordings: Sequence[Recording], select: str | None) -> tuple[Inspection, SpectralDataset | None]:
    """What was found in files that were read, and the standards that they make; None where they make none."""
    try:
        made = standards_of(recordings, select=select)
    except InputError as error:
        named = named_files([str(recording.path) for recording in recordings])
        return _describe(recordings, str(error).removeprefix(f"{named}: ")), None
    found = _describe(recordings, "")
    return replace(found, notes=tuple(dict.fromkeys((*found.notes, *made.notes)))), made


def _describe(recordings: Sequence[Recording], problem: str) -> Inspection:
    several = len(recordings) > 1
    traces = [trace for recording in recordings for trace in recording.traces]

    def named(recording: Recording, trace: Trace) -> str:
        alone = len(recording.traces) == 1
        return trace.name if not several else recording.path.name if alone else f"{recording.path.name}: {trace.name}"

    def said(attribute: str) -> str:
        return ", ".join(dict.fromkeys(filter(None, (getattr(recording, attribute) for recording in recordings))))

    points = [len(trace.wavelengths) for trace in traces] or [0]
    finite = [x[np.isfinite(x)] for trace in traces if (x := trace.wavelengths).size]
    ends = [value for x in finite if x.size for value in (float(x.min()), float(x.max()))] or [float("nan")] * 2
    first, last = recordings[0].path, recordings[-1].path
    return Inspection(
        file=f"{len(recordings)} files, {first} to {last.name}" if several else str(first),
        format=said("format"),
        spectra=len(traces),
        points=(min(points), max(points)),
        wavelengths=(min(ends), max(ends)),
        wavelength_unit=said("wavelength_unit"),
        signal=said("signal"),
        signal_unit=said("signal_unit"),
        samples=tuple(
            (named(r, t), None if t.unknown else t.concentration, t.place) for r in recordings for t in r.traces
        ),
        concentrations_from=said("concentrations_from"),
        concentration_unit=said("concentration_unit"),
        analytes=tuple(dict.fromkeys(one for recording in recordings for one in recording.analytes or ())),
        series=tuple(dict.fromkeys(trace.series for trace in traces if trace.series)),
        masked=sum(int(trace.masked.sum()) for trace in traces if trace.masked is not None),
        notes=tuple(merged_notes(recordings)),
        problem=problem,
    )
