"""The response curve through the standards and, in closed form, the curve without each of them.

A small grid of Gaussian processes (:class:`~geonode.calibration.gp.grid.Grid`: warp × length × linear share × nugget)
is weighed by its evidence. With K⁻¹ of all standards, that without standard i is K⁻¹ − K⁻¹_{:i} K⁻¹_{i:} / K⁻¹_ii, and
its evidence follows likewise (Rasmussen & Williams 2006, eq. 5.12), so that leaving standards out costs no new
factorisation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from geonode.calibration.gp.grid import Grid
from geonode.calibration.gp.numerics import matern52
from geonode.metric.warp import WARPS, scaled_warps

LENGTHS = (0.3, 0.8, 2.4)
ALPHAS = (0.0, 0.9, 1.0)
ETAS = (1e-5, 1e-3, 1e-2)
_GRID = Grid(LENGTHS, ALPHAS, ETAS)
_EFFECTIVE_OUTPUTS = 8.0
_MOST = 40  # candidates kept for the curve of all standards
_MOST_OF_FOLD = 16


@dataclass(frozen=True)
class CurveRows:
    """The curve as weights of the standards at K places.

    Attributes:
        mean: ``[K, n]`` rows B̄. within: ``[K, n, n]`` Σ w v(c) K⁻¹. between: ``[K, n, n]`` of the candidates' rows.
        folds: ``[F, K', n]`` rows of the curve without each level that is left out, at every ``stride``-th place.
    """

    mean: np.ndarray
    within: np.ndarray
    between: np.ndarray
    folds: np.ndarray


def curve_rows(
    levels: np.ndarray, means: np.ndarray, places: np.ndarray, left_out: np.ndarray, stride: int
) -> CurveRows:
    """Rows at ``places [K]`` for level means ``[n, W]`` at ascending ``levels [n]``."""
    n, width = means.shape
    residual = means - means.mean(0)
    gram = residual @ residual.T
    (weighed,) = _GRID.weigh(torch.from_numpy(levels)[None], torch.from_numpy(gram)[None], width, _EFFECTIVE_OUTPUTS)
    inverse = _GRID.inverses(weighed).reshape(-1, n, n).numpy()
    log_weights = weighed.log_weights.reshape(-1).numpy()
    at, of = _coordinates(levels, weighed.origin, weighed.span, places)
    cross = _Cross(at, of)
    keep, weights = _strongest(log_weights, _MOST)
    k = cross.of(keep)  # [G, K, n]
    rows = k @ inverse[keep]
    variance = np.maximum(cross.prior(keep) - (rows * k).sum(-1), 0.0)
    mean = np.einsum("g,gkn->kn", weights, rows)
    within = ((weights[:, None] * variance).T @ inverse[keep].reshape(len(keep), -1)).reshape(-1, n, n)
    off = np.sqrt(weights)[:, None, None] * (rows - mean)
    between = np.einsum("gki,gkj->kij", off, off, optimize=True)
    coarse = _Cross(at[:, ::stride], of)
    held = _without(inverse, log_weights, gram, width)
    folds = np.stack([_fold_rows(coarse, inverse, held[:, i], i) for i in left_out])
    return CurveRows(mean, within, between, folds)


class _Cross:
    """Kernels between places and standards, their Matérn parts shared by candidates of one warp and length."""

    def __init__(self, at: np.ndarray, of: np.ndarray) -> None:
        distance = torch.from_numpy(np.abs(at[:, None, :, None] - of[:, None, None, :]))
        self._matern = matern52(distance / torch.tensor(LENGTHS, dtype=torch.float64)[:, None, None]).numpy()
        self._linear = at[:, :, None] * of[:, None, :]
        self._at = at

    def of(self, candidates: np.ndarray) -> np.ndarray:
        """``[G, K, n]``."""
        warp, length, alpha = _parts(candidates)
        share = np.array(ALPHAS)[alpha][:, None, None]
        return 1.0 + share * self._linear[warp] + (1.0 - share) * self._matern[warp, length]

    def prior(self, candidates: np.ndarray) -> np.ndarray:
        """k(c, c) ``[G, K]``."""
        warp, _, alpha = _parts(candidates)
        share = np.array(ALPHAS)[alpha][:, None]
        return 1.0 + share * self._at[warp] ** 2 + (1.0 - share)


def _parts(candidates: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shape = (len(WARPS), len(LENGTHS), len(ALPHAS), len(ETAS))
    warp, length, alpha, _ = np.unravel_index(candidates, shape)
    return warp, length, alpha


def _coordinates(levels: np.ndarray, origin: float, span: float, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every warp at places ``[V, K]`` and at standards ``[V, n]``, scaled to [−1, 1] on the calibrated range."""
    u, at = (levels - origin) / span, (places - origin) / span
    both = scaled_warps(torch.from_numpy(np.concatenate([at, u])), float(u[0]), float(u[-1])).numpy()
    return both[:, : len(at)], both[:, len(at) :]


def _strongest(log_weights: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(-log_weights, kind="stable")[:most]
    weights = np.exp(log_weights[order] - log_weights[order[0]])
    keep = weights > 1e-4
    return order[keep], weights[keep] / weights[keep].sum()


def _without(inverse: np.ndarray, log_weights: np.ndarray, gram: np.ndarray, width: int) -> np.ndarray:
    """Log weights ``[G, n]`` of every candidate when a standard is left out."""
    n = len(gram)
    weighted = inverse @ gram
    quadratic = np.einsum("gii->g", weighted)
    lost = np.einsum("gij,gji->gi", weighted, inverse) / np.einsum("gii->gi", inverse)
    tiny = np.finfo(float).tiny
    # what the weight of all standards has besides q: the prior and |K|
    rest = log_weights + 0.5 * _EFFECTIVE_OUTPUTS * n * np.log(np.maximum(quadratic, tiny) / (n * width))
    left = np.maximum(quadratic[:, None] - lost, tiny)
    part = (n - 1) * np.log(left / ((n - 1) * width)) + np.log(np.einsum("gii->gi", inverse))
    return rest[:, None] - 0.5 * _EFFECTIVE_OUTPUTS * part


def _fold_rows(cross: _Cross, inverse: np.ndarray, log_weights: np.ndarray, i: int) -> np.ndarray:
    """Rows ``[K', n]`` without level i; they add up to 1, so that they act on spectra and not on residuals."""
    keep, weights = _strongest(log_weights, _MOST_OF_FOLD)
    full = inverse[keep]
    left = full - full[:, :, i, None] * full[:, i, None, :] / full[:, i, i][:, None, None]
    rows = np.einsum("g,gkn->kn", weights, cross.of(keep) @ left)
    others = np.delete(np.arange(rows.shape[1]), i)
    rows[:, others] += (1.0 - rows.sum(1, keepdims=True)) / len(others)
    rows[:, i] = 0.0
    return rows
