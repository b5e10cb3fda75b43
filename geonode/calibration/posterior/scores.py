"""A Gaussian process from the leading principal component scores of a spectrum to its concentration.

Where little noise lies on a smooth response it follows the inverse more closely than any line. A small grid of lengths
and noises is weighed by its evidence; the amplitude is profiled out of it. Leaving a level out needs no new
factorisation (Rasmussen & Williams 2006, eq. 5.12).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_LENGTHS = np.geomspace(0.5, 100.0, 9)
_NOISES = np.array([1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1])
_CONSTANT = 10.0  # variance of a constant, in those of the process
_MOST = 6  # candidates kept
_EXPLAINED = 0.999  # of the spectra's variance, by the components that are kept
_MOST_COMPONENTS = 5


@dataclass(frozen=True)
class ScoreProcess:
    """c = middle + Σ_g amounts_g · exp(−d²/2 lengths_g²), d² between scores, which are plain coordinates times basis.

    Attributes:
        basis: ``[p, q]``. points: ``[n, q]`` scores of the standards. lengths: ``[G]``. amounts: ``[G, n]``.
        middle: a concentration.
        errors: ``[n]`` estimate − truth of each level when it is left out, units of concentration.
    """

    basis: np.ndarray
    points: np.ndarray
    lengths: np.ndarray
    amounts: np.ndarray
    middle: float
    errors: np.ndarray


def score_process(levels: np.ndarray, x: np.ndarray, counts: np.ndarray, low: float, high: float) -> ScoreProcess:
    """For level means ``x [n, p]``, centred, of ``counts [n]`` replicates; left-out estimates are held to
    ``low … high``."""
    n = len(levels)
    basis = _score_basis(x)
    points = x @ basis
    length, noise = (v.ravel() for v in np.meshgrid(_LENGTHS, _NOISES, indexing="ij"))
    squares = ((points[:, None] - points[None]) ** 2).sum(-1)
    kernel = np.exp(-0.5 * squares / length[:, None, None] ** 2)
    inverse = np.linalg.inv(_CONSTANT + kernel + noise[:, None, None] * np.diag(counts.mean() / counts))
    centre, scale = levels.mean(), levels.std()
    y = (levels - centre) / scale
    solved = inverse @ y
    diagonal = np.maximum(np.einsum("gii->gi", inverse), np.finfo(float).tiny)
    quadratic = np.maximum(solved @ y, np.finfo(float).tiny)
    volume = np.linalg.slogdet(inverse)[1]  # −ln |K|
    weights = _weights(0.5 * volume - 0.5 * n * np.log(quadratic))
    left = np.maximum(quadratic[:, None] - solved**2 / diagonal, 1e-12 * quadratic[:, None])
    without = _weights(0.5 * (volume[:, None] - np.log(diagonal)) - 0.5 * (n - 1) * np.log(left))
    missed = -scale * (without * solved / diagonal).sum(0)
    keep = np.argsort(-weights, kind="stable")[:_MOST]
    share = weights[keep] / weights[keep].sum()
    amounts = scale * share[:, None] * solved[keep]
    return ScoreProcess(
        basis=basis,
        points=points,
        lengths=length[keep],
        amounts=amounts,
        middle=float(centre + _CONSTANT * amounts.sum()),
        errors=np.clip(levels + missed, low, high) - levels,
    )


def _score_basis(x: np.ndarray) -> np.ndarray:
    """Leading directions of ``x [n, p]``, each by the spread of the standards along it."""
    _, size, right = np.linalg.svd(x, full_matrices=False)
    share = np.cumsum(size**2) / max(float((size**2).sum()), np.finfo(float).tiny)
    count = int(np.clip(np.searchsorted(share, _EXPLAINED) + 1, 1, min(_MOST_COMPONENTS, len(x) - 1)))
    return right[:count].T / np.maximum(size[:count] / np.sqrt(len(x)), np.finfo(float).tiny)


def _weights(log_evidence: np.ndarray) -> np.ndarray:
    """Shares along the first axis."""
    log_evidence = np.where(np.isfinite(log_evidence), log_evidence, -np.inf)
    found = np.exp(log_evidence - log_evidence.max(0))
    return found / found.sum(0)
