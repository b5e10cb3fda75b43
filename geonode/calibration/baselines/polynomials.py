"""Spectra by polynomials in concentration, every wavelength by itself."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from geonode.calibration.baselines.method import EVALUATION_METHODS, Predictor


class Polynomial(Predictor):
    """Least-squares polynomial of ``degree`` per wavelength."""

    degree: ClassVar[int] = 1

    def fit(self, levels: np.ndarray, means: np.ndarray) -> Polynomial:
        # Centred and scaled, so that the normal matrix stays well conditioned for any unit of concentration.
        self._centre, self._half = 0.5 * (levels[0] + levels[-1]), 0.5 * (levels[-1] - levels[0])
        self._coefficients = np.linalg.lstsq(self._design(levels), means, rcond=None)[0]
        return self

    def predict(self, concentrations: np.ndarray) -> np.ndarray:
        return self._design(concentrations) @ self._coefficients

    def _design(self, concentrations: np.ndarray) -> np.ndarray:
        return np.vander((concentrations - self._centre) / self._half, self.degree + 1)


@EVALUATION_METHODS.register("quadratic")
class Quadratic(Polynomial):
    """Least-squares parabola per wavelength."""

    degree = 2
    minimum_levels = 3


@EVALUATION_METHODS.register("line")
class Line(Polynomial):
    """Least-squares straight line per wavelength (Beer–Lambert with an offset)."""

    degree = 1
    minimum_levels = 2
