"""From a spectrum back to its concentration: distances to the predicted curve in a space of few dimensions.

Wavelengths are correlated, so everything happens in the rank-r space spanned by what the standards themselves show:
with D the noise variance per wavelength and V the leading right singular vectors of (level means − mean) D^(−½),
r ≤ n − 1, a spectrum x becomes a = Vᵀ D^(−½) (x − mean).

    d²(c) = (a − m(c))ᵀ C(c)⁻¹ (a − m(c))
    C(c)  = τ Σ_w w [ v_w(c) S_w + (m_w − m)(m_w − m)ᵀ ] + T(c) + b(c) (I + P) + (φ I + P) / R

m(c) and the sums over candidates w come from :class:`~geonode.calibration.gp.geodesic_gp.GeodesicGP`; S_w is the
candidate's scale matrix shrunk towards a multiple of the identity with d₀ prior degrees of freedom; τ is the scale of
the curve's own uncertainty under which held-out standards are as probable as they should be
(:mod:`~geonode.calibration.assessment.held_out`); T carries the uncertainty of the standards' concentrations;
b(c) = Σ_i B̄_ci²/R_i carries the noise of the standards' own measurement into the curve, B̄ the weights of the level
means and R_i their replicates (without it sets near a single noisy standard are too narrow); P = Z_repᵀ Z_rep / df is
the scatter of replicates within that space, φ ≥ 1 the noise seen outside it (χ² of the out-of-span part ÷ its degrees
of freedom), R the replicates of the unknown.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import fdtri

from geonode.calibration.gp.geodesic_gp import GeodesicGP, GPWeights
from geonode.calibration.inverse.projection import Projection
from geonode_runtime.sets import Distances, doubt_beyond

GRID_POINTS = 512
"""Points of the curve on which distances are tabulated (between them the distance is quadratic)."""
_FEW = 3
"""Unknowns for which solving equations takes less than principal axes do."""
EXTENSION = 0.25
"""The prior reaches this fraction of the calibrated range beyond it on either side (not below zero where no standard
lies below zero)."""


class CurveParts(NamedTuple):
    """The curve at C concentrations.

    Attributes:
        mean: ``[C, r]`` m(c).
        interpolation: ``[C, r, r]`` the curve's own covariance between the standards, with τ = 1.
        concentrations: ``[C, r, r]`` T(c). noise: ``[C, r, r]`` b(c) (I + P).
    """

    mean: np.ndarray
    interpolation: np.ndarray
    concentrations: np.ndarray
    noise: np.ndarray


class InverseModel:
    """The curve m(c) with its covariance on a grid of concentrations, ready for any number of unknowns.

    Args:
        gp: fitted forward model.
        deviations: ``[N, W]`` spectra of the standards less their level means, or None.
        concentration_std: ``[n]`` standard uncertainty of each level's concentration (independent), or None.
        low, high: the range searched; None for the calibrated range and its extension.
        calibrated: ends of the range within which nothing counts as far from the standards; None for that of ``gp``.
        points: K, grid points.
        curve_scale: τ; see :meth:`set_curve_scale`.
    """

    def __init__(
        self,
        gp: GeodesicGP,
        deviations: np.ndarray | None = None,
        concentration_std: np.ndarray | None = None,
        low: float | None = None,
        high: float | None = None,
        points: int = GRID_POINTS,
        curve_scale: float = 1.0,
        calibrated: tuple[float, float] | None = None,
    ) -> None:
        self.gp = gp
        self.projection = Projection.of(gp, deviations)
        self.concentration_std = concentration_std
        default = searched_range(gp.levels)
        self.low = default[0] if low is None else float(low)
        self.high = default[1] if high is None else float(high)
        self.tangents = self._tangents()
        self.grid = self._graded_grid(points)
        parts = self.curve_parts(self.grid)
        self.mean, self._interpolation, self._standards = (
            parts.mean,
            parts.interpolation,
            parts.concentrations + parts.noise,
        )
        lowest, highest = (gp.levels[0], gp.levels[-1]) if calibrated is None else calibrated
        self.inside = (self.grid >= lowest) & (self.grid <= highest)
        self.set_curve_scale(curve_scale)

    @property
    def dof(self) -> float:
        """ν = n − 1 + d₀, the denominator degrees of freedom of every set."""
        return self.gp.dof

    @property
    def rank(self) -> int:
        """r."""
        return self.projection.rank

    @property
    def ends_at_zero(self) -> bool:
        """Whether the searched range begins at zero, below which there is no concentration."""
        return bool(self.grid[0] == 0.0 and self.gp.levels[0] >= 0.0)

    # ------------------------------------------------------------------ the curve

    def set_curve_scale(self, scale: float) -> None:
        """Set τ, the factor of the curve's own covariance (not of what the standards bring, nor of the noise)."""
        self.curve_scale = float(scale)
        self.covariance = self.curve_scale * self._interpolation + self._standards
        self.__dict__.pop("_axes", None)
        measured = self.covariance + np.eye(self.rank) + self.projection.replicates
        self.doubt = doubt_beyond(np.linalg.slogdet(measured)[1], self.inside)

    @cached_property
    def _axes(self) -> tuple[np.ndarray, np.ndarray]:
        """Those of the covariance without the noise of an unknown; with replicates nobody asks for them."""
        return _principal_axes(self.covariance)

    def curve(self, concentrations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """m(c) ``[C, r]`` and the covariance of the curve itself ``[C, r, r]`` (no noise of the unknown)."""
        parts = self.curve_parts(concentrations)
        return parts.mean, self.curve_scale * parts.interpolation + parts.concentrations + parts.noise

    def curve_parts(self, concentrations: np.ndarray) -> CurveParts:
        """m(c) and the parts of its covariance."""
        weights = self.gp.predict_weights(concentrations)
        z, n, r = self.projection.levels, len(self.gp.levels), self.rank
        within = z.T @ weights.within @ z
        trace = np.trace(within, axis1=1, axis2=2) / (max(n - 1, 1) * r)
        scale = (within + self.gp.prior_dof * trace[:, None, None] * np.eye(r)) / self.dof
        between = z.T @ weights.between @ z
        share = (weights.mean**2).sum(1) / self.projection.per_level
        noise = share[:, None, None] * (np.eye(r) + self.projection.replicates)
        return CurveParts(weights.mean @ z, scale + between, self._concentration_part(weights), noise)

    def _concentration_part(self, weights: GPWeights) -> np.ndarray:
        """T(c) = Σ_i B̄_ci² u_i² t_i t_iᵀ, t_i = dm/dc at level i: an error δ_i of a standard's concentration moves its
        spectrum by t_i δ_i along the curve (first order, GUM 5.1.2)."""
        if self.concentration_std is None:
            return np.zeros((len(weights.mean), self.rank, self.rank))
        share = (weights.mean * self.concentration_std) ** 2
        return np.einsum("ci,ia,ib->cab", share, self.tangents, self.tangents, optimize=True)

    def _tangents(self) -> np.ndarray:
        """dm/dc at the levels, ``[n, r]``, by central differences over 1 % of the neighbouring gap."""
        levels = self.gp.levels
        gaps = np.diff(levels)
        step = 0.01 * np.minimum(np.append(gaps, gaps[-1]), np.insert(gaps, 0, gaps[0]))
        rows = self.gp.predict_rows(np.concatenate([levels - step, levels + step])) @ self.projection.levels
        n = len(levels)
        return (rows[n:] - rows[:n]) / (2.0 * step[:, None])

    def _graded_grid(self, points: int) -> np.ndarray:
        """Points spread evenly over a mixture of concentration, arc length of the warp and distance along the curve."""
        levels = self.gp.levels
        warp = self.gp.warp_metric(trainable=False)
        first = np.unique(np.concatenate([np.linspace(self.low, self.high, 129), levels, _fan(levels, self.low)]))
        first = first[(first >= self.low) & (first <= self.high)]
        scaled = _scaled(warp, first)
        mean = self.gp.predict_rows(first) @ self.projection.levels
        travelled = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(mean, axis=0), axis=1))])
        share = sum(_unit(x) for x in (first, scaled, travelled)) / 3.0
        grid = np.interp(np.linspace(0.0, 1.0, points), share, first)
        # The levels are on the grid: sets of spectra of standards then end exactly where they should.
        inside = levels[(levels >= self.low) & (levels <= self.high)]
        return np.unique(np.concatenate([grid, inside]))

    # ------------------------------------------------------------------ distances

    def distances(self, coordinates: np.ndarray, phi: np.ndarray, replicates: float = 1) -> Distances:
        """Distances of unknowns with ``coordinates [U, r]`` and noise factors ``phi [U]`` to the curve.

        ``replicates``: how many spectra each row is the mean of.
        """
        noise, own = self.projection.replicates / replicates, phi / replicates
        by = self._solved if len(coordinates) <= _FEW else self._turned
        squared, steps = by(coordinates, noise, own)
        return Distances(squared, steps, phi, self.doubt)

    def _solved(self, coordinates: np.ndarray, noise: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Squared distances ``[U, K]`` and steps ``[U, K − 1]`` with ``noise [r, r]`` and ``own [U]`` times I besides
        the curve's covariance: a system of equations for every unknown and point."""
        matrix = self.covariance + noise + own[:, None, None, None] * np.eye(self.rank)  # [U, K, r, r]
        step = np.diff(self.mean, axis=0)
        sides = np.zeros((*matrix.shape[:3], 3))
        sides[..., 0] = coordinates[:, None] - self.mean
        sides[:, :-1, :, 1], sides[:, 1:, :, 2] = step, step
        squared, left, right = np.moveaxis((sides * np.linalg.solve(matrix, sides)).sum(2), -1, 0)
        return squared, 0.5 * (left[:, :-1] + right[:, 1:])

    def _turned(self, coordinates: np.ndarray, noise: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same by the principal axes of every point, which all unknowns share."""
        values, vectors = _principal_axes(self.covariance + noise) if np.any(noise) else self._axes
        inverse = 1.0 / (values[None] + own[:, None, None])  # [U, K, r]
        turned = np.matmul(coordinates[None], vectors) - np.matmul(self.mean[:, None], vectors)  # [K, U, r]
        squared = np.einsum("kur,ukr->uk", turned**2, inverse, optimize=True)
        step = np.diff(self.mean, axis=0)
        left = np.einsum("kr,krs->ks", step, vectors[:-1]) ** 2
        right = np.einsum("kr,krs->ks", step, vectors[1:]) ** 2
        steps = 0.5 * (np.einsum("kr,ukr->uk", left, inverse[:, :-1]) + np.einsum("kr,ukr->uk", right, inverse[:, 1:]))
        return squared, steps

    def project(self, spectra: np.ndarray, usable: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """See :meth:`Projection.coordinates`."""
        return self.projection.coordinates(spectra, usable)

    @property
    def basis(self) -> np.ndarray:
        """V ``[W, r]``, orthonormal."""
        return self.projection.basis

    @property
    def scatter(self) -> np.ndarray:
        """P ``[r, r]``, the scatter of the standards' replicates within the span."""
        return self.projection.replicates

    def compare(
        self, spectra: np.ndarray, usable: np.ndarray | None, replicates: float
    ) -> tuple[Distances, np.ndarray]:
        """Distances of ``spectra [U, W]``, each the mean of so many replicates, and Q ``[U]``: the residual outside the
        span per degree of freedom times the replicates."""
        coordinates, residual = self.projection.coordinates(spectra, usable)
        q = residual * replicates
        phi = np.maximum(q, 1.0)
        if usable is not None:
            # Fewer wavelengths pin the coordinates down less well.
            basis = self.projection.basis[usable]
            phi = phi * max(1.0, float(np.trace(np.linalg.pinv(basis.T @ basis))) / self.rank)
        return self.distances(coordinates, phi, replicates), q

    def threshold(self, level: float, minimum: np.ndarray) -> np.ndarray:
        """``F_{1,ν}(level) · max(1, d²_min/(r − 1))``: how far above the smallest distance a set reaches."""
        return fdtri(1.0, self.dof, level) * self.inflation(minimum)

    def inflation(self, minimum: np.ndarray) -> np.ndarray:
        """max(1, d²_min/(r − 1)): a poor fit widens every statement."""
        return np.maximum(1.0, minimum / max(self.rank - 1, 1))


def _principal_axes(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Variances ``[K, r]`` and directions ``[K, r, r]`` of ``[K, r, r]``; rounding leaves no variance below zero."""
    values, vectors = np.linalg.eigh(covariance)
    return np.maximum(values, 0.0), vectors


def searched_range(levels: np.ndarray, extension: float = EXTENSION) -> tuple[float, float]:
    """The calibrated range and its extension; not below zero where no standard lies below zero."""
    span = levels[-1] - levels[0]
    low = levels[0] - extension * span
    return float(max(low, 0.0) if levels[0] >= 0.0 else low), float(levels[-1] + extension * span)


def _fan(levels: np.ndarray, low: float) -> np.ndarray:
    """Points closing in on the lowest level from above: where saturating responses have everything."""
    return levels[0] + (levels[-1] - levels[0]) * np.logspace(-5.0, 0.0, 96)


def _scaled(warp, concentrations: np.ndarray) -> np.ndarray:
    import torch

    with torch.no_grad():
        return warp.scaled(torch.from_numpy(concentrations)).numpy()


def _unit(x: np.ndarray) -> np.ndarray:
    return (x - x[0]) / max(x[-1] - x[0], np.finfo(float).tiny)
