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
# … also where the file does not say what it is, if no value is beyond what absorbance reaches and not all are counts …
ABSORBANCE_REACHES = 12.0
# … or the full scale of a converter, in counts.
_FULL_SCALE = frozenset(float(2**bits - 1) for bits in (8, 10, 12, 14, 16, 18, 20, 24, 32))


def clean(recording: Recording) -> Recording:
    """Average wavelengths that occur twice, mask values at the detector's cap, and note how many, in place.

    Raises:
        ReaderError: an abscissa that no spectrum has, more duplicate wavelengths than `MOST_DUPLICATES`.
    """
    for trace in recording.traces:
        _require_abscissae(trace, recording)
    if recording.repairs and recording.averages_duplicates:
        _average_duplicates(recording)
    if recording.repairs:
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
    full = cap in _FULL_SCALE
    large = full
    if recording.signal == "absorbance":
        large = cap >= CAP_ABSORBANCE
    elif recording.signal == "signal" and CAP_ABSORBANCE <= cap <= ABSORBANCE_REACHES:
        large = any((v != np.round(v)).any() for v in values)
    if not large or not masked_by_cap(values, full).any():
        return
    count = 0
    for trace in recording.traces:
        at_cap = trace.values == cap
        if at_cap.any():
            trace.masked = at_cap if trace.masked is None else trace.masked | at_cap
            count += int(at_cap.sum())
    recording.mask_reasons[f"at {cap:g}, the cap of the detector"] += count


def masked_by_cap(spectra: list[Floats], full: bool) -> np.ndarray:
    """Which of ``spectra`` hold values at the detector's cap: none where their largest value is none.

    Args:
        full: whether that value is the full scale of a converter, which needs no further proof.
    """
    cap, step = max(float(v.max()) for v in spectra), _last_digit(np.concatenate(spectra))
    runs = [(v, first, stop) for v in spectra for first, stop in _runs(v == cap) if stop - first >= CAP_RUN]
    proven = any(full or not _is_rounded_top(v, first, stop, step) for v, first, stop in runs)
    return np.array([proven and bool((v == cap).any()) for v in spectra])


def _last_digit(values: Floats) -> float:
    """What two values of the file differ by at least: one unit of the last digit that was written."""
    apart = np.diff(np.unique(values))
    return float(apart.min()) if apart.size else 0.0


def _is_rounded_top(values: Floats, first: int, stop: int, step: float) -> bool:
    """Whether the run ``first … stop`` of the largest of ``values [W]`` may be the top of a band, rounded to ``step``.

    A parabola that stays within one step over r points falls by no more than (1 + 2j/r)² steps up to j points beyond
    them, and by one more where that is rounded. What falls faster, on either side, was cut off: of a parabola cut off
    h below its top, 8h at j = r, so what passes has lost a step and a quarter at most.
    """
    run = stop - first
    for side in (values[:first][::-1][:run], values[stop : stop + run]):
        j = np.arange(1, len(side) + 1)
        if (values[first] - side > step * (1.01 + (1.0 + 2.0 * j / run) ** 2)).any():
            return False
    return run < len(values)


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(np.int8), [0]))))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
