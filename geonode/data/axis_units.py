"""Axes of spectra in one another's units: wavelengths, wavenumbers, photon energies and frequencies."""

from __future__ import annotations

import numpy as np

from geonode.data.checks import Floats
from geonode.data.readers.units import wavelength_unit
from geonode_runtime.axes import INVERSE, LENGTHS, convert_axis


def names_axis(said: str) -> bool:
    """Whether a name, such as that of a column or a dimension, is one of an axis of wavelengths."""
    return wavelength_unit(said.replace("_", " ")) is not None


def mistaken_unit(values: Floats, standards: Floats, unit: str) -> str:
    """The unit in which wavelengths without one would lie where the standards' do, if they do not as they are; empty
    where there is none, or where the two overlap."""
    if not len(values) or (values.min() <= standards.max() and values.max() >= standards.min()):
        return ""
    for other in (*LENGTHS, *INVERSE):
        moved = convert_axis(np.asarray(values, dtype=np.float64), other, unit)
        if moved is not None and other != unit and moved.min() <= standards.max() and moved.max() >= standards.min():
            return other
    return ""
