"""Concentration from spectrum by a Gaussian process on principal components."""

from __future__ import annotations

from typing import cast

import numpy as np
from scipy.special import ndtri

from geonode.calibration.baselines.method import EVALUATION_METHODS, InverseMethod


@EVALUATION_METHODS.register("gp_pca")
class PCAGaussianProcess(InverseMethod):
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
