"""What one would use instead on a grid of two (or more) concentrations: bilinear, thin plate, a Gaussian process.

Each class has ``fit(levels [n, D], means [n, W])`` and ``predict(concentrations [C, D]) → [C, W]``, outside the
calibrated box too. Concentrations are scaled to [0, 1] per analyte; with ``logarithmic`` an analyte whose lowest level
is zero is first mapped to log(1 + c/c₁), c₁ its lowest positive level: what a chemist would do who knows the answer.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from scipy.interpolate import RBFInterpolator, RegularGridInterpolator

from geonode.errors import InputError


class Interpolator:
    """Scaling shared by the interpolators; subclasses fit and predict in the unit box."""

    name: ClassVar[str] = ""

    def __init__(self, logarithmic: bool = False) -> None:
        self.logarithmic = logarithmic

    def fit(self, levels: np.ndarray, means: np.ndarray) -> Interpolator:
        positive = [column[column > 0.0] for column in levels.T]
        self._first = [
            float(p.min()) if self.logarithmic and column.min() == 0.0 and len(p) else None
            for p, column in zip(positive, levels.T, strict=True)
        ]
        mapped = self._map(levels)
        self._low, self._span = mapped.min(0), np.ptp(mapped, axis=0)
        self._fit((mapped - self._low) / self._span, means)
        return self

    def predict(self, concentrations: np.ndarray) -> np.ndarray:
        return self._predict((self._map(concentrations) - self._low) / self._span)

    def _map(self, c: np.ndarray) -> np.ndarray:
        columns = [
            column if first is None else np.log1p(column / first)
            for column, first in zip(c.T, self._first, strict=True)
        ]
        return np.stack(columns, 1)

    def _fit(self, x: np.ndarray, y: np.ndarray) -> None:
        raise NotImplementedError

    def _predict(self, x: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class Bilinear(Interpolator):
    """Multilinear on the grid of levels; the end cells go on outside.

    A grid with holes loses, for each hole, that level of the analyte with the most levels: the finer direction, in
    which the neighbours are nearest, bridges the gap.
    """

    name = "bilinear"

    def _fit(self, x: np.ndarray, y: np.ndarray) -> None:
        axes = [np.unique(column) for column in x.T]
        index = np.stack([np.searchsorted(axis, column) for axis, column in zip(axes, x.T, strict=True)], 1)
        grid = np.full((*map(len, axes), y.shape[1]), np.nan)
        grid[tuple(index.T)] = y
        finest = int(np.argmax([len(axis) for axis in axes]))
        others = tuple(d for d in range(grid.ndim) if d != finest)
        keep = np.isfinite(grid).all(axis=others)
        if keep.sum() < 2:
            raise InputError("bilinear interpolation needs a grid of standards; too many of its cells are missing.")
        axes[finest] = axes[finest][keep]
        self._grid = RegularGridInterpolator(
            axes,
            np.compress(keep, grid, axis=finest),
            bounds_error=False,
            fill_value=None,  # pyright: ignore[reportArgumentType] - None is scipy's word for extrapolation
        )

    def _predict(self, x: np.ndarray) -> np.ndarray:
        return self._grid(x)


class ThinPlate(Interpolator):
    """Thin-plate spline with linear polynomial (scipy's RBFInterpolator, its defaults)."""

    name = "thin_plate"

    def _fit(self, x: np.ndarray, y: np.ndarray) -> None:
        self._spline = RBFInterpolator(x, y, kernel="thin_plate_spline")

    def _predict(self, x: np.ndarray) -> np.ndarray:
        return self._spline(x)


class PlaneGP(Interpolator):
    """scikit-learn's Gaussian process with one length per analyte and a noise term.

    Squared exponential or Matérn-5/2, whichever has the higher marginal likelihood; the lengths by that likelihood too,
    from two starts.
    """

    name = "gp_2d"

    def _fit(self, x: np.ndarray, y: np.ndarray) -> None:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

        self._mean, self._scale = y.mean(0), y.std()
        bounds, lengths = (1e-2, 1e2), [0.3] * x.shape[1]
        candidates: list[Any] = []
        for shape in (RBF(lengths, bounds), Matern(lengths, bounds, nu=2.5)):
            kernel = ConstantKernel(1.0, (1e-3, 1e4)) * shape + WhiteKernel(1e-3, (1e-8, 1.0))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # a length at its bound is an answer here
                process = GaussianProcessRegressor(kernel, n_restarts_optimizer=1, random_state=0)
                candidates.append(process.fit(x, (y - self._mean) / self._scale))
        self._process = max(candidates, key=lambda process: process.log_marginal_likelihood_value_)

    def _predict(self, x: np.ndarray) -> np.ndarray:
        return self._process.predict(x) * self._scale + self._mean


INTERPOLATORS: dict[str, type[Interpolator]] = {cls.name: cls for cls in (Bilinear, ThinPlate, PlaneGP)}
"""By name, as in the tables."""
