"""What a cause of a misfit is: a rule by which the curve's spectrum becomes what the instrument gave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from geonode_runtime.figures import figure


@dataclass(frozen=True)
class Axis:
    """Values of a setting that a cause is tried with, and whether those between them are tried too."""

    values: np.ndarray
    between: bool = True


@dataclass(frozen=True)
class Told:
    """What a cause's words need.

    Attributes:
        settings: one value an axis. coefficients: one a column.
        wavelengths: ``[W]``. wavelength_unit, signal: for texts; ``signal`` as in "0.02 in absorbance".
    """

    settings: tuple[float, ...]
    coefficients: tuple[float, ...]
    wavelengths: np.ndarray
    wavelength_unit: str
    signal: str

    def at(self, wavelength: float) -> str:
        """A wavelength, three or four digits, with its unit."""
        return figure(wavelength, self.wavelength_unit)


class Cause:
    """One way in which a spectrum of the assay may be spoilt.

    What was measured is taken for ``base(curve) + Σ coefficient · column``: settings by trial, coefficients by least
    squares.

    Attributes:
        parameters: how many free numbers it has; each must pay for itself.
        remedy: what to look at, for the sentence.
        positive: whether every coefficient must be positive.
        multiplies: whether it multiplies the curve: where the curve begins any spectrum is a small multiple of another,
            and noise a multiple of nothing, so that such fits say nothing.
        other_quantity: whether the spectrum is then of another quantity than the standards', so that its size beside
            theirs says nothing; it is named wherever along the curve, beyond the standards too.
        least: the share of the misfit that it must explain, where that is more than any cause must. Of simulated
            absorbance given as transmittance (families that no training had) that explains 99.5 % at least in all but
            one of 490 cases, and 98 % at most of 127 spectra of other assays.
    """

    parameters: ClassVar[int]
    remedy: ClassVar[str]
    positive: ClassVar[bool] = False
    multiplies: ClassVar[bool] = False
    other_quantity: ClassVar[bool] = False
    least: ClassVar[float] = 0.0

    def axes(self, wavelengths: np.ndarray) -> tuple[Axis, ...]:
        """The settings to be tried over ``wavelengths [W]``; none for a cause with coefficients alone."""
        return ()

    def base(self, curve: np.ndarray, wavelengths: np.ndarray, settings: np.ndarray) -> np.ndarray:
        """What of the curve's spectra ``[C, W]`` is there whatever the coefficients, ``[C, T | 1, W]``, at ``settings
        [T, axes]``."""
        return curve[:, None, :]

    def columns(self, curve: np.ndarray, wavelengths: np.ndarray, settings: np.ndarray) -> list[np.ndarray]:
        """What the coefficients multiply, each ``[C | 1, T | 1, W]``."""
        return []

    def words(self, told: Told) -> str:
        """The cause and its amount, as it stands in a sentence."""
        raise NotImplementedError
