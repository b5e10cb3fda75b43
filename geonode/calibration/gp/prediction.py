"""What a :class:`~geonode.calibration.gp.geodesic_gp.GeodesicGP` returns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from scipy.special import stdtrit

from geonode.errors import InputError


@dataclass(frozen=True)
class GPWeights:
    """How predictions at C concentrations are made of the n level spectra: the part that knows no wavelengths.

    Attributes:
        variance: ``[C]`` Σ w v(c), the weighted kriging variance (dimensionless).
        mean: ``[C, n]`` B̄ with ``mean spectrum = column mean + B̄ R``.
        within: ``[C, n, n]`` Σ w v(c) K⁻¹, so that ``Rᵀ (·) R`` is the within-candidate covariance (× dof).
        between: ``[C, n, n]`` covariance of the candidates' rows of weights, so that ``Rᵀ (·) R`` is the covariance
            between candidates.
    """

    variance: np.ndarray
    mean: np.ndarray
    within: np.ndarray
    between: np.ndarray

    @classmethod
    def joined(cls, parts: Sequence[GPWeights]) -> GPWeights:
        """Those of all concentrations, from those of the first, of the next …"""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)))


@dataclass(frozen=True)
class KrigingUpdate:
    """What a further spectrum at each of E concentrations would leave uncertain at C concentrations.

    Attributes:
        within: ``[E, C, n, n]`` Σ w v(c) K⁻¹ afterwards; within_at: ``[E, n, n]`` the same at the new point, before.
        between: ``[C, n, n]`` as in :class:`GPWeights`; between_at: ``[E, n, n]`` at the new points; between_cross:
            ``[E, C, n, n]`` covariance of the candidates' rows at c with those at the new point.
    """

    within: np.ndarray
    within_at: np.ndarray
    between: np.ndarray
    between_at: np.ndarray
    between_cross: np.ndarray


@dataclass(frozen=True)
class SpectralCovariance:
    """Scale matrix Σ = FᵀF + diag(d) of the predictive Student t over wavelengths, at C concentrations.

    Its diagonal is ``scale²`` of the prediction; the covariance is ν/(ν − 2) times it.

    Attributes:
        factors: ``[C, r, W]`` F; r is at most the number of standards (and of seeds besides, for a neural ensemble).
        diagonal: ``[C, W]`` d, not negative: noise, and what is shared by all wavelengths alike.
    """

    factors: np.ndarray
    diagonal: np.ndarray

    def dense(self) -> np.ndarray:
        """``[C, W, W]``: for few wavelengths."""
        full = self.factors.transpose(0, 2, 1) @ self.factors
        return full + self.diagonal[:, :, None] * np.eye(self.diagonal.shape[1])


@dataclass(frozen=True)
class GPPrediction:
    """Prediction at C concentrations; all arrays are numpy float64 in the units of the fitted spectra.

    Attributes:
        concentrations: ``[C]``, user units.
        mean: ``[C, W]`` evidence-weighted mean spectrum.
        scale: ``[C, W]`` scale of the predictive Student t (for one further spectrum at that concentration).
        dof: its degrees of freedom, n − 1 + 2.
        noise_variance: ``[W]`` the part of ``scale²`` that is scatter of samples or noise of the measurement.
        extrapolated: ``[C]`` true outside the calibrated range.
        weights: the same in terms of the level spectra.
    """

    concentrations: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    dof: float
    noise_variance: np.ndarray
    extrapolated: np.ndarray
    weights: GPWeights

    @property
    def std(self) -> np.ndarray:
        """``[C, W]`` standard deviation of the predictive Student t: scale · √(ν / (ν − 2))."""
        return self.scale * math.sqrt(self.dof / (self.dof - 2.0))

    def interval(self, level: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limits ``[C, W]`` of the central interval at ``level`` (0 < level < 1), per wavelength.

        Raises:
            InputError: a level out of that range.
        """
        if not 0.0 < level < 1.0:
            raise InputError(f"the interval level must lie between 0 and 1, but {level} was given.")
        half = stdtrit(self.dof, 0.5 + 0.5 * level) * self.scale
        return self.mean - half, self.mean + half
