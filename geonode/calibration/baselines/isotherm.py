"""Spectra by the isotherm of one binding site."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from geonode.calibration.baselines.method import EVALUATION_METHODS, Predictor


@EVALUATION_METHODS.register("isotherm")
class Isotherm(Predictor):
    """Binding isotherm a_λ + b_λ c/(c + K), K > 0 shared by all wavelengths (Langmuir 1918, one-site binding).

    For a given K the rest is linear, so K alone is searched (variable projection): a grid over six decades around the
    range of the levels, then Brent's method around the best grid point.
    """

    minimum_levels = 3
    non_negative_only = True
    _grid: ClassVar[np.ndarray] = np.logspace(-4.0, 3.0, 141)

    def fit(self, levels: np.ndarray, means: np.ndarray) -> Isotherm:
        top = levels[-1]
        centred = means - means.mean(axis=0)
        gram = centred @ centred.T

        def explained(log_k: float) -> float:
            x = levels / (levels + top * 10.0**log_k)
            x = x - x.mean()
            return -float(x @ gram @ x / (x @ x))

        from scipy.optimize import minimize_scalar  # half a second, that `geonode inspect` need not wait

        scores = np.array([explained(value) for value in np.log10(self._grid)])
        best = int(scores.argmin())
        lower, upper = np.log10(self._grid[[max(best - 1, 0), min(best + 1, len(self._grid) - 1)]])
        found = minimize_scalar(explained, bounds=(lower, upper), method="bounded", options={"xatol": 1e-8})
        log_k = float(found.x)  # pyright: ignore[reportAttributeAccessIssue]
        self.k = float(top * 10.0**log_k)
        self._coefficients = np.linalg.lstsq(self._design(levels), means, rcond=None)[0]
        return self

    def predict(self, concentrations: np.ndarray) -> np.ndarray:
        # Below zero the isotherm has a pole at −K; binding has no meaning there, so it stops at −K/2.
        return self._design(np.maximum(concentrations, -0.5 * self.k)) @ self._coefficients

    def _design(self, concentrations: np.ndarray) -> np.ndarray:
        return np.stack([np.ones_like(concentrations), concentrations / (concentrations + self.k)], axis=1)
