"""The space of few dimensions in which spectra are compared: what the standards themselves show.

With D the noise variance per wavelength and V the leading right singular vectors of (level means − mean) D^(−½),
r ≤ n − 1, a spectrum x becomes a = Vᵀ D^(−½) (x − mean).

*Self-noise.* The singular vectors of n noisy means lean towards the noise of those very means: a standard's
coordinates contain its own noise (√W standard deviations of it), an unknown's do not. For a singular value s of means
whose noise has the total square N₀ (W ÷ replicates for white noise), an unknown at level i has the expected coordinate
s u_i (1 − N₀/s²), u the left singular vector (the spiked-matrix limit for few rows and many columns; Benaych-Georges &
Nadakuditi 2012, J. Multivar. Anal. 111, 120). Z has these factors applied; directions of which nothing remains are
noise and are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geonode.calibration.gp.geodesic_gp import GeodesicGP
from geonode.calibration.measurement_noise import whitening_variance
from geonode_runtime.standard_spectra import StandardSpectra, fingerprints

MAX_RANK = 12
SMALLEST_FACTOR = 0.02
"""A direction that keeps less than this of itself after its self-noise is taken out is noise."""


@dataclass(frozen=True)
class Projection:
    """The rank-r space of the standards.

    Attributes:
        centre: ``[W]`` mean of the level means.
        scale: ``[W]`` √D, the noise standard deviation per wavelength.
        basis: ``[W, r]`` V, orthonormal.
        levels: ``[n, r]`` the level means in it, self-noise taken out (Z).
        factors: ``[r]`` how much of each direction remained.
        replicates: ``[r, r]`` P, zero where no level was measured twice.
        replicate_dof: degrees of freedom of P. per_level: spectra per level, on average.
    """

    centre: np.ndarray
    scale: np.ndarray
    basis: np.ndarray
    levels: np.ndarray
    factors: np.ndarray
    replicates: np.ndarray
    replicate_dof: int
    per_level: float

    @property
    def rank(self) -> int:
        """r."""
        return self.basis.shape[1]

    def coordinates(self, spectra: np.ndarray, usable: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Spectra ``[U, W]`` → coordinates ``[U, r]`` and out-of-span χ² per degree of freedom ``[U]``.

        ``usable [W]``: where False the value is ignored, and the coordinates are fitted to the rest by least squares.
        """
        white = (spectra - self.centre) / self.scale
        if usable is None or bool(np.all(usable)):
            a = white @ self.basis
            rest = (white**2).sum(1) - (a**2).sum(1)
            return a, np.maximum(rest, 0.0) / max(len(self.scale) - self.rank, 1)
        basis = self.basis[usable]
        a = np.linalg.lstsq(basis, white[:, usable].T, rcond=None)[0].T
        rest = ((white[:, usable] - a @ basis.T) ** 2).sum(1)
        return a, rest / max(int(np.sum(usable)) - self.rank, 1)

    def standard_spectra(
        self, spectra: np.ndarray, level_index: np.ndarray, concentrations: np.ndarray
    ) -> StandardSpectra:
        """The standards' spectra ``[N, W]``, of levels ``level_index [N]`` at ``concentrations [N]``, with the
        self-noise in their coordinates: that of their level mean, which the other noise of a replicate adds to."""
        prints = fingerprints(spectra, self.scale, self.basis)
        noise = self.levels / self.factors - self.levels
        return StandardSpectra(self.scale, self.basis, prints, noise[level_index], concentrations)

    @classmethod
    def of(cls, gp: GeodesicGP, deviations: np.ndarray | None) -> Projection:
        """The space of a fitted GP and the replicate deviations ``[N, W]`` of its standards (None: no replicates)."""
        n = len(gp.levels)
        dof = 0 if deviations is None else max(len(deviations) - n, 0)
        scale = np.sqrt(whitening_variance(gp.level_means, deviations if dof else None))
        left, size, right = np.linalg.svd(gp.residual / scale, full_matrices=False)
        most = max(1, min(n - 1, MAX_RANK, int((size > 1e-10 * size[0]).sum())))
        self_noise = float(len(scale))
        if deviations is not None and dof:
            white = deviations / scale
            # Noise of the means, whatever its spectrum: the total square of replicates' scatter ÷ replicates per level.
            self_noise = max(self_noise, float((white**2).sum()) / dof) * n / len(deviations)
        square = np.maximum(size[:most] ** 2, np.finfo(float).tiny)
        factors = np.clip(1.0 - self_noise / square, 0.0, 1.0)
        keep = np.flatnonzero(factors > SMALLEST_FACTOR)
        if not keep.size:
            # Standards that differ by no more than their noise: one direction stays, so that sets exist at all; they
            # come out as wide as the searched range, which is the truth.
            keep, factors[0] = np.array([0]), SMALLEST_FACTOR
        basis = right[keep].T
        levels = left[:, keep] * size[keep] * factors[keep]
        replicates = np.zeros((len(keep), len(keep)))
        if deviations is not None and dof:
            projected = (deviations / scale) @ basis
            replicates = projected.T @ projected / dof
        per_level = len(deviations) / n if deviations is not None and dof else 1.0
        return cls(gp.column_mean, scale, basis, levels, factors[keep], replicates, dof, per_level)
