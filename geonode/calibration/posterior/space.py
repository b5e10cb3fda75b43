"""Spectra as coordinates among the standards: whitened (for distances) and plain (for regressions)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geonode.calibration.measurement_noise import whitening_variance
from geonode_runtime.posterior.standards import Span

MAX_RANK = 12
MAX_WITHIN = 12
_TINY = float(np.finfo(float).tiny)
_SMALLEST_FACTOR = 0.02


@dataclass(frozen=True)
class Space(Span):
    """A rotation of spectra that keeps what the standards span, and where they lie in it.

    Attributes:
        standards: ``[n, p]`` the level means.
    """

    standards: np.ndarray

    @classmethod
    def of(cls, means: np.ndarray, scale: np.ndarray) -> Space:
        """All directions of the level means ``[n, W]``."""
        centre = means.mean(0)
        left, size, right = np.linalg.svd((means - centre) / scale, full_matrices=False)
        keep = max(1, min(len(means) - 1, int((size > 1e-10 * size[0]).sum())))
        return cls(centre, scale, right[:keep].T, left[:, :keep] * size[:keep])

    def with_scatter(self, deviations: np.ndarray | None) -> Space:
        """With the leading directions (at most `MAX_WITHIN`) in which replicates ``[N, W]`` less their level means vary
        and levels do not."""
        if deviations is None:
            return self
        scattered = deviations / self.scale
        rest = scattered - (scattered @ self.basis) @ self.basis.T
        # By the Gram matrix: an SVD of next to nothing may not converge.
        square, left = np.linalg.eigh(rest @ rest.T)
        strongest = np.argsort(-square, kind="stable")[:MAX_WITHIN]
        keep = strongest[square[strongest] > 1e-12 * max(float((scattered**2).sum()), _TINY)]
        more = left[:, keep].T @ rest / np.sqrt(square[keep])[:, None]
        standards = np.concatenate([self.standards, np.zeros((len(self.standards), len(more)))], 1)
        return Space(self.centre, self.scale, np.concatenate([self.basis, more.T], 1), standards)


def shrinkage(space: Space, means_noise: float) -> np.ndarray:
    """``[p]`` how much of each direction of the standards is not their own noise, of total square ``means_noise``
    (spiked-matrix limit; Benaych-Georges & Nadakuditi 2012, J. Multivar. Anal. 111, 120)."""
    square = np.maximum((space.standards**2).sum(0), np.finfo(float).tiny)
    return np.clip(1.0 - means_noise / square, 0.0, 1.0)


def directions_kept(factors: np.ndarray) -> np.ndarray:
    """Positions of the directions that are more than noise, at least one and at most `MAX_RANK`."""
    keep = np.flatnonzero(factors[:MAX_RANK] > _SMALLEST_FACTOR)
    return keep if keep.size else np.array([0])


def noise_scale(means: np.ndarray, deviations: np.ndarray | None) -> np.ndarray:
    """``[W]`` standard deviation of one spectrum's noise."""
    return np.sqrt(whitening_variance(means, deviations))
