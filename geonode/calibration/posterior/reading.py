"""What the posterior needs to know of the standards of one assay, worked out once.

The curve with its uncertainty, the simple methods beside it, and how far each was from the truth when it had to find a
level that was left out.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from geonode.calibration.inverse.model import searched_range
from geonode.calibration.leave_out import levels_to_leave_out
from geonode.calibration.posterior.curve import curve_rows
from geonode.calibration.posterior.pchip import pchip
from geonode.calibration.posterior.regressions import regressions
from geonode.calibration.posterior.scores import score_process
from geonode.calibration.posterior.space import Space, directions_kept, noise_scale, shrinkage
from geonode_runtime.posterior.standards import METHODS, PosteriorStandards, nearest_on, rank_among

PLACES = 240
STRIDE = 2


class Reading:
    """The standards as the posterior sees them.

    Args:
        levels: ``[n]`` ascending, distinct. means: ``[n, W]`` mean spectrum of each.
        counts: ``[n]`` replicates of each.
        deviations: ``[N, W]`` single spectra less their level means, level by level; None without replicates.
        std: ``[n]`` standard uncertainty of the levels' concentrations, or None.

    Attributes:
        known: all that answers are made from (:class:`~geonode_runtime.posterior.standards.PosteriorStandards`).
    """

    def __init__(
        self,
        levels: np.ndarray,
        means: np.ndarray,
        counts: np.ndarray,
        deviations: np.ndarray | None = None,
        std: np.ndarray | None = None,
    ) -> None:
        n, width = means.shape
        self.levels, self.means, self.counts, self.std = levels, means, counts, std
        self.low, self.high = searched_range(levels)
        self.span = float(levels[-1] - levels[0])
        self.white = Space.of(means, noise_scale(means, deviations))
        self.plain = Space.of(means, np.ones(width)).with_scatter(deviations)
        self.index = np.arange(n) if deviations is None else np.repeat(np.arange(n), counts.astype(int))
        self.rows = self.plain.standards[self.index]
        if deviations is not None:
            self.rows = self.rows + deviations @ self.plain.basis
        spare = 0 if deviations is None else len(deviations) - n
        noise = float(width)
        scatter = None
        if deviations is not None and spare > 0:
            scattered = deviations / self.white.scale
            noise = max(noise, float((scattered**2).sum()) / spare)
            scatter = scattered @ self.white.basis
        factors = shrinkage(self.white, noise * float(np.mean(1.0 / counts)))
        self.keep = directions_kept(factors)
        self.rank = len(self.keep)
        self.dof = n + 1.0
        self.standards = self.white.standards[:, self.keep] * np.maximum(factors[self.keep], 0.02)
        self.scatter = np.zeros((self.rank, self.rank))
        if scatter is not None:
            kept = scatter[:, self.keep]
            self.scatter = kept.T @ kept / spare
        self.places = _places(levels, self.low, self.high)
        self.left_out = levels_to_leave_out(n)
        self._curve()
        self._left_out_estimates()
        self.known = self._known()

    def _known(self) -> PosteriorStandards:
        values, vectors = self.spread_parts
        return PosteriorStandards(
            levels=self.levels,
            centre=self.white.centre,
            scale=self.white.scale,
            basis=self.white.basis,
            plain_basis=self.plain.basis,
            points=self.white.standards,
            keep=self.keep,
            places=self.places,
            mean=self.mean,
            spread_values=values,
            spread_vectors=vectors,
            slope=self.slope,
            doubt=self.doubt,
            plain_mean=self.plain_mean,
            pchip=self.pchip,
            vectors=np.stack([one.vector for one in self.regressions]),
            centres=np.stack([one.centre for one in self.regressions]),
            offsets=np.array([one.offset for one in self.regressions]),
            kappas=np.array([one.kappa for one in self.regressions]),
            score_basis=self.process.basis,
            score_points=self.process.points,
            lengths=self.process.lengths,
            amounts=self.process.amounts,
            middle=self.process.middle,
            stack=self.stack,
            left_out=self.left_out,
            errors=self.errors,
            typical=self.typical,
            left_out_distance=self.left_out_distance,
            left_out_ridge=self.left_out_ridge,
            ridge_inverse=np.linalg.inv(_ridge_system(self.white.standards, float(len(self.white.scale)))),
            low=float(self.low),
            high=float(self.high),
            dof=self.dof,
            replicates=float(self.counts.mean()),
            signal=float((self.standards**2).mean()),
            declared=0.0 if self.std is None else 1.0,
            repeated=1.0,
        )

    # ------------------------------------------------------------------ the curve

    def _curve(self) -> None:
        rows = curve_rows(self.levels, self.means, self.places, self.left_out, STRIDE)
        z, n = self.standards, len(self.levels)
        centre = z.mean(0)
        self.mean = centre + rows.mean @ (z - centre)
        z = z - centre
        within = z.T @ rows.within @ z
        trace = np.trace(within, axis1=1, axis2=2) / (max(n - 1, 1) * self.rank)
        eye = np.eye(self.rank)
        spread = (within + 2.0 * trace[:, None, None] * eye) / self.dof
        spread += z.T @ rows.between @ z
        share = (rows.mean**2 / self.counts).sum(1) + 1.0 / (n * float(np.mean(self.counts)))
        spread += share[:, None, None] * (eye + self.scatter)
        tangent = np.gradient(self.mean, self.places, axis=0)
        if self.std is not None:
            declared = np.interp(self.places, self.levels, self.std)
            spread += np.einsum("c,ca,cb->cab", declared**2, tangent, tangent)
        self.slope = np.sqrt((tangent**2).sum(1))
        along = np.sqrt(np.maximum(np.einsum("ka,kab,kb->k", tangent, spread, tangent), 0.0))
        self.doubt = along / np.maximum(self.slope**2, 1e-30) / self.span
        self.spread_parts = np.linalg.eigh(spread + self.scatter)
        self._fold_curves = rows.folds @ self.standards  # [F, K', r]
        # Points on a curve are looked for in plain coordinates, all of them: where the noise of single standards was
        # taken for larger than it is, directions that matter are not among those that distances keep.
        x = self.plain.standards
        self.plain_mean = rows.mean @ (x - x.mean(0)) + x.mean(0)
        self._plain_fold_curves = rows.folds @ x  # [F, K', p']
        self.pchip = pchip(self.levels[None], x[None], self.places)[0]

    # ------------------------------------------------------------------ left-out levels

    def _left_out_estimates(self) -> None:
        coarse = self.places[::STRIDE]
        n, m = len(self.levels), len(self.left_out)
        truth = self.levels[self.left_out]
        errors = np.zeros((m, len(METHODS)))
        _, self.left_out_distance = _nearest_each(self._fold_curves, self.standards[self.left_out], coarse)
        x = self.plain.standards
        errors[:, 0] = _nearest_each(self._plain_fold_curves, x[self.left_out], coarse)[0] - truth
        keep = np.stack([np.delete(np.arange(n), i) for i in self.left_out])
        errors[:, 1] = _nearest_each(pchip(self.levels[keep], x[keep], coarse), x[self.left_out], coarse)[0] - truth
        self.regressions = regressions(self.levels, self.index, self.rows, self.low, self.high)
        self.process = score_process(self.levels, x, self.counts, self.low, self.high)
        for k, one in enumerate((*self.regressions, self.process)):
            errors[:, 2 + k] = one.errors[self.left_out]
        interior = (self.left_out > 0) & (self.left_out < n - 1)
        interior = interior if interior.any() else np.ones_like(interior)
        size = np.sqrt((errors[interior, :-1] ** 2).mean(0)) + 1e-3 * self.span / n
        weights = size**-2.0
        self.stack = weights / weights.sum()
        errors[:, -1] = errors[:, :-1] @ self.stack
        if self.std is not None:
            errors = np.sign(errors) * np.hypot(errors, self.std[self.left_out][:, None])
        self.errors = errors
        self.typical = np.sqrt((errors[interior] ** 2).mean(0)) + 1e-5 * self.span
        self.left_out_ridge = self._ridge_left_out()

    # ------------------------------------------------------------------ spectra that are no mix of the standards

    def _ridge_left_out(self) -> np.ndarray:
        z, width = self.white.standards, float(len(self.white.scale))
        found = []
        for i in self.left_out:
            rest = np.delete(z, i, axis=0)
            weights = np.linalg.solve(_ridge_system(rest, width), np.append(rest @ z[i], 1.0))[:-1]
            found.append((((z[i] - weights @ rest) ** 2).sum() + width * (weights**2).sum()) / width)
        return np.array(found)


def _nearest_each(curves: np.ndarray, x: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As `nearest_on`, each row of ``x [F, r]`` on a curve of its own ``[F, K, r]``."""
    found = [nearest_on(curve, one[None], places) for curve, one in zip(curves, x, strict=True)]
    return np.array([c[0] for c, _ in found]), np.array([d[0] for _, d in found])


def _ridge_system(z: np.ndarray, width: float) -> np.ndarray:
    n = len(z)
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = z @ z.T + width * np.eye(n)
    system[n, n] = 0.0
    return system


def _places(levels: np.ndarray, low: float, high: float) -> np.ndarray:
    """Places of the curve, even over a mean of concentration and rank among the levels."""
    fine = np.unique(
        np.concatenate(
            [
                np.linspace(low, high, 400),
                *(np.linspace(a, b, 40) for a, b in pairwise(levels)),
            ]
        )
    )
    share = (fine - low) / (high - low)
    rank = rank_among(levels, fine)
    share = share + (rank - rank[0]) / (rank[-1] - rank[0])
    return np.interp(np.linspace(0.0, share[-1], PLACES), share, fine)
