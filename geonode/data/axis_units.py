"""Axes of spectra in one another's units: wavelengths, wavenumbers, photon energies and frequencies."""

from __future__ import annotations

import numpy as np

from geonode.data.checks import Floats
from geonode.data.readers.units import NANOMETRE_ELECTRONVOLT, wavelength_unit

# Unit → nanometres of one of it (lengths), or nanometres times one of it (what is inverse to a length).
_LENGTHS = {"nm": 1.0, "µm": 1e3, "Å": 0.1}
_INVERSE = {
    "cm-1": 1e7,
    "eV": NANOMETRE_ELECTRONVOLT,
    "meV": 1e3 * NANOMETRE_ELECTRONVOLT,
    "THz": 299_792.458,
    "GHz": 299_792_458.0,
}


def names_axis(said: str) -> bool:
    """Whether a name, such as that of a column or a dimension, is one of an axis of wavelengths."""
    return wavelength_unit(said.replace("_", " ")) is not None


def convert_axis(values: Floats, unit: str, target: str) -> Floats | None:
    """``values`` in the unit ``target``; None where either unit is none of the known ones, or a value is not positive
    where one of the two is inverse to the other."""
    if unit == target:
        return values
    if unit in _LENGTHS and target in _LENGTHS:
        return values * (_LENGTHS[unit] / _LENGTHS[target])
    if not ({unit, target} <= _LENGTHS.keys() | _INVERSE.keys()) or not (values > 0.0).all():
        return None
    nanometres = values * _LENGTHS[unit] if unit in _LENGTHS else _INVERSE[unit] / values
    return nanometres / _LENGTHS[target] if target in _LENGTHS else _INVERSE[target] / nanometres


def mistaken_unit(values: Floats, standards: Floats, unit: str) -> str:
    """The unit in which wavelengths without one would lie where the standards' do, if they do not as they are; empty
    where there is none, or where the two overlap."""
    if not len(values) or (values.min() <= standards.max() and values.max() >= standards.min()):
        return ""
    for other in (*_LENGTHS, *_INVERSE):
        moved = convert_axis(np.asarray(values, dtype=np.float64), other, unit)
        if moved is not None and other != unit and moved.min() <= standards.max() and moved.max() >= standards.min():
            return other
    return ""
