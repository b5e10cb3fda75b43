"""Concentration from spectrum by regression on latent variables: PLS, PLS on a saturating axis, PCR.

Whatever a method has to choose (components, κ) is chosen by leaving one level out inside its own training set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import stdtrit

from geonode.calibration.baselines.method import EVALUATION_METHODS, InverseMethod
from geonode.calibration.leave_out import leave_each_out
from geonode_runtime.pls import PLSRegression

MAX_COMPONENTS = 10
KAPPAS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


def pls_coefficients(x: np.ndarray, y: np.ndarray, components: int) -> np.ndarray:
    """PLS1 by NIPALS (Wold, Sjöström & Eriksson 2001, Chemom. Intell. Lab. Syst. 58, 109): centred ``x [N, P]`` and
    ``y [N]`` → regression vectors ``[components, P]`` for 1, 2, … components; beyond the rank the last is repeated."""
    x, y = x.copy(), y.copy()
    weights: list[np.ndarray] = []
    loadings: list[np.ndarray] = []
    scores: list[float] = []
    vectors = np.zeros((components, x.shape[1]))
    scale = np.linalg.norm(x)
    for a in range(components):
        w = x.T @ y
        size = np.linalg.norm(w)
        t = x @ (w / size) if size > 0.0 else np.zeros(len(x))
        tt = t @ t
        if size == 0.0 or tt <= (1e-10 * scale) ** 2:
            vectors[a:] = vectors[a - 1] if a else 0.0
            break
        w, p, q = w / size, x.T @ t / tt, (y @ t) / tt
        x -= np.outer(t, p)
        y -= q * t
        weights.append(w)
        loadings.append(p)
        scores.append(float(q))
        rotation = np.stack(weights, 1)
        vectors[a] = rotation @ np.linalg.solve(np.stack(loadings) @ rotation, np.array(scores))
    return vectors


@dataclass(frozen=True)
class PLSParts:
    """What a PLS1 model is made of: ``weights``, ``loadings`` ``[components, W]``, ``explained [components]`` sums of
    squares of the concentrations, and ``vip [W]``, the importance of each wavelength, whose mean square is 1."""

    weights: np.ndarray
    loadings: np.ndarray
    explained: np.ndarray
    vip: np.ndarray


def pls_parts(spectra: np.ndarray, concentrations: np.ndarray, components: int) -> PLSParts:
    """PLS1 by NIPALS of ``spectra [N, W]`` and ``concentrations [N]``, centred here, with its importances

        VIP_w = √(W Σ_a s_a w_aw² / Σ_a s_a),    s_a = q_a² t_aᵀt_a

    (Chong & Jun 2005, Chemom. Intell. Lab. Syst. 78, 103). Components beyond the rank are left out.
    """
    x, y = spectra - spectra.mean(0), concentrations - concentrations.mean()
    scale = np.linalg.norm(x)
    weights, loadings, explained = [], [], []
    for _ in range(components):
        w = x.T @ y
        size = np.linalg.norm(w)
        t = x @ (w / size) if size > 0.0 else np.zeros(len(x))
        tt = float(t @ t)
        if size == 0.0 or tt <= (1e-10 * scale) ** 2:
            break
        p, q = x.T @ t / tt, float(y @ t) / tt
        x, y = x - np.outer(t, p), y - q * t
        weights.append(w / size)
        loadings.append(p)
        explained.append(q * q * tt)
    w, s = np.array(weights), np.array(explained)
    vip = np.sqrt(spectra.shape[1] * (s @ w**2) / s.sum()) if len(s) else np.zeros(spectra.shape[1])
    return PLSParts(w, np.array(loadings), s, vip)


def pcr_coefficients(x: np.ndarray, y: np.ndarray, components: int) -> np.ndarray:
    """Principal component regression: as :func:`pls_coefficients`, for the 1, 2, … largest principal components."""
    u, size, vectors = np.linalg.svd(x, full_matrices=False)
    keep = min(components, int((size > 1e-10 * max(size[0], np.finfo(float).tiny)).sum()))
    steps = ((u[:, :keep].T @ y) / size[:keep])[:, None] * vectors[:keep]
    result = np.cumsum(steps, axis=0) if keep else np.zeros((1, x.shape[1]))
    return np.concatenate([result, np.repeat(result[-1:], components - len(result), axis=0)])


def fewest_components(score: np.ndarray) -> int:
    """The fewest components whose error (``score [components]``, root mean squares) is within 2 % of the smallest: more
    of them buy nothing."""
    return int(np.flatnonzero(score <= 1.02 * score.min())[0]) + 1


def held_out_squares(spectra: np.ndarray, concentrations: np.ndarray) -> np.ndarray:
    """``[n]`` mean squared error of PLS at each level left out, its components chosen by the errors at the other
    levels: nothing that is compared by it takes part in the choice."""
    errors = PLS().cross_validated(spectra, concentrations, concentrations)
    levels, index = np.unique(concentrations, return_inverse=True)
    squares = np.stack([(errors[:, index == i] ** 2).mean(1) for i in range(len(levels))], axis=1)
    others = (squares.sum(1, keepdims=True) - squares) / max(len(levels) - 1, 1)
    chosen = [fewest_components(np.sqrt(np.maximum(column, 0.0))) - 1 for column in others.T]
    return squares[chosen, np.arange(len(levels))]


class _Linear(InverseMethod):
    """A regression vector with the number of components chosen by leaving one level out."""

    coefficients: ClassVar[Callable[[np.ndarray, np.ndarray, int], np.ndarray]]

    def _fit(self, spectra: np.ndarray, concentrations: np.ndarray) -> None:
        self._regress(spectra, concentrations, concentrations)

    def _regress(self, spectra: np.ndarray, target: np.ndarray, concentrations: np.ndarray) -> float:
        """Fit ``target [N]``; returns the cross-validated squared error of the chosen number of components."""
        errors = self.cross_validated(spectra, target, concentrations)
        score = np.sqrt((errors**2).mean(1))
        self.components = fewest_components(score)
        self._centre, self._offset = spectra.mean(0), target.mean()
        self._levels = len(np.unique(concentrations))
        x, basis = _rotated(spectra - self._centre)
        self._vector = type(self).coefficients(x, target - self._offset, self.components)[-1] @ basis
        self.cv_errors = errors[self.components - 1]
        return float(score[self.components - 1])

    def cross_validated(self, spectra: np.ndarray, target: np.ndarray, concentrations: np.ndarray) -> np.ndarray:
        """``[components, N]`` errors (predicted − target) with each spectrum's level left out."""
        most = max(1, min(MAX_COMPONENTS, len(np.unique(concentrations)) - 2, spectra.shape[1]))
        x, _ = _rotated(spectra - spectra.mean(0))
        errors = np.zeros((most, len(x)))
        for train, left_out in leave_each_out(concentrations):
            centre, offset = x[train].mean(0), target[train].mean()
            vectors = type(self).coefficients(x[train] - centre, target[train] - offset, most)
            errors[:, left_out] = vectors @ (x[left_out] - centre).T + offset - target[left_out]
        return errors

    def regression(self) -> PLSRegression:
        """The regression vector and what belongs to it, as answers take it."""
        error = float(np.sqrt((self.cv_errors**2).mean()))
        return PLSRegression(self._vector, self._centre, float(self._offset), error, self.components, self._levels)

    def interval(self, spectra: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Prediction ± t RMSECV, t with n − 1 degrees of freedom."""
        middle = (np.asarray(spectra) - self._centre) @ self._vector + self._offset
        half = stdtrit(self._levels - 1, 0.5 + 0.5 * level) * np.sqrt((self.cv_errors**2).mean())
        return middle - half, middle + half

    def _predict(self, spectra: np.ndarray) -> np.ndarray:
        return (spectra - self._centre) @ self._vector + self._offset


def _rotated(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``x = y @ basis`` with orthonormal rows in ``basis``: fewer columns, the same inner products."""
    if x.shape[0] >= x.shape[1]:
        return x, np.eye(x.shape[1])
    u, size, basis = np.linalg.svd(x, full_matrices=False)
    return u * size, basis


@EVALUATION_METHODS.register("pls")
class PLS(_Linear):
    """PLS1 on the concentration."""

    coefficients = staticmethod(pls_coefficients)


@EVALUATION_METHODS.register("pls_warped")
class WarpedPLS(_Linear):
    """PLS1 on c/(c + κ), κ chosen by the cross-validated error in concentration; for concentrations ≥ 0."""

    coefficients = staticmethod(pls_coefficients)

    def _fit(self, spectra: np.ndarray, concentrations: np.ndarray) -> None:
        top = concentrations.max()
        if concentrations.min() < 0.0:
            self.kappa = np.inf
            self._regress(spectra, concentrations, concentrations)
            return
        scores = []
        for kappa in (*(k * top for k in KAPPAS), np.inf):
            target = _saturate(concentrations, kappa)
            errors = self.cross_validated(spectra, target, concentrations)
            back = np.clip(_unsaturate(errors + target, kappa), self._low, self._high) - concentrations
            scores.append((float(np.sqrt((back**2).mean(1)).min()), kappa))
        self.kappa = min(scores)[1]
        self._regress(spectra, _saturate(concentrations, self.kappa), concentrations)

    def interval(self, spectra: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
        """The interval on the warped axis, mapped back."""
        low, high = super().interval(spectra, level)
        return _unsaturate(low, self.kappa), _unsaturate(high, self.kappa)

    def _predict(self, spectra: np.ndarray) -> np.ndarray:
        return _unsaturate(super()._predict(spectra), self.kappa)


def _saturate(c: np.ndarray, kappa: float) -> np.ndarray:
    return c if np.isinf(kappa) else c / (c + kappa)


def _unsaturate(y: np.ndarray, kappa: float) -> np.ndarray:
    if np.isinf(kappa):
        return y
    return kappa * y / np.maximum(1.0 - y, 1e-12)


@EVALUATION_METHODS.register("pcr")
class PCR(_Linear):
    """Least squares on the leading principal components."""

    coefficients = staticmethod(pcr_coefficients)
