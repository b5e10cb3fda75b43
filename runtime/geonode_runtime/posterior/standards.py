"""What the posterior knows of the standards of one assay, as plain arrays: geonode works them out, an exported model
carries them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np

METHODS = ("curve", "pchip", "pls", "pcr", "pls_warped", "gp_pca", "stack")
"""Point estimates beside the minima of the curve; the last is the others' mean, weighed by their left-out errors."""
_ROUNDING = 1e-10
_SHARPEST = 1e-5  # of the range: no left-out error counts as smaller


@dataclass(frozen=True)
class Span:
    """A rotation of spectra that keeps what the standards span.

    Attributes:
        centre, scale: ``[W]`` mean of the level means, and what spectra are divided by.
        basis: ``[W, p]`` orthonormal.
    """

    centre: np.ndarray
    scale: np.ndarray
    basis: np.ndarray

    def coordinates(self, spectra: np.ndarray, usable: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """``[U, W]`` → ``[U, p]`` and the square of what lies outside, per wavelength ``[U]``.

        ``usable [W]``: where False a value is ignored, and coordinates are fitted to the rest by least squares.
        """
        white = (spectra - self.centre) / self.scale
        rank = self.basis.shape[1]
        if usable is None:
            a = white @ self.basis
            rest = np.maximum((white**2).sum(1) - (a**2).sum(1), 0.0)
            return a, rest / max(white.shape[1] - rank, 1)
        basis = self.basis[usable]
        a = np.linalg.lstsq(basis, white[:, usable].T, rcond=None)[0].T
        rest = ((white[:, usable] - a @ basis.T) ** 2).sum(1)
        return a, rest / max(int(usable.sum()) - rank, 1)


@dataclass(frozen=True)
class PosteriorStandards:
    """Standards of n levels, whose spectra have W wavelengths, p directions, r of them more than noise; a curve of K
    places; m levels that were left out one by one.

    Attributes:
        levels: ``[n]`` ascending.
        centre, scale: ``[W]`` of spectra. basis: ``[W, p]`` of whitened spectra. plain_basis: ``[W, p']`` of spectra
            that are not divided by ``scale``.
        points: ``[n, p]`` the level means in ``basis``. keep: ``[r]`` which of the directions are kept.
        places: ``[K]`` ascending, over the searched range.
        mean: ``[K, r]`` the curve there; spread_values, spread_vectors: ``[K, r]``, ``[K, r, r]`` of its covariance.
        slope: ``[K]`` length of the curve's tangent; doubt: ``[K]`` its own standard deviation as a share of the range.
        plain_mean, pchip: ``[K, p']`` the curve and the interpolated one in ``plain_basis``.
        vectors, centres: ``[3, p']``, offsets, kappas: ``[3]`` of PLS, PCR and PLS on a saturating axis.
        score_basis, score_points: ``[p', q]``, ``[n, q]``, lengths: ``[G]``, amounts: ``[G, n]``, middle: a
            concentration; of the Gaussian process on scores (:meth:`process_estimates`).
        stack: ``[6]`` weights of the estimates in their mean.
        left_out: ``[m]`` positions. errors: ``[m, 7]`` of :data:`METHODS` there. typical: ``[7]`` their root mean
            square inside the range.
        left_out_distance, left_out_ridge: ``[m]`` misfit of those levels inside and outside the others' span.
        ridge_inverse: ``[n + 1, n + 1]`` of the mixing problem.
        low, high: of the searched range. dof: of the curve. replicates: mean number of them.
        signal: mean square of the level means in the kept directions. declared: 1 where the standards' uncertainty was
            given, else 0. power: t, to which the density is raised. repeated: 1 where errors of unknowns are scaled for
            fewer replicates than the standards have, 0 in what was exported before they were.
    """

    levels: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    basis: np.ndarray
    plain_basis: np.ndarray
    points: np.ndarray
    keep: np.ndarray
    places: np.ndarray
    mean: np.ndarray
    spread_values: np.ndarray
    spread_vectors: np.ndarray
    slope: np.ndarray
    doubt: np.ndarray
    plain_mean: np.ndarray
    pchip: np.ndarray
    vectors: np.ndarray
    centres: np.ndarray
    offsets: np.ndarray
    kappas: np.ndarray
    score_basis: np.ndarray
    score_points: np.ndarray
    lengths: np.ndarray
    amounts: np.ndarray
    stack: np.ndarray
    left_out: np.ndarray
    errors: np.ndarray
    typical: np.ndarray
    left_out_distance: np.ndarray
    left_out_ridge: np.ndarray
    ridge_inverse: np.ndarray
    middle: float
    low: float
    high: float
    dof: float
    replicates: float
    signal: float
    declared: float
    power: float = 1.0
    repeated: float = 0.0

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, float]]:
        """Arrays and numbers from which :meth:`from_state` makes it again."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
        return arrays, {name: float(value) for name, value in values.items() if name not in arrays}

    @classmethod
    def from_state(cls, arrays: dict[str, Any], numbers: dict[str, float]) -> Self:
        """Of the ``arrays`` and ``numbers`` of :meth:`state`."""
        whole = {name: np.asarray(arrays[name]).astype(int) for name in ("keep", "left_out")}
        return cls(**{**arrays, **whole, **numbers})

    @property
    def span(self) -> float:
        """Width of the calibrated range."""
        return float(self.levels[-1] - self.levels[0])

    @property
    def rank(self) -> int:
        """r."""
        return len(self.keep)

    @property
    def floor(self) -> bool:
        """Whether the searched range ends at a concentration of zero, below which there is nothing."""
        return bool(self.low == 0.0 and self.levels[0] >= 0.0)

    @cached_property
    def white(self) -> Span:
        """Spectra as coordinates for distances."""
        return Span(self.centre, self.scale, self.basis)

    @cached_property
    def plain(self) -> Span:
        """Spectra as coordinates for regressions."""
        return Span(self.centre, np.ones_like(self.scale), self.plain_basis)

    @cached_property
    def segments(self) -> tuple[np.ndarray, np.ndarray]:
        """``[K − 1, r]`` steps of the curve from place to place, and their square lengths ``[K − 1]``, above zero."""
        step = np.diff(self.mean, axis=0)
        return step, np.maximum((step**2).sum(1), np.finfo(float).tiny)

    @cached_property
    def carried_on(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Of the curve carried straight on beyond the highest level: where it begins ``[r]``, a step ``[r]`` of it, and
        how far that is in concentration, half the last gap."""
        top, before = self.levels[-1], 0.5 * (self.levels[-2] + self.levels[-1])
        end, start = (np.array([np.interp(c, self.places, one) for one in self.mean.T]) for c in (top, before))
        return end, end - start, float(top - before)

    def rank_of(self, c: np.ndarray) -> np.ndarray:
        """Where among the levels: 0 at the lowest, n − 1 at the highest; beyond, the end gap goes on."""
        return rank_among(self.levels, c)

    def regression_estimates(self, x: np.ndarray) -> np.ndarray:
        """``[U, 3]`` of spectra in plain coordinates ``[U, p']``, held to the searched range."""
        found = [
            unsaturated((x - self.centres[k]) @ self.vectors[k] + self.offsets[k], self.kappas[k]) for k in range(3)
        ]
        return np.clip(np.stack(found, 1), self.low, self.high)

    def process_estimates(self, x: np.ndarray) -> np.ndarray:
        """``[U]`` of spectra in plain coordinates ``[U, p']``, held to the searched range."""
        square = (((x @ self.score_basis)[:, None] - self.score_points) ** 2).sum(-1)
        near = np.exp(-0.5 * square / self.lengths[:, None, None] ** 2)  # [G, U, n]
        return np.clip(self.middle + np.einsum("gun,gn->u", near, self.amounts), self.low, self.high)

    def error_near(self, c: np.ndarray) -> np.ndarray:
        """Left-out error of every method around ``c [U, 7]`` (its own estimate), root mean square, ``[U, 7]``."""
        rank = self.rank_of(c)[..., None]
        weight = np.exp(-np.abs(rank - self.left_out) / 1.5)
        ends = (self.left_out == 0) | (self.left_out == len(self.levels) - 1)
        inside = (rank > 0.0) & (rank < len(self.levels) - 1.0)
        weight = weight * np.where(ends & inside, 0.15, 1.0) + 1e-9
        square = np.einsum("umi,im->um", weight, self.errors**2) / weight.sum(-1)
        return np.sqrt(square) + _SHARPEST * self.span

    def error_of_unknown(self, c: np.ndarray, noise: np.ndarray, replicates: np.ndarray) -> np.ndarray:
        """`error_near` of estimates ``c [U, 7]`` of means of ``replicates [U]`` spectra whose noise has ``noise [U]``
        times the variance of the standards': levels left out are means of the standards' replicates, and where an
        unknown has fewer its own noise counts besides."""
        error = self.error_near(c)
        more = np.maximum(noise * (1.0 / replicates - 1.0 / self.replicates), 0.0) * self.repeated
        if not more.any():
            return error
        slope = np.maximum(np.interp(c, self.places, self.slope), 1e-9 / self.span)
        return np.hypot(error, np.minimum(np.sqrt(more)[:, None] / slope, self.span))

    def ridge(self, a: np.ndarray, outside: np.ndarray, replicates: np.ndarray) -> np.ndarray:
        """Square distance per wavelength of whitened unknowns ``a [U, p]`` from mixes of the standards ``[U]``, whose
        weights add up to 1 and cost what the standards' noise brings."""
        z, width = self.points, float(len(self.scale))
        n = len(z)
        right = np.concatenate([a @ z.T, np.ones((len(a), 1))], 1)
        weights = (right @ self.ridge_inverse.T)[:, :n]
        square = ((a - weights @ z) ** 2).sum(1) + width * (weights**2).sum(1)
        return square / width + outside * max(width - z.shape[1], 1.0) / width * replicates


def unsaturated(y: np.ndarray, kappa: np.ndarray | float) -> np.ndarray:
    """Back from c/(c + κ) to c; κ = ∞ is a straight axis."""
    finite = np.where(np.isinf(kappa), 1.0, kappa)
    return np.where(np.isinf(kappa), y, finite * y / np.maximum(1.0 - y, 1e-12))


def rank_among(levels: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Where ``c`` lies among ascending ``levels [n]``: 0 at the lowest, n − 1 at the highest; beyond, the end gap goes
    on."""
    n = len(levels)
    inside = np.interp(c, levels, np.arange(n, dtype=float))
    below = np.minimum(c - levels[0], 0.0) / (levels[1] - levels[0])
    above = np.maximum(c - levels[-1], 0.0) / (levels[-1] - levels[-2])
    return inside + below + above


def nearest_on(curve: np.ndarray, x: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where ``x [U, r]`` lies nearest to the polyline ``curve [K, r]`` over ``places [K]``, and the square distance; of
    places that differ by rounding alone (a curve in one direction that turns back) the lowest."""
    step = np.diff(curve, axis=0)
    length = np.maximum((step**2).sum(1), np.finfo(float).tiny)
    gap = x[:, None] - curve[None, :-1]
    along = np.einsum("ukr,kr->uk", gap, step)
    t = np.clip(along / length, 0.0, 1.0)
    distance = (gap**2).sum(-1) - 2.0 * t * along + t**2 * length
    same = distance.min(1) + _ROUNDING * ((curve**2).sum(1).max() + (x**2).sum(1))
    k = (distance <= same[:, None]).argmax(1)
    row = np.arange(len(x))
    found = places[k] + t[row, k] * (places[k + 1] - places[k])
    return found, np.maximum(distance[row, k], 0.0)
