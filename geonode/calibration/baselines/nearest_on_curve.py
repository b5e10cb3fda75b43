"""Concentration from spectrum by the nearest point of an interpolated curve."""

from __future__ import annotations

import numpy as np

from geonode.calibration.baselines.method import EVALUATION_METHODS, InverseMethod


@EVALUATION_METHODS.register("pchip_curve")
class PchipCurve(InverseMethod):
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
