"""Why wavelengths miss those of the standards: often one of the two is in another unit, which the numbers show."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_PHOTON = 1239.841984
"""h·c in nm·eV (CODATA 2018)."""

Axis = np.ndarray

# What turns numbers in the first unit into the second, and what lies between them, in words.
_BETWEEN: tuple[tuple[str, str, Callable[[Axis], Axis], str], ...] = (
    ("µm", "nm", lambda x: 1e3 * x, "a factor of 1000"),
    ("nm", "µm", lambda x: 1e-3 * x, "a factor of 1000"),
    ("Å", "nm", lambda x: 0.1 * x, "a factor of 10"),
    ("nm", "Å", lambda x: 10.0 * x, "a factor of 10"),
    ("cm⁻¹", "nm", lambda x: 1e7 / x, "10 000 000 divided by the number"),
    ("nm", "cm⁻¹", lambda x: 1e7 / x, "10 000 000 divided by the number"),
    ("cm⁻¹", "µm", lambda x: 1e4 / x, "10 000 divided by the number"),
    ("µm", "cm⁻¹", lambda x: 1e4 / x, "10 000 divided by the number"),
    ("eV", "nm", lambda x: _PHOTON / x, "1239.84 divided by the number"),
    ("nm", "eV", lambda x: _PHOTON / x, "1239.84 divided by the number"),
)
# Where numbers of a unit lie that a spectrometer's are: 1e7/x alone would explain 400 nm by 25 000 nm as well.
_USUAL = {
    "nm": (100.0, 30_000.0),
    "µm": (0.1, 30.0),
    "Å": (1000.0, 35_000.0),
    "cm⁻¹": (50.0, 100_000.0),
    "eV": (0.3, 13.0),
}
_COVERED = 0.9


def other_unit_between(own: Axis, standards: Axis) -> str:
    """What to say of wavelengths ``own [V]`` that miss those of the ``standards [W]`` in the numbers, and cover them
    where the two are in different units; empty where no unit explains it."""
    if not own.size or _covered(own, standards) >= 0.5:
        return ""
    best, said = 0.0, ""
    for mine, theirs, convert, between in _BETWEEN:
        if not (_usual(own, mine) and _usual(standards, theirs)):
            continue
        moved = convert(own)
        share = _covered(moved, standards)
        alike = share * float(np.ptp(standards)) / max(float(np.ptp(moved)), 1e-300)  # 1 where both have the same ends
        if share >= _COVERED and alike > best:
            best = alike
            said = f"{between} lies between the two, as if one were in {mine} and the other in {theirs}"
    return said


def _usual(axis: Axis, unit: str) -> bool:
    low, high = _USUAL[unit]
    return bool(axis.min() >= low and axis.max() <= high)


def _covered(axis: Axis, standards: Axis) -> float:
    """The share of the standards' range that an axis covers."""
    low, high = max(axis.min(), standards.min()), min(axis.max(), standards.max())
    span = float(np.ptp(standards))
    return max(float(high - low), 0.0) / span if span else float(low <= high)
