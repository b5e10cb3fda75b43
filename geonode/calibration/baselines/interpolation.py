"""Spectra between levels by interpolation, every wavelength by itself."""

from __future__ import annotations

import numpy as np

from geonode.calibration.baselines.method import EVALUATION_METHODS, Predictor


@EVALUATION_METHODS.register("nearest")
class Nearest(Predictor):
    """The spectrum of the nearest level (the lower of two equally near)."""

    minimum_levels = 1

    def fit(self, levels: np.ndarray, means: np.ndarray) -> Nearest:
        self._levels, self._means = levels, means
        return self

    def predict(self, concentrations: np.ndarray) -> np.ndarray:
        return self._means[np.abs(concentrations[:, None] - self._levels).argmin(axis=1)]


@EVALUATION_METHODS.register("linear")
class Linear(Predictor):
    """Straight lines between neighbouring levels; outside, the end segment goes on."""

    def fit(self, levels: np.ndarray, means: np.ndarray) -> Linear:
        self._levels, self._means = levels, means
        return self

    def predict(self, concentrations: np.ndarray) -> np.ndarray:
        left = np.clip(np.searchsorted(self._levels, concentrations) - 1, 0, len(self._levels) - 2)
        share = (concentrations - self._levels[left]) / (self._levels[left + 1] - self._levels[left])
        return self._means[left] + share[:, None] * (self._means[left + 1] - self._means[left])


@EVALUATION_METHODS.register("pchip")
class Pchip(Predictor):
    """Monotone piecewise cubic Hermite (Fritsch & Butland 1984); outside, the end cubic goes on."""

    def fit(self, levels: np.ndarray, means: np.ndarray) -> Pchip:
        from scipy.interpolate import PchipInterpolator

        self._curve = PchipInterpolator(levels, means, axis=0, extrapolate=True)
        return self

    def predict(self, concentrations: np.ndarray) -> np.ndarray:
        return self._curve(concentrations)


@EVALUATION_METHODS.register("cubic")
class NaturalCubic(Predictor):
    """Natural cubic spline (second derivative zero at the ends); outside, the end cubic goes on."""

    def fit(self, levels: np.ndarray, means: np.ndarray) -> NaturalCubic:
        from scipy.interpolate import CubicSpline

        self._curve = CubicSpline(levels, means, axis=0, bc_type="natural", extrapolate=True)
        return self

    def predict(self, concentrations: np.ndarray) -> np.ndarray:
        return self._curve(concentrations)
