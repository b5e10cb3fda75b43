"""Axes of spectra in one another's units: wavelengths, wavenumbers, photon energies and frequencies."""

from __future__ import annotations

import numpy as np

from geonode.data.checks import Floats
from geonode.data.readers.units import wavelength_unit
from geonode.errors import InputError
from geonode_runtime.axes import convert_axis
from geonode_runtime.figures import figure


def names_axis(said: str) -> bool:
    """Whether a name, such as that of a column or a dimension, is one of an axis of wavelengths."""
    return wavelength_unit(said.replace("_", " ")) is not None


def in_unit_of(standards: Floats, unit: str, own: Floats, said: str, name: str) -> Floats | None:
    """Wavelengths ``own [V]`` of ``name``, which are ``said`` to be in one unit, in the ``unit`` of the ``standards
    [W]``; None where the one does not convert to the other.

    Raises:
        InputError: they lie where the standards' do as they are, and nowhere near in the unit that is said.
    """
    moved = convert_axis(np.asarray(own, dtype=np.float64), said, unit)
    if moved is None or not len(standards) or _meet(moved, standards) or not _meet(own, standards):
        return moved
    raise InputError(
        f"the wavelengths of {name} are said to be in {said}, where {figure(own.min())} to {figure(own.max())} would "
        f"be {figure(moved.min())} to {figure(moved.max())} {unit}; as they are they lie where the standards' do, "
        f"which are in {unit}: correct the unit that is said."
    )


def no_such_axis(name: str, said: str, unit: str) -> str:
    """The refusal of a spectrum over an axis in a unit that does not convert to that of the standards' wavelengths."""
    return (
        f"the axis of {name} is in {said} and that of the standards in {unit}, and the one does not convert to the "
        f"other; give the spectrum over the same axis as the standards, in {unit}, or correct the unit that is said."
    )


def _meet(one: Floats, other: Floats) -> bool:
    return bool(one.min() <= other.max() and one.max() >= other.min())
