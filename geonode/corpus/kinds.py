"""What a kind of chemistry, spectrum, detection, design and error is, and where each is registered.

A new kind is one new file in the folder of its sort: a class with a ``share``, decorated with the registry's
``register("name")``. Its docstring gives the equation, the range of its parameters and where they come from.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from geonode.corpus.numbers import Numbers
from geonode.registry import Registry

if TYPE_CHECKING:
    from geonode.corpus.lab import Lab

SPECIES = 4  # of the chemistry; spectra hold one more, the matrix that does not change


class Axis(NamedTuple):
    """The calibrated range, relative (amounts: highest level = 1) or in its own unit (pH, potential, temperature).

    Args:
        low, high: lowest and highest nominal level [b, 1].
        first: lowest level that is not zero [b, 1].
    """

    low: Tensor
    high: Tensor
    first: Tensor

    def constant(self, numbers: Numbers, highest: float) -> Tensor:
        """A constant with the dimension of a concentration [b, 1], such as a dissociation constant, from ``numbers``.

        Analysts choose levels so that something happens among them: log-uniform from a third of the first level that
        is not zero up to ``highest`` (relative to the top), leaning to the upper half.
        """
        low = torch.log(0.3 * self.first)
        return torch.exp(low + (math.log(highest) - low) * numbers.uniform(0.0, 1.0) ** 0.7)


class Chemistry:
    """Concentration → amounts of up to `SPECIES` species, of order one.

    Attributes:
        share: of all assays, relative to the other kinds.
        window: None where the axis is an amount, relative to the highest level; else the widest range of the axis
            (lowest, highest), the narrowest and widest span of a calibration in it, and the largest mean step between
            levels, in the axis's unit.
        error: where there is a window, the smallest and largest error of setting the axis, in its unit.
        spectra: the only kind of spectrum that suits, or None.
        fixed: its bands do not move.
    """

    share: float = 0.0
    window: tuple[float, float, float, float, float] | None = None
    error: tuple[float, float] = (0.0, 0.0)
    spectra: str | None = None
    fixed: bool = False

    def amounts(self, numbers: Numbers, c: Tensor, axis: Axis) -> Tensor:
        """Amounts [b, S, K ≤ `SPECIES`], float64, ≥ 0.

        Args:
            numbers: of these b assays.
            c: true concentration [b, S] float64, ≥ 0, of any order; relative to the highest level, or in the unit of
                the axis.
            axis: the calibrated range.
        """
        raise NotImplementedError


class Spectra:
    """Amounts → optical density, or emission, on a wavelength axis from 0 to 1.

    Attributes:
        share: of the assays whose chemistry leaves the choice, relative to the other kinds.
        emits: may be the spectrum of a fluorophore.
        signed: may be negative (a derivative, a difference, a circular dichroism).
        moves: bands move with the amounts; else the spectrum is a sum of molar ones.
    """

    share: float = 0.0
    emits: bool = False
    signed: bool = False
    moves: bool = False

    def molar(self, numbers: Numbers, x: Tensor) -> Tensor:
        """Molar spectra [b, `SPECIES`, W], ≥ 0 unless `signed`, of order one.

        Args:
            numbers: of these b assays.
            x: [W], positions in [0, 1].
        """
        raise NotImplementedError

    def density(self, numbers: Numbers, x: Tensor, amounts: Tensor) -> Tensor:
        """Optical density [b, S, W] of amounts [b, S, `SPECIES`]: Beer–Lambert's sum unless bands move.

        Other arguments as in `molar`.
        """
        return amounts @ self.molar(numbers, x)


class Detection:
    """Optical density, or emission, → what the instrument shows.

    Attributes:
        share: of the assays that may have it, relative to the other kinds.
        emission: for fluorophores alone.
        signed: shows negative densities as they are; else it is for spectra that have none.
        unit: smallest and largest size of the signal's arbitrary unit; absorbance has none.
    """

    share: float = 0.0
    emission: bool = False
    signed: bool = False
    unit: tuple[float, float] = (1.0, 1.0)

    def detect(self, numbers: Numbers, density: Tensor, c: Tensor, x: Tensor) -> Tensor:
        """Signal [b, S, W].

        Args:
            numbers: of these b assays.
            density: [b, S, W]; largest absolute value over the standards is one: the kind scales it as its
                instrument would have it.
            c: true concentration [b, S], relative to the highest level; constant where the axis is no amount.
            x: [W], positions in [0, 1].
        """
        raise NotImplementedError


class Design:
    """Where the standards lie.

    Attributes:
        share: of the calibrations that may have it, relative to the other kinds.
        spans: fits any axis, also one that is far from zero; else an amount alone.
        serial: each level is made from the next higher one.
    """

    share: float = 0.0
    spans: bool = False
    serial: bool = False

    def levels(self, numbers: Numbers, n: int) -> Tensor:
        """Ascending levels [b, n], the highest 1, the lowest ≥ 0. With `spans` the lowest is 0.

        Args:
            numbers: of these b assays.
            n: levels.
        """
        raise NotImplementedError


CHEMISTRY: Registry[type[Chemistry]] = Registry("family", package="geonode.corpus.chemistry")
SPECTRA: Registry[type[Spectra]] = Registry("kind of spectrum", package="geonode.corpus.spectra")
DETECTION: Registry[type[Detection]] = Registry("kind of detection", package="geonode.corpus.detection")


class Error:
    """What measured samples differ by. An error overrides one or more of the methods; each is given the ``lab``.

    Attributes:
        share: probability that an assay has it.
    """

    share: float = 0.0

    def concentration(self, lab: Lab, c: Tensor) -> Tensor | None:
        """True concentration [B, M] of samples in the ``lab`` that were meant to have ``c``."""
        return None

    def path(self, lab: Lab) -> Tensor | None:
        """Relative error [B, M] of the optical path in the ``lab``, before detection."""
        return None

    def gain(self, lab: Lab) -> Tensor | None:
        """Relative error [B, M] of the signal in the ``lab``, after detection."""
        return None

    def wavelength(self, lab: Lab) -> Tensor | None:
        """Shift [B, M] of the wavelength axis in the ``lab``, as a fraction of the window."""
        return None

    def additive(self, lab: Lab) -> tuple[Tensor, Tensor] | None:
        """Amounts [B, M, J] of additive shapes [B, J, W] in the ``lab``, relative to the response."""
        return None

    def recorded(self, lab: Lab, signal: Tensor, response: Tensor) -> Tensor | None:
        """The ``signal`` [B, M, W] of the ``lab`` as it is written down; ``response`` [B, 1, 1] in its unit."""
        return None

    def variance(self, lab: Lab, signal: Tensor) -> Tensor | None:
        """Variance of noise in the ``lab``, broadcast to [B, M, W]; ``signal`` [B, M, W] comes over the response."""
        return None


DESIGNS: Registry[type[Design]] = Registry("design", package="geonode.corpus.designs")
ERRORS: Registry[type[Error]] = Registry("kind of error", package="geonode.corpus.errors")
