"""The space in which spectra of several analytes are compared: whitened, and reduced to what the standards span."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geonode.calibration.measurement_noise import whitening_variance

NOISE_EDGE = 1.2
"""Singular values up to this many times those of noise alone are noise's."""
MOST = 8  # directions
LEAST = 1e-4
"""No noise has less than this share of the variance that roughness gives."""


@dataclass(frozen=True)
class SurfaceSpace:
    """Coordinates of spectra: z = (x − mean)/σ, a = Bᵀ z.

    Attributes:
        mean, sigma: ``[W]`` of the level means, and the standard deviation of the noise of one spectrum.
        basis: ``[W, r]`` orthonormal, the directions in which the whitened level means differ by more than noise.
    """

    mean: np.ndarray
    sigma: np.ndarray
    basis: np.ndarray

    @classmethod
    def of(cls, level_means: np.ndarray, deviations: np.ndarray | None) -> SurfaceSpace:
        """Of ``level_means [n, W]`` and the replicates' ``deviations [N, W]`` from them (None without any).

        Roughness takes narrow bands for noise where steps are wide: what the level means leave outside their own span
        is noise too, and where that is less, it is what counts.
        """
        n, width = level_means.shape
        sigma = np.sqrt(whitening_variance(level_means, deviations))
        mean = level_means.mean(axis=0)
        _, size, rows = np.linalg.svd((level_means - mean) / sigma, full_matrices=False)
        # the edge of Marchenko & Pastur for n − 1 spectra of pure noise
        rank = int((size > NOISE_EDGE * (np.sqrt(width) + np.sqrt(n - 1))).sum())
        rank = min(max(rank, 2), MOST, width)
        spare = (n - 1 - rank) * (width - rank)
        if spare > 0:
            sigma = sigma * np.sqrt(np.clip(np.sum(size[rank:] ** 2) / spare, LEAST, 1.0))
        return cls(mean, sigma, rows[:rank].T)

    @property
    def rank(self) -> int:
        """r, the number of directions."""
        return self.basis.shape[1]

    def coordinates(self, spectrum: np.ndarray, usable: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Of one ``spectrum [W]``, only where ``usable [W]``.

        Returns:
            Coordinates ``[r]``, their covariance ``[r, r]`` for noise of variance one, and the residual outside the
            span per degree of freedom (1 for noise alone).
        """
        whitened = ((spectrum - self.mean) / self.sigma)[usable]
        basis = self.basis[usable]
        inverse = np.linalg.inv(basis.T @ basis)
        found = inverse @ (basis.T @ whitened)
        rest = whitened - basis @ found
        return found, inverse, float(rest @ rest) / max(len(whitened) - self.rank, 1)
