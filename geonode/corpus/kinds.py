"""What a kind of chemistry, spectrum, detection, design and error is, and where each is registered.

A new kind is one new file in the folder of its sort: a class with a ``share``, decorated with the registry's
``register("name")``. Its docstring gives the equation, the range of its parameters and where they come from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

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
    """

    low: Tensor
    high: Tensor


class Chemistry:
    """Concentration → amounts of up to `SPECIES` species, of order one.

    Attributes:
        share: of all assays, relative to the other kinds.
        window: None where the axis is an amount, relative to the highest level; else the widest range of the axis
            (lowest, highest) and the narrowest and widest span of a calibration in it, in the axis's unit.
        error: where there is a window, the smallest and largest error of setting the axis, in its unit.
        spectra: the only kind of spectrum that suits, or None.
    """

    share: float = 0.0
    window: tuple[float, float, float, float] | None = None
    error: tuple[float, float] = (0.0, 0.0)
    spectra: str | None = None

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
    """

    share: float = 0.0
    emits: bool = False
    signed: bool = False

    def molar(self, numbers: Numbers, x: Tensor) -> Tensor:
        """Molar spectra [b, `SPECIES`, W], ≥ 0 unless `signed`, of order one; x [W]: positions in [0, 1]."""
        raise NotImplementedError

    def density(self, numbers: Numbers, x: Tensor, amounts: Tensor) -> Tensor:
        """Optical density [b, S, W] of amounts [b, S, `SPECIES`]: Beer–Lambert's sum unless bands move."""
        return amounts @ self.molar(numbers, x)


class Detection:
    """Optical density, or emission, → what the instrument shows.

    Attributes:
        share: of the assays that may have it, relative to the other kinds.
        emission: for fluorophores alone.
        unit: smallest and largest size of the signal's arbitrary unit; absorbance has none.
    """

    share: float = 0.0
    emission: bool = False
    unit: tuple[float, float] = (1.0, 1.0)

    def detect(self, numbers: Numbers, density: Tensor, c: Tensor, x: Tensor) -> Tensor:
        """Signal [b, S, W].

        Args:
            numbers: of these b assays.
            density: [b, S, W]; largest absolute value over the standards is one: the kind scales it as its
                instrument would have it.
            c: true concentration [b, S], 0 to about 1 over the calibrated range.
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
        """Ascending levels [b, n], the highest 1, the lowest ≥ 0. With `spans` the lowest is 0."""
        raise NotImplementedError


CHEMISTRY: Registry[type[Chemistry]] = Registry("family", package="geonode.corpus.chemistry")
SPECTRA: Registry[type[Spectra]] = Registry("kind of spectrum", package="geonode.corpus.spectra")
DETECTION: Registry[type[Detection]] = Registry("kind of detection", package="geonode.corpus.detection")


class Error:
    """What a measured sample differs by. Errors are independent of each other; a method without effect is not given.

    Attributes:
        share: probability that an assay has it.
    """

    share: float = 0.0

    def concentration(self, lab: Lab, c: Tensor) -> Tensor | None:
        """True concentration [B, M] of samples whose nominal one is c."""
        return None

    def path(self, lab: Lab) -> Tensor | None:
        """Relative error [B, M] of the optical path, before detection."""
        return None

    def gain(self, lab: Lab) -> Tensor | None:
        """Relative error [B, M] of the signal, after detection."""
        return None

    def wavelength(self, lab: Lab) -> Tensor | None:
        """Shift [B, M] of the wavelength axis, as a fraction of the window."""
        return None

    def additive(self, lab: Lab) -> tuple[Tensor, Tensor] | None:
        """Amounts [B, M, J] of additive shapes [B, J, W], relative to the response."""
        return None

    def variance(self, lab: Lab, signal: Tensor) -> Tensor | None:
        """Variance of independent noise, broadcast to [B, M, W], relative to the response squared; signal [B, M, W]."""
        return None


DESIGNS: Registry[type[Design]] = Registry("design", package="geonode.corpus.designs")
ERRORS: Registry[type[Error]] = Registry("kind of error", package="geonode.corpus.errors")
