"""PLS, PCR and PLS on a saturating axis for all left-out levels at once.

As :mod:`geonode.calibration.baselines.latent_variables`, but with every fold and every κ in one batch, because the
posterior needs their left-out errors for each calibration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geonode_runtime.posterior.standards import unsaturated

MAX_COMPONENTS = 8
KAPPAS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, np.inf)


@dataclass(frozen=True)
class Regression:
    """c = back(offset + (x − centre) · vector), in a rotated space.

    Attributes:
        vector: ``[p]``. centre: ``[p]``. offset, kappa: numbers; κ = ∞ is a straight axis.
        errors: ``[n]`` estimate − truth of each level's mean when it is left out, units of concentration.
    """

    vector: np.ndarray
    centre: np.ndarray
    offset: float
    kappa: float
    errors: np.ndarray


@dataclass(frozen=True)
class _Folds:
    """What every regression is chosen by: N spectra ``x [N, p]`` of n levels; F = n + 1 folds, the last with all.

    Attributes:
        index: ``[N]`` level of each spectrum. means: ``[n, p]``. centre: ``[F, p]``. low, high: what estimates are held
            to.
    """

    levels: np.ndarray
    index: np.ndarray
    x: np.ndarray
    means: np.ndarray
    centre: np.ndarray
    low: float
    high: float


def regressions(
    levels: np.ndarray, index: np.ndarray, x: np.ndarray, low: float, high: float
) -> tuple[Regression, Regression, Regression]:
    """PLS, PCR and warped PLS on rotated spectra ``x [N, p]`` of the levels ``index [N]``; left-out estimates are held
    to ``low … high``. Replicates show which directions vary while the concentration does not."""
    n = len(levels)
    kappas = np.array(KAPPAS if levels[0] >= 0.0 else (np.inf,)) * max(levels[-1], 0.0 if levels[0] >= 0 else 1.0)
    targets = _saturate(levels[index][None], kappas[:, None])  # [κ, N]
    mask = np.concatenate([np.arange(n)[:, None] != index, np.ones((1, len(x)))])  # the last fold leaves nothing out
    count = mask.sum(1)
    centre = mask @ x / count[:, None]  # [F, p]
    xs = (x[None] - centre[:, None]) * mask[..., None]
    offset = targets @ mask.T / count  # [κ, F]
    ys = (targets[:, None] - offset[..., None]) * mask
    most = max(1, min(MAX_COMPONENTS, n - 2, x.shape[1]))
    pls = _pls(xs, ys, most)  # [κ, F, a, p]
    pcr = _pcr(xs, ys[-1], most)[None]
    means = np.stack([x[index == i].mean(0) for i in range(n)])
    folds = _Folds(levels, index, x, means, centre, low, high)
    straight = _chosen(folds, pls[-1:], offset[-1:], kappas[-1:])
    return straight, _chosen(folds, pcr, offset[-1:], kappas[-1:]), _chosen(folds, pls, offset, kappas)


def _chosen(folds: _Folds, vectors: np.ndarray, offset: np.ndarray, kappas: np.ndarray) -> Regression:
    """The κ with the smallest left-out error of single spectra, and the fewest components within 2 % of that."""
    n = len(folds.levels)
    score = np.sqrt((_left_out(folds, folds.x, folds.index, vectors, offset, kappas) ** 2).mean(1))  # [κ, a]
    k = int(score.min(1).argmin())
    a = int(np.flatnonzero(score[k] <= 1.02 * score[k].min())[0])
    own = vectors[k : k + 1, :, a : a + 1], offset[k : k + 1], kappas[k : k + 1]
    errors = _left_out(folds, folds.means, np.arange(n), *own)[0, :, 0]
    return Regression(vectors[k, n, a], folds.centre[n], float(offset[k, n]), float(kappas[k]), errors)


def _left_out(
    folds: _Folds, x: np.ndarray, index: np.ndarray, vectors: np.ndarray, offset: np.ndarray, kappas: np.ndarray
) -> np.ndarray:
    """Estimate − truth ``[κ, N, a]`` of spectra ``x [N, p]`` of the levels ``index [N]``, each by the fold without its
    level."""
    along = np.einsum("np,knap->kna", x - folds.centre[index], vectors[:, index], optimize=True)
    found = unsaturated(along + offset[:, index, None], kappas[:, None, None])
    return np.clip(found, folds.low, folds.high) - folds.levels[index][None, :, None]


def _pls(x: np.ndarray, y: np.ndarray, components: int) -> np.ndarray:
    """Regression vectors ``[κ, F, a, p]`` of centred ``x [F, n, p]``, ``y [κ, F, n]``: PLS1 is least squares in the
    Krylov space of XᵀX and Xᵀy (Helland 1988, Commun. Stat. Simul. 17, 581), built orthonormal step by step."""
    gram = np.einsum("fnp,fnq->fpq", x, x)
    start = np.einsum("fnp,kfn->kfp", x, y)
    basis: list[np.ndarray] = []
    w = start
    first = np.maximum(np.linalg.norm(start, axis=-1, keepdims=True), 1e-300)
    vectors = []
    for _ in range(components):
        for _ in range(2):  # twice is enough for orthogonality
            for b in basis:
                w = w - b * (w * b).sum(-1, keepdims=True)
        size = np.linalg.norm(w, axis=-1, keepdims=True)
        basis.append(np.where(size > 1e-9 * first, w / np.maximum(size, 1e-300), 0.0))
        q = np.stack(basis, -2)  # [κ, F, a, p]
        small = np.einsum("kfap,fpq,kfbq->kfab", q, gram, q, optimize=True)
        small += 1e-11 * np.einsum("kfaa->kf", small)[..., None, None] * np.eye(len(basis)) + 1e-300 * np.eye(
            len(basis)
        )
        right = np.einsum("kfap,kfp->kfa", q, start)
        vectors.append(np.einsum("kfa,kfap->kfp", np.linalg.solve(small, right[..., None])[..., 0], q))
        w = np.einsum("fpq,kfq->kfp", gram, basis[-1])
        first = np.maximum(np.linalg.norm(w, axis=-1, keepdims=True), 1e-300)
    return np.stack(vectors, 2)


def _pcr(x: np.ndarray, y: np.ndarray, components: int) -> np.ndarray:
    """Regression vectors ``[F, a, p]`` on the leading principal components; ``y [F, n]``."""
    u, size, right = np.linalg.svd(x, full_matrices=False)
    good = size > 1e-9 * np.maximum(size[:, :1], 1e-300)
    share = np.where(good, np.einsum("fna,fn->fa", u, y) / np.where(good, size, 1.0), 0.0)
    vectors = np.cumsum(share[..., None] * right, axis=1)[:, :components]
    return vectors


def _saturate(c: np.ndarray, kappa: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(kappa), c, c / (c + np.where(np.isinf(kappa), 1.0, kappa)))
