"""Which standard to measure next: the concentration that would reduce the uncertainty of results most.

A further spectrum at c* changes every candidate process by the usual kriging update (Cohn, Ghahramani & Jordan 1996,
J. Artif. Intell. Res. 4, 129, "active learning": the variance does not depend on what will be measured),

    v(c) → v(c) − k_post(c, c*)² / (v(c*) + η)

and pins down the differences between candidates at c*, treated as a Gaussian process of their own. What is reported is
the root mean square over the calibrated range of u(c) = 1/√G(c), now and after.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geonode.calibration.calibration import Calibration
from geonode.calibration.design.resolution import tangents
from geonode.errors import InputError
from geonode_runtime.figures import figure
from geonode_runtime.given_numbers import as_number

GOALS = ("absolute", "relative")
"""What is to become small: u(c), or u(c)/c."""
LEAST_GAIN = 0.1
"""A further standard that takes less than this share of the uncertainty away is not worth its preparation."""
PRIOR = "knowing beforehand that they lie within it: uniform prior"


@dataclass(frozen=True, repr=False)
class Suggestion:
    """The next standard.

    Attributes:
        concentration: user units.
        before, after: root mean square of u(c) over the calibrated range, user units.
        candidates: ``[E]`` concentrations that were compared; expected: ``[E]`` the same figure for each.
        goal: "absolute", or "relative": before, after and expected are then shares of the concentration.
        fault: why nothing can be reckoned from these standards, a clause; empty where it can. The concentration then
            is the middle of the widest gap, and the figures mean nothing.
        unordered: whether spectra differ, but in no order: then more levels may help.
        repeats: whether the concentration is that of a standard that there is: a replicate of it is meant.
    """

    concentration: float
    before: float
    after: float
    candidates: np.ndarray
    expected: np.ndarray

    goal: str = "absolute"
    fault: str = ""
    unordered: bool = False
    repeats: bool = False

    @property
    def gain(self) -> float:
        """Share of the uncertainty that it takes away."""
        return 1.0 - self.after / self.before if self.before > 0.0 else 0.0

    @property
    def worth_it(self) -> bool:
        """Whether that is worth the preparation of a standard; where spectra follow no order more levels are wanted,
        whatever the figures, and where nothing responds none is."""
        if self.fault:
            return self.unordered
        return self.gain >= LEAST_GAIN

    def __repr__(self) -> str:
        return f"<{self.sentence()}>"

    def sentence(self, unit: str = "") -> str:
        """The advice in one line."""
        unit = f" {unit}" if unit else ""
        if self.unordered:
            return (
                f"what a further standard would give cannot be reckoned, for {self.fault}: check their labels and "
                f"units first, then measure one at {figure(self.concentration, unit)}, in the middle of the widest gap"
            )
        if self.fault:
            return f"no further standard can be chosen, for {self.fault}: find out first why"
        if self.goal == "relative":
            kind, before, after = "relative standard", f"{100 * self.before:.3g}", f"{100 * self.after:.3g} %"
        else:
            kind, before, after = "standard", f"{self.before:.3g}", f"{self.after:.3g}{unit}"
        what = f"the {kind} uncertainty of results (root mean square over the range, {PRIOR})"
        if not self.worth_it:
            place = "a replicate of" if self.repeats else "one at"
            return (
                f"a further standard is not worth it: {what} would fall from {before} to {after} at best "
                f"({100 * self.gain:.0f} % less, with {place} {figure(self.concentration, unit)})"
            )
        place = "a replicate of the standard" if self.repeats else "a standard at"
        return (
            f"measure {place} {figure(self.concentration, unit)} next: {what} would fall from {before} to "
            f"{after} ({100 * self.gain:.0f} % less)"
        )


def suggest_standard(
    calibration: Calibration, candidates: int = 41, points: int = 61, goal: str = "absolute"
) -> Suggestion:
    """Which further standard helps most.

    Args:
        calibration: fitted.
        candidates: concentrations of its range that are compared. points: of it, at which each is judged.
        goal: "absolute" makes u(c) small, "relative" u(c)/c, from the lowest standard above zero up; the figures of the
            suggestion then are shares of the concentration.

    Raises:
        InputError: fewer than two candidates or points, or another goal.
    """
    if goal not in GOALS:
        raise InputError(f"goal={goal!r} is not known; choose {' or '.join(GOALS)}.")
    if min(as_number(candidates, "candidates"), as_number(points, "points")) < 2:
        raise InputError("suggest needs at least two candidates and two points to judge them at.")
    calibration = calibration.standing.sound  # a wrong replicate is no reason for a further standard, nor against one
    model, gp = calibration.inverse, calibration.gp
    low, high = calibration.range
    # Inside the gaps, with the levels themselves: repeating a standard is an option too.
    tried = np.unique(np.concatenate([np.linspace(low, high, candidates), 0.5 * (gp.levels[1:] + gp.levels[:-1])]))
    c, size = _judged_at(gp.levels, points, goal)
    _, slope = tangents(model, c)
    noise = np.eye(model.rank) + model.projection.replicates
    z, n, r = model.projection.levels, len(gp.levels), model.rank
    update = gp.kriging_update(c, tried)
    curve_now = model.curve_parts(c)
    # A further spectrum would also average the noise of the standards down; by how much is not reckoned with.
    standards = curve_now.concentrations + curve_now.noise
    before = _root_mean_square(slope, model.curve_scale * curve_now.interpolation + standards + noise, high - low, size)
    expected = np.empty(len(tried))
    for e in range(len(tried)):
        within = z.T @ update.within[e] @ z
        trace = np.trace(within, axis1=1, axis2=2) / (max(n - 1, 1) * r)
        curve = (within + gp.prior_dof * trace[:, None, None] * np.eye(r)) / gp.dof
        at = np.einsum("ia,ij,jb->ab", z, update.within_at[e], z)
        curve_at = (at + gp.prior_dof * np.trace(at) / (max(n - 1, 1) * r) * np.eye(r)) / gp.dof
        between = z.T @ update.between @ z
        cross = z.T @ update.between_cross[e] @ z
        there = np.einsum("ia,ij,jb->ab", z, update.between_at[e], z)
        known = np.linalg.solve(there + curve_at + noise, cross.transpose(0, 2, 1))
        between = between - cross @ known
        covariance = model.curve_scale * (curve + between) + standards + noise
        expected[e] = _root_mean_square(slope, covariance, high - low, size)
    response = calibration.response
    best = int(np.abs(tried - _widest_gap(gp.levels)).argmin() if response.unordered else expected.argmin())
    place, after = float(tried[best]), float(expected[best])
    repeats = bool(np.isclose(gp.levels, place, rtol=1e-9, atol=0.0).any())
    return Suggestion(place, before, after, tried, expected, goal, response.fault, response.unordered, repeats)


def _widest_gap(levels: np.ndarray) -> float:
    """The middle of the widest gap between levels, ascending."""
    at = int(np.diff(levels).argmax())
    return float(0.5 * (levels[at] + levels[at + 1]))


def _judged_at(levels: np.ndarray, points: int, goal: str) -> tuple[np.ndarray, np.ndarray]:
    """Concentrations ``[points]``, and what u is divided by there: evenly over the range and 1; for the relative goal
    by factors, from the lowest level whose size is not zero up, and their size."""
    low, high = float(levels[0]), float(levels[-1])
    if goal == "absolute":
        return np.linspace(low, high, points), np.ones(points)
    if low < 0.0:
        raise InputError("a relative goal needs concentrations that are not negative; take the absolute one.")
    c = np.geomspace(float(levels[levels > 0.0][0]), high, points)
    return c, c


def _root_mean_square(slope: np.ndarray, covariance: np.ndarray, span: float, size: np.ndarray) -> float:
    """√(mean of (u/size)²) over the points. The variance of a uniform distribution over the range, span²/12, acts as
    prior information: where the spectrum does not change at all, u is that and not infinite."""
    information = np.einsum("cr,cr->c", slope, np.linalg.solve(covariance, slope[..., None])[..., 0])
    return float(np.sqrt(np.mean(1.0 / (information + 12.0 / span**2) / size**2)))
