"""How far off a genuine spectrum may be: limits for "does not match", learned from the standards themselves.

Two statistics are limited: the residual outside the span of the standards (Q), and the distance from the curve within
it (T², the smallest d²). The textbook limits know only noise, not the error of a curve through n points, and refuse
44 % of genuine spectra at nominal 5 %. So each limit is the upper prediction limit of a log-normal distribution for the
standards, each left out in turn; the textbook's stays as the least that it may be, and so does what a standard shows on
its own curve, where the curve claims to be most certain.

T² of a left-out interior standard is taken from the curve through the others in the space of *all* standards and with
the covariance of the full calibration. A space without the standard has a dimension less and a wider covariance: what
is odd about the standard then appears in Q or nowhere, and a limit learned there refuses genuine spectra in the space
that unknowns are compared in (simulated assays of four to seven levels with 1 % errors of path: 2 to 5 % instead of
1 %). To the lowest and the highest standard the others' curve has to extrapolate, of which that covariance knows
nothing: theirs is taken from the calibration without them.
"""

from __future__ import annotations

import copy

import numpy as np
from scipy.special import chdtri, fdtri, stdtrit

from geonode.calibration.assessment.held_out import HeldOut
from geonode.calibration.inverse.model import InverseModel

LIMIT_TAIL = 0.025
"""Nominal share of genuine spectra beyond either limit (5 % for both together)."""
FEWEST_LEFT_OUT = 4
"""With fewer levels left out nothing can be learned of how they scatter: there is no limit."""

USELESS_FACTOR = 1e3
LIMIT_FACTOR = 10.0
"""Learned limits this many times the textbook's are said to be wide."""


def textbook_limits(rank: int, dof: float, width: int) -> tuple[float, float]:
    """χ²_{W−r}/(W−r) for Q, and Hotelling's (r−1) F_{r−1,ν} for the distance from a curve (r ≥ 2)."""
    spare, free = max(width - rank, 1), max(rank - 1, 1)
    return float(chdtri(spare, LIMIT_TAIL)) / spare, free * float(fdtri(free, dof, 1.0 - LIMIT_TAIL))


def match_limits(inverse: InverseModel, held: HeldOut, spectra: np.ndarray) -> tuple[float, float]:
    """Upper limits of Q and T² for genuine spectra; infinite where fewer than four levels were left out.

    A limit of Q beyond :data:`USELESS_FACTOR` times the textbook's, with which anything passes, is learned again with
    the ends held to the others (:func:`ends_held`); not where that is beyond it too, as that of standards with next to
    no noise, beside which every measured spectrum is far off.

    Args:
        inverse: of the full calibration.
        held: its levels, each left out.
        spectra: ``[N, W]`` of the standards.
    """
    least_q, least_t2 = textbook_limits(inverse.rank, inverse.dof, spectra.shape[1])
    coordinates, on_own_curve = inverse.projection.coordinates(spectra[held.rows])
    own = inverse.distances(coordinates, np.maximum(on_own_curve, 1.0)).closest
    t2 = np.maximum(np.where(held.edge, held.t2, _left_out_distances(inverse, held, spectra)), own)
    q = np.maximum(held.q, on_own_curve)
    limit = _limit(held.level, q, least_q)
    if limit > USELESS_FACTOR * least_q:
        inside = _limit(held.level, ends_held(q, held.level), least_q)
        limit = inside if inside <= USELESS_FACTOR * least_q else limit
    return limit, _limit(held.level, t2, least_t2)


def ends_held(misfit: np.ndarray, level: np.ndarray) -> np.ndarray:
    """The misfit ``[S]`` of left-out standards of the levels ``[S]``, that of the two ends, to which the others
    extrapolate, taken for no more than the largest of the others'; as it is where those are too few to tell."""
    left_out = np.unique(level)  # of two levels of standards none is
    if len(left_out) < FEWEST_LEFT_OUT + 2:
        return misfit
    edge = np.isin(level, left_out[[0, -1]])
    return np.where(edge, np.minimum(misfit, misfit[~edge].max()), misfit)


def wide_limits(inverse: InverseModel, held: HeldOut, limits: tuple[float, float], width: int) -> list[str]:
    """What must be said of ``limits`` (of Q and T²) so wide, or learned from so little, that a foreign spectrum of
    ``width`` wavelengths may well pass."""
    least = textbook_limits(inverse.rank, inverse.dof, width)
    q, t2 = limits[0] / least[0], limits[1] / least[1]
    if max(q, t2) < LIMIT_FACTOR and len(inverse.gp.levels) > 4:
        return []
    return [
        f"the limits of 'does not match' rest on {len(held.left_out)} left-out standards: {q:.3g} (Q) and "
        f"{t2:.3g} (T²) times the textbook's, so only a grossly foreign spectrum is refused, by its shape: compare "
        "q and t2 of a result with those of the standards, or measure more standards"
    ]


def _left_out_distances(inverse: InverseModel, held: HeldOut, spectra: np.ndarray) -> np.ndarray:
    """T² ``[S]`` of held-out spectra from the curve through the other standards, in the space of all."""
    found = np.zeros(len(held.level))
    without = copy.copy(inverse)
    levels = inverse.projection.levels
    for i, process in zip(held.left_out, held.processes, strict=True):
        rows, others = held.level == i, np.delete(levels, i, axis=0)
        centre = others.mean(axis=0)
        without.mean = centre + process.predict_rows(inverse.grid) @ (others - centre)
        coordinates, residual = inverse.projection.coordinates(spectra[held.rows[rows]])
        # A standard's coordinates hold its own noise, those of an unknown do not.
        coordinates = coordinates - (levels[i] / inverse.projection.factors - levels[i])
        found[rows] = without.distances(coordinates, np.maximum(residual, 1.0)).closest
    return found


def _limit(level: np.ndarray, values: np.ndarray, least: float) -> float:
    """Upper prediction limit of a log-normal: exp(x̄ + t_{m−1} s √(1 + 1/m)) over the m left-out levels."""
    logs = np.log(np.maximum(values, 1e-3))
    per_level = np.array([logs[level == i].max() for i in np.unique(level)])
    m = len(per_level)
    if m < FEWEST_LEFT_OUT:
        return float("inf")
    reach = stdtrit(m - 1, 1.0 - LIMIT_TAIL) * per_level.std(ddof=1) * np.sqrt(1.0 + 1.0 / m)
    return max(float(np.exp(per_level.mean() + reach)), least)
