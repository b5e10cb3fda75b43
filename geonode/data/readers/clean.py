"""Quirks that instruments leave in their files: wavelengths recorded twice, detectors at their cap. Each is counted."""

from __future__ import annotations

import numpy as np

from geonode.data.checks import LARGEST, SMALLEST, Floats
from geonode.data.readers.recording import Recording, Trace

# Of the wavelengths of one spectrum, this share may occur twice (lamp or grating changes, seams between detectors);
# where it is more, the file holds something else, such as a scan forth and back.
MOST_DUPLICATES = 0.02
# A detector is at its cap where the largest value of the file stands this often in a row in one spectrum …
CAP_RUN = 3
# … and is this large, in absorbance: below, a flat top may be chemistry.
CAP_ABSORBANCE = 2.0
# … or the full scale of a converter, in counts.
_FULL_SCALE = frozenset(float(2**bits - 1) for bits in (8, 10, 12, 14, 16, 18, 20, 24, 32))


def clean(recording: Recording) -> Recording:
    """Average wavelengths that occur twice, mask values at the detector's cap, and note how many, in place.

    Raises:
        ReaderError: an abscissa that no spectrum has, more duplicate wavelengths than `MOST_DUPLICATES`.
    """
    for trace in recording.traces:
        _require_abscissae(trace, recording)
    if recording.repairs:
        _average_duplicates(recording)
        _mask_cap(recording)
    for reason, count in recording.mask_reasons.items():
        recording.notes.append(f"{count} value{'s' if count > 1 else ''} masked: {reason}")
    return recording


def _require_abscissae(trace: Trace, recording: Recording) -> None:
    """Numbers that an axis may have: what a damaged header gives is not finite, denormal or vast."""
    size = np.abs(trace.wavelengths)
    wrong = np.flatnonzero(~((size == 0) | ((size > SMALLEST) & (size < LARGEST))))
    if wrong.size:
        k = wrong[0]
        raise recording.fail(
            f"'{trace.name}' ({trace.place}) has an abscissa of {trace.wavelengths[k]:g} (point {k + 1}), which no "
            "spectrum has; the file is damaged, so export it again."
        )


def _average_duplicates(recording: Recording) -> None:
    averaged: list[float] = []
    spectra = 0
    for trace in recording.traces:
        ordered = np.sort(trace.wavelengths)
        twice = np.unique(ordered[1:][np.diff(ordered) == 0])
        if not twice.size:
            continue
        if len(ordered) - len(np.unique(ordered)) > max(2, MOST_DUPLICATES * len(ordered)):
            raise recording.fail(
                f"'{trace.name}' ({trace.place}) repeats {twice.size} wavelengths, the first {twice[0]:.10g}, "
                "so it seems to hold several scans; export one scan a spectrum."
            )
        _merge_duplicates(trace)
        averaged += twice.tolist()
        spectra += 1
    if averaged:
        several = sorted(set(averaged))
        listed = ", ".join(f"{x:.10g}" for x in several[:5]) + (" …" if len(several) > 5 else "")
        recording.notes.append(
            f"wavelength{'s' if len(several) > 1 else ''} {listed} recorded more than once and averaged, "
            f"in {spectra} spectr{'a' if spectra > 1 else 'um'}"
        )


def _merge_duplicates(trace: Trace) -> None:
    descending = len(trace.wavelengths) > 1 and trace.wavelengths[0] > trace.wavelengths[-1]
    masked = np.zeros(trace.wavelengths.shape, dtype=bool) if trace.masked is None else trace.masked
    x, inverse = np.unique(trace.wavelengths, return_inverse=True)
    usable = np.bincount(inverse, weights=~masked)
    total = np.bincount(inverse, weights=np.where(masked, 0.0, trace.values))
    y = np.divide(total, usable, out=np.full(len(x), np.nan), where=usable > 0)
    step = -1 if descending else 1
    trace.wavelengths, trace.values = x[::step], y[::step]
    trace.masked = None if trace.masked is None else (usable == 0)[::step]


def _mask_cap(recording: Recording) -> None:
    values = [trace.values[np.isfinite(trace.values)] for trace in recording.traces]
    values = [v for v in values if v.size]
    if not values:
        return
    cap = max(float(v.max()) for v in values)
    large = cap >= CAP_ABSORBANCE if recording.signal == "absorbance" else cap in _FULL_SCALE
    if not large or not any(_longest_run(v == cap) >= CAP_RUN for v in values):
        return
    count = 0
    for trace in recording.traces:
        at_cap = trace.values == cap
        if at_cap.any():
            trace.masked = at_cap if trace.masked is None else trace.masked | at_cap
            count += int(at_cap.sum())
    recording.mask_reasons[f"at {cap:g}, the cap of the detector"] += count


def _longest_run(flags: Floats | np.ndarray) -> int:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(np.int8), [0]))))
    return int((edges[1::2] - edges[::2]).max()) if edges.size else 0
