"""Why wavelengths miss those of the standards: often one of the two is in another unit, which the numbers show."""

from __future__ import annotations

import numpy as np

NANOMETRE_ELECTRONVOLT = 1239.841984
"""h·c in nm·eV (CODATA 2018): the wavelength of a photon of 1 eV."""

Axis = np.ndarray

# Unit → nanometres of one of it (lengths), or nanometres times one of it (what is inverse to a length).
LENGTHS = {"nm": 1.0, "µm": 1e3, "Å": 0.1}
INVERSE = {
    "cm-1": 1e7,
    "eV": NANOMETRE_ELECTRONVOLT,
    "meV": 1e3 * NANOMETRE_ELECTRONVOLT,
    "THz": 299_792.458,
    "GHz": 299_792_458.0,
}

# Units that are taken for each other, either way, and what lies between the numbers, in words.
_MISTAKEN = {
    ("nm", "µm"): "a factor of 1000",
    ("nm", "Å"): "a factor of 10",
    ("cm-1", "nm"): "10 000 000 divided by the number",
    ("cm-1", "µm"): "10 000 divided by the number",
    ("eV", "nm"): "1239.84 divided by the number",
}
# Where numbers of a unit lie that a spectrometer's are: 1e7/x alone would explain 400 nm by 25 000 nm as well.
_USUAL = {
    "nm": (100.0, 30_000.0),
    "µm": (0.1, 30.0),
    "Å": (1000.0, 35_000.0),
    "cm-1": (50.0, 100_000.0),
    "eV": (0.3, 13.0),
}
_COVERED, _PART = 0.9, 0.5
"""Of the standards' range, in the other unit: from there on it is told, and where the numbers as they are have none of
it."""


def convert_axis(values: Axis, unit: str, target: str) -> Axis | None:
    """``values`` in the unit ``target``; None where either unit is none of the known ones, or a value is not positive
    where one of the two is inverse to the other."""
    if unit == target:
        return values
    if unit in LENGTHS and target in LENGTHS:
        return values * (LENGTHS[unit] / LENGTHS[target])
    if not ({unit, target} <= LENGTHS.keys() | INVERSE.keys()) or not (values > 0.0).all():
        return None
    nanometres = values * LENGTHS[unit] if unit in LENGTHS else INVERSE[unit] / values
    return nanometres / LENGTHS[target] if target in LENGTHS else INVERSE[target] / nanometres


def other_unit_between(own: Axis, standards: Axis) -> str:
    """What to say of wavelengths ``own [V]`` that miss those of the ``standards [W]`` in the numbers, and cover them
    where the two are in different units; empty where no unit explains it."""
    as_they_are = _covered(own, standards) if own.size else 1.0
    if as_they_are >= 0.5:
        return ""
    best, said, least = 0.0, "", _COVERED if as_they_are else _PART
    for (one, other), between in _MISTAKEN.items():
        for mine, theirs in ((one, other), (other, one)):
            moved = convert_axis(own, mine, theirs) if _usual(own, mine) and _usual(standards, theirs) else None
            if moved is None:
                continue
            share = _covered(moved, standards)
            alike = share * float(np.ptp(standards)) / max(float(np.ptp(moved)), 1e-300)  # 1 with the same ends
            if share >= least and alike > best:
                best, units = alike, [unit.replace("-1", "⁻¹") for unit in (mine, theirs)]
                said = f"{between} lies between the two, as if one were in {units[0]} and the other in {units[1]}"
    return said


def _usual(axis: Axis, unit: str) -> bool:
    low, high = _USUAL[unit]
    return bool(axis.min() >= low and axis.max() <= high)


def _covered(axis: Axis, standards: Axis) -> float:
    """The share of the standards' range that an axis covers."""
    low, high = max(axis.min(), standards.min()), min(axis.max(), standards.max())
    span = float(np.ptp(standards))
    return max(float(high - low), 0.0) / span if span else float(low <= high)
