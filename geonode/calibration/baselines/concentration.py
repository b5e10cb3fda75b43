"""What a lab would otherwise use to turn a spectrum into a concentration, on the same footing.

Every rival is fitted to single spectra and the levels they belong to; whatever it has to choose (components, κ) is
chosen by leaving one level out inside its own training set. ``predict`` returns concentrations in user units, held to
the searched range of the calibrator, so that one wild extrapolation is not a rival's whole score.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Self, TypeVar, cast

import numpy as np
from scipy.special import ndtri, stdtrit

from geonode.calibration.inverse import searched_range
from geonode.errors import InputError

MAX_COMPONENTS = 10
KAPPAS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


class Rival:
    """Concentration from spectra: ``fit(spectra [N, W], concentrations [N])``, ``predict(spectra [U, W]) → [U]``."""

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""

    def fit(self, spectra: np.ndarray, concentrations: np.ndarray) -> Self:
        self._low, self._high = searched_range(np.unique(concentrations))
        self._fit(np.asarray(spectra, dtype=np.float64), np.asarray(concentrations, dtype=np.float64))
        return self

    def predict(self, spectra: np.ndarray) -> np.ndarray:
        return np.clip(self._predict(np.asarray(spectra, dtype=np.float64)), self._low, self._high)

    def interval(self, spectra: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray] | None:
        """Limits ``[U]``, ``[U]`` of the method's customary interval at ``level``; None where it has none."""
        return None

    def _fit(self, spectra: np.ndarray, concentrations: np.ndarray) -> None:
        raise NotImplementedError

    def _predict(self, spectra: np.ndarray) -> np.ndarray:
        raise NotImplementedError


RIVALS: dict[str, type[Rival]] = {}


_R = TypeVar("_R", bound=Rival)


def _register(name: str, title: str) -> Callable[[type[_R]], type[_R]]:
    def add(cls: type[_R]) -> type[_R]:
        cls.name, cls.title = name, title
        RIVALS[name] = cls
        return cls

    return add


def rival(name: str) -> Rival:
    """A new rival by name.

    Raises:
        InputError: there is none of that name.
    """
    if name not in RIVALS:
        raise InputError(f"there is no inverse method called '{name}'; choose from {', '.join(RIVALS)}.")
    return RIVALS[name]()


# ---------------------------------------------------------------------- linear methods


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


def pcr_coefficients(x: np.ndarray, y: np.ndarray, components: int) -> np.ndarray:
    """Principal component regression: as :func:`pls_coefficients`, for the 1, 2, … largest principal components."""
    u, size, vectors = np.linalg.svd(x, full_matrices=False)
    keep = min(components, int((size > 1e-10 * max(size[0], np.finfo(float).tiny)).sum()))
    steps = ((u[:, :keep].T @ y) / size[:keep])[:, None] * vectors[:keep]
    result = np.cumsum(steps, axis=0) if keep else np.zeros((1, x.shape[1]))
    return np.concatenate([result, np.repeat(result[-1:], components - len(result), axis=0)])


class _Linear(Rival):
    """A regression vector with the number of components chosen by leaving one level out."""

    coefficients: ClassVar[Callable[[np.ndarray, np.ndarray, int], np.ndarray]]

    def _fit(self, spectra: np.ndarray, concentrations: np.ndarray) -> None:
        self._regress(spectra, concentrations, concentrations)

    def _regress(self, spectra: np.ndarray, target: np.ndarray, concentrations: np.ndarray) -> float:
        """Fit ``target [N]``; returns the cross-validated squared error of the chosen number of components."""
        errors = self.cross_validated(spectra, target, concentrations)
        score = np.sqrt((errors**2).mean(1))
        # The fewest components whose error is within 2 % of the smallest: more of them buy nothing.
        self.components = int(np.flatnonzero(score <= 1.02 * score.min())[0]) + 1
        self._centre, self._offset = spectra.mean(0), target.mean()
        self._levels = len(np.unique(concentrations))
        x, basis = _rotated(spectra - self._centre)
        self._vector = type(self).coefficients(x, target - self._offset, self.components)[-1] @ basis
        self.cv_errors = errors[self.components - 1]
        return float(score[self.components - 1])

    def cross_validated(self, spectra: np.ndarray, target: np.ndarray, concentrations: np.ndarray) -> np.ndarray:
        """``[components, N]`` errors (predicted − target) with each spectrum's level left out."""
        levels, index = np.unique(concentrations, return_inverse=True)
        most = max(1, min(MAX_COMPONENTS, len(levels) - 2, spectra.shape[1]))
        x, _ = _rotated(spectra - spectra.mean(0))
        errors = np.zeros((most, len(x)))
        for level in range(len(levels)):
            train = index != level
            centre, offset = x[train].mean(0), target[train].mean()
            vectors = type(self).coefficients(x[train] - centre, target[train] - offset, most)
            errors[:, ~train] = vectors @ (x[~train] - centre).T + offset - target[~train]
        return errors

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


@_register("pls", "PLS on concentration")
class PLS(_Linear):
    """PLS1 on the concentration."""

    coefficients = staticmethod(pls_coefficients)


@_register("pls_warped", "PLS on c/(c+κ)")
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


@_register("pcr", "principal component regression")
class PCR(_Linear):
    """Least squares on the leading principal components."""

    coefficients = staticmethod(pcr_coefficients)


# ---------------------------------------------------------------------- curved methods


@_register("gp_pca", "Gaussian process on principal components")
class PCAGaussianProcess(Rival):
    """scikit-learn's Gaussian process (RBF + noise) from the leading principal component scores to concentration."""

    def _fit(self, spectra: np.ndarray, concentrations: np.ndarray) -> None:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

        levels = len(np.unique(concentrations))
        self._centre = spectra.mean(0)
        _, size, vectors = np.linalg.svd(spectra - self._centre, full_matrices=False)
        share = np.cumsum(size**2) / max((size**2).sum(), np.finfo(float).tiny)
        count = int(np.clip(np.searchsorted(share, 0.999) + 1, 1, min(5, levels - 1)))
        self._basis = vectors[:count].T
        scores = (spectra - self._centre) @ self._basis
        self._size = np.maximum(scores.std(0), np.finfo(float).tiny)
        kernel = ConstantKernel(1.0, (1e-2, 1e4)) * RBF(1.0, (1e-1, 1e2)) + WhiteKernel(1e-3, (1e-8, 1.0))
        self._gp = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
        import warnings

        with warnings.catch_warnings():
            # A length at its bound is a straight line: nothing the reader needs to be told.
            warnings.simplefilter("ignore")
            self._gp.fit(scores / self._size, concentrations)

    def interval(self, spectra: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Mean ± z standard deviations of its own."""
        scores = (np.asarray(spectra) - self._centre) @ self._basis / self._size
        mean, std = cast(tuple[np.ndarray, np.ndarray], self._gp.predict(scores, return_std=True))
        half = ndtri(0.5 + 0.5 * level) * std
        return mean - half, mean + half

    def _predict(self, spectra: np.ndarray) -> np.ndarray:
        return np.asarray(self._gp.predict((spectra - self._centre) @ self._basis / self._size))


@_register("pchip_curve", "nearest point on the PCHIP curve")
class PchipCurve(Rival):
    """The concentration whose PCHIP-interpolated spectrum lies nearest (plain Euclidean distance)."""

    def _fit(self, spectra: np.ndarray, concentrations: np.ndarray) -> None:
        from scipy.interpolate import PchipInterpolator

        levels, index = np.unique(concentrations, return_inverse=True)
        means = np.stack([spectra[index == i].mean(0) for i in range(len(levels))])
        curve = PchipInterpolator(levels, means, axis=0, extrapolate=True)
        even = np.linspace(self._low, self._high, 1001)
        between = (levels[:-1, None] + np.diff(levels)[:, None] * np.linspace(0.0, 1.0, 129)).ravel()
        self._grid = np.unique(np.concatenate([even, between, levels]))
        self._points = curve(self._grid)

    def _predict(self, spectra: np.ndarray) -> np.ndarray:
        step = np.diff(self._points, axis=0)
        length = np.maximum((step**2).sum(1), np.finfo(float).tiny)
        result = np.empty(len(spectra))
        for i, spectrum in enumerate(spectra):
            gap = spectrum - self._points
            t = np.clip(np.einsum("kw,kw->k", gap[:-1], step) / length, 0.0, 1.0)
            distance = (gap[:-1] ** 2).sum(1) - 2 * t * np.einsum("kw,kw->k", gap[:-1], step) + t**2 * length
            k = int(distance.argmin())
            result[i] = self._grid[k] + t[k] * (self._grid[k + 1] - self._grid[k])
        return result
