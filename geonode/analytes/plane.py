"""The posterior over the plane of two concentrations, given one spectrum.

In the reduced space of `SurfaceSpace` (r directions, noise of variance one) the members s of a `SurfaceEnsemble` say
that a spectrum of the point p of the plane lies at m(p), their mean, with covariance

    C(p) = φ N/k + τ mean_s v_s(p) S_s + 2 cov_s m_s(p) + D(p)      S_s = Rᵀ K_s⁻¹ R/(n − 1)

φ: what the unknown's own residual says of its noise, N its covariance, k replicates; v, K: kriging variance and kernel
matrix of each member; τ ≥ 1 is learned from standards left out. What the members differ by is one error for all
wavelengths together: cov_s m_s has few directions, along which no number of wavelengths makes a spectrum sharper. D:
only while the grid below closes in, what m changes by from one point to the next, so that no place is missed. Then

    p(p | x) ∝ prior(p) |C|^(−1/2) (1 + d²/ν)^(−(ν + r)/2) e^(−doubt(p)/2)     d² = (a − m)ᵀ C⁻¹ (a − m),  ν = n − 1

prior: half uniform in concentration, half uniform in the warp coordinates, in which the response is even. doubt: what
ln|C| exceeds its median within the standards' box by, outside of it: there no spectrum may fit because ever less is
known. The density is tabulated on a grid that closes in on where it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geonode.analytes.ensemble import SurfaceEnsemble
from geonode.analytes.space import SurfaceSpace
from geonode.calibration.gp.numerics import one_thread

POINTS = 61
"""Grid points per analyte."""
BEYOND = 0.25
"""How far beyond the standards is searched, as a share of each analyte's range."""
PRIOR = "half uniform in the two concentrations, half uniform in their warp coordinates, over the searched box"
_TEMPERS = (0.02, 0.1, 0.4, 1.0, 1.0)  # powers of the likelihood while the grid closes in
_TABLE = 600
BETWEEN = 2.0
"""What eight members differ by, times this, is what they may all be off by; chosen on simulated plates
(docs/two_analytes.md)."""
_CLOSING = 31  # grid points per analyte while it closes in


@dataclass(frozen=True)
class PlaneDensity:
    """A density over the plane, on a grid.

    Attributes:
        axes: two ascending arrays of concentrations ``[G₁]``, ``[G₂]``. coordinates: the same in warp coordinates.
        mass: ``[G₁, G₂]`` probability of each point's cell; adds up to 1. density: the same per warp area.
        squared: ``[G₁, G₂]`` d².
    """

    axes: tuple[np.ndarray, np.ndarray]
    coordinates: tuple[np.ndarray, np.ndarray]
    mass: np.ndarray
    density: np.ndarray
    squared: np.ndarray


class Plane:
    """What fitted processes say of spectra everywhere on the plane of their two analytes.

    Args:
        gp: the processes. space: of their level means.
    """

    def __init__(self, gp: SurfaceEnsemble, space: SurfaceSpace) -> None:
        self.gp, self.space = gp, space
        self.dof = float(len(gp.levels) - 1)
        self._reduced = (gp.residual / space.sigma) @ space.basis
        inverse = gp.inverse.numpy()
        self._spread = np.einsum("ir,sij,jq->srq", self._reduced, inverse, self._reduced) / self.dof
        self._offset = (gp.column_mean - space.mean) / space.sigma @ space.basis
        self._tables = [self._table(d) for d in range(2)]

    def _table(self, analyte: int) -> tuple[np.ndarray, np.ndarray]:
        """Concentrations that are searched and their warp coordinates, ascending."""
        levels, origin = self.gp.levels[:, analyte], self.gp.origin[analyte]
        low, high = levels.min(), levels.max()
        span = high - low
        bottom = low - BEYOND * span
        if origin == 0.0:  # an amount: nothing lies below zero
            bottom = max(bottom, 0.0)
        fine = low + span * np.geomspace(1e-6, 1.0 + BEYOND, _TABLE)
        values = np.unique(np.concatenate([np.linspace(bottom, high + BEYOND * span, _TABLE), fine, levels]))
        points = np.tile(self.gp.levels.mean(axis=0), (len(values), 1))
        points[:, analyte] = values
        places = self.gp.coordinates(points)[:, analyte]
        keep = np.concatenate([[True], np.diff(np.maximum.accumulate(places)) > 0.0])
        return values[keep], places[keep]

    @property
    def spread(self) -> np.ndarray:
        """Mean of S_s ``[r, r]``."""
        return self._spread.mean(axis=0)

    @one_thread()
    def density(self, found: np.ndarray, noise: np.ndarray, widening: float, points: int = POINTS) -> PlaneDensity:
        """Of a spectrum.

        Args:
            found, noise: its coordinates ``[r]``, and their covariance ``[r, r]`` (φ N/k).
            widening: τ.
            points: of the grid, per analyte.
        """
        coarse = min(points, _CLOSING)
        places = [np.linspace(table[1][0], table[1][-1], coarse) for table in self._tables]
        made = self._tabulated(places, found, noise, widening, _TEMPERS[0])
        for step, temper in enumerate(_TEMPERS[1:], 2):
            last = step == len(_TEMPERS)
            places = [_closer(x, made.mass.sum(axis=1 - d), points if last else coarse) for d, x in enumerate(places)]
            made = self._tabulated(places, found, noise, widening, temper, last)
        return made

    def ends_at_zero(self, analyte: int) -> bool:
        """Whether the search ends at a concentration of zero, below which there is nothing."""
        return bool(self._tables[analyte][0][0] == 0.0)

    def _tabulated(
        self,
        places: list[np.ndarray],
        found: np.ndarray,
        noise: np.ndarray,
        widening: float,
        temper: float,
        last: bool = False,
    ) -> PlaneDensity:
        axes = [np.interp(x, table[1], table[0]) for x, table in zip(places, self._tables, strict=True)]
        mean, own, between = self.at((axes[0], axes[1]))
        covariance = noise + widening * own + between + (0.0 if last else _steps(mean, places))
        difference = found - mean
        squared = np.einsum("gr,gr->g", difference, np.linalg.solve(covariance, difference[..., None])[..., 0])
        volume = np.linalg.slogdet(covariance)[1]
        x, y = (m.ravel() for m in np.meshgrid(*places, indexing="ij"))
        inside = (np.abs(x) <= 1.0 + 1e-9) & (np.abs(y) <= 1.0 + 1e-9)
        most = np.median(volume[inside]) if inside.any() else np.inf
        doubt = np.where(inside, 0.0, np.maximum(volume - most, 0.0))
        log = -0.5 * (self.dof + self.space.rank) * np.log1p(squared / self.dof) - 0.5 * (volume + doubt)
        weight = np.exp(temper * (log - log.max()))
        size = [np.outer(*(_cells(v) for v in pair)).ravel() for pair in (axes, places)]
        mass = weight * (size[0] / size[0].sum() + size[1] / size[1].sum())
        mass = (mass / mass.sum()).reshape(len(places[0]), len(places[1]))
        density = mass / size[1].reshape(mass.shape)
        return PlaneDensity((axes[0], axes[1]), (places[0], places[1]), mass, density, squared.reshape(mass.shape))

    def at(self, axes: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean ``[G, r]`` on the grid of two axes of concentrations, and its covariances ``[G, r, r]``: that of a
        member (times τ), and between members."""
        rows, variance = self.gp.rows_at(axes)
        means = rows @ self._reduced + self._offset
        mean = means.mean(axis=0)
        apart = means - mean
        between = BETWEEN * np.einsum("sgr,sgq->grq", apart, apart) / len(means)
        within = np.einsum("sg,srq->grq", variance, self._spread) / len(means)
        return mean, within, between


def _steps(mean: np.ndarray, places: list[np.ndarray]) -> np.ndarray:
    """Squares ``[G, r, r]`` of what the mean ``[G, r]`` changes by from one grid point to the next."""
    grid = mean.reshape(len(places[0]), len(places[1]), -1)
    along = [step.reshape(mean.shape) for step in np.gradient(grid, axis=(0, 1))]
    return np.sum([step[:, :, None] * step[:, None, :] for step in along], axis=0)


def _cells(points: np.ndarray) -> np.ndarray:
    """Width of each point's cell: half way to its neighbours."""
    edges = np.concatenate([points[:1], 0.5 * (points[1:] + points[:-1]), points[-1:]])
    return np.diff(edges)


def _closer(points: np.ndarray, share: np.ndarray, count: int) -> np.ndarray:
    """``count`` points, a quarter spread evenly and the rest where the probability ``share`` of ``points`` is."""
    edges = np.concatenate([points[:1], 0.5 * (points[1:] + points[:-1]), points[-1:]])
    even = np.diff(edges) / (edges[-1] - edges[0])
    below = np.concatenate([[0.0], np.cumsum(0.75 * share / share.sum() + 0.25 * even)])
    return np.interp(np.linspace(0.0, below[-1], count), below, edges)
