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

PRIOR = "knowing beforehand that they lie within it: uniform prior"


@dataclass(frozen=True)
class Suggestion:
    """The next standard.

    Attributes:
        concentration: user units.
        before, after: root mean square of u(c) over the calibrated range, user units.
        candidates: ``[E]`` concentrations that were compared; expected: ``[E]`` the same figure for each.
    """

    concentration: float
    before: float
    after: float
    candidates: np.ndarray
    expected: np.ndarray

    def sentence(self, unit: str = "") -> str:
        """The advice in one line."""
        unit = f" {unit}" if unit else ""
        gain = 100.0 * (1.0 - self.after / self.before) if self.before > 0.0 else 0.0
        return (
            f"measure a standard at {self.concentration:.4g}{unit} next: the standard uncertainty of results (root "
            f"mean square over the range, {PRIOR}) would fall from {self.before:.3g} to {self.after:.3g}{unit} "
            f"({gain:.0f} % less)"
        )


def suggest_standard(calibration: Calibration, candidates: int = 41, points: int = 61) -> Suggestion:
    """The best of ``candidates`` concentrations within the calibrated range of ``calibration``, judged at ``points`` of
    it.

    Raises:
        InputError: fewer than two candidates or points.
    """
    if candidates < 2 or points < 2:
        raise InputError("suggest needs at least two candidates and two points to judge them at.")
    calibration = calibration.of_process
    model, gp = calibration.inverse, calibration.gp
    low, high = calibration.range
    # Inside the gaps, with the levels themselves: repeating a standard is an option too.
    tried = np.unique(np.concatenate([np.linspace(low, high, candidates), 0.5 * (gp.levels[1:] + gp.levels[:-1])]))
    c = np.linspace(low, high, points)
    _, slope = tangents(model, c)
    noise = np.eye(model.rank) + model.projection.replicates
    z, n, r = model.projection.levels, len(gp.levels), model.rank
    update = gp.kriging_update(c, tried)
    curve_now = model.curve_parts(c)
    # A further spectrum would also average the noise of the standards down; by how much is not reckoned with.
    standards = curve_now.concentrations + curve_now.noise
    before = _root_mean_square(slope, model.curve_scale * curve_now.own + standards + noise, high - low)
    expected = np.empty(len(tried))
    for e in range(len(tried)):
        within = np.einsum("ia,cij,jb->cab", z, update.within[e], z, optimize=True)
        trace = np.trace(within, axis1=1, axis2=2) / (max(n - 1, 1) * r)
        curve = (within + gp.prior_dof * trace[:, None, None] * np.eye(r)) / gp.dof
        at = np.einsum("ia,ij,jb->ab", z, update.within_at[e], z)
        curve_at = (at + gp.prior_dof * np.trace(at) / (max(n - 1, 1) * r) * np.eye(r)) / gp.dof
        between = np.einsum("ia,cij,jb->cab", z, update.between, z, optimize=True)
        cross = np.einsum("ia,cij,jb->cab", z, update.between_cross[e], z, optimize=True)
        there = np.einsum("ia,ij,jb->ab", z, update.between_at[e], z)
        known = np.linalg.solve(there + curve_at + noise, cross.transpose(0, 2, 1))
        between = between - cross @ known
        covariance = model.curve_scale * (curve + between) + standards + noise
        expected[e] = _root_mean_square(slope, covariance, high - low)
    best = int(expected.argmin())
    return Suggestion(float(tried[best]), before, float(expected[best]), tried, expected)


def _root_mean_square(slope: np.ndarray, covariance: np.ndarray, span: float) -> float:
    """√(mean of u²) over the points. The variance of a uniform distribution over the range, span²/12, acts as prior
    information: where the spectrum does not change at all, u is that and not infinite."""
    information = np.einsum("cr,cr->c", slope, np.linalg.solve(covariance, slope[..., None])[..., 0])
    return float(np.sqrt(np.mean(1.0 / (information + 12.0 / span**2))))
