"""What bands between rows of standards rest on: whole rows left out, and the hull of the standards.

Standards of several analytes come in rows that share one concentration (all chlorides at pH 7.4). A row has an error
of its own (its buffer, its day), which neighbours in the same row cannot show, so that a process fitted to the cells
agrees too well with itself about a pH that nobody prepared. `row_effect` measures that error by leaving whole rows out:
as a nugget, it applies to every concentration that no standard has, however near.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linprog
from scipy.spatial import ConvexHull, QhullError
from scipy.special import stdtrit

from geonode.calibration.assessment.coverage import responding_wavelengths

if TYPE_CHECKING:
    from geonode.analytes.surface_gp import SurfaceGP

NOMINAL = 0.8
MOST_ROWS = 16  # left out; of more, as many that are spread evenly
ON_HULL = 1e-7
"""Points no further out than this share of the range are on the hull."""


@dataclass(frozen=True)
class RowEffect:
    """Variance of a row's own error, as a share of each wavelength's variance over the standards.

    ``rows`` were left out, one at a time. ``claimed``: they are enough for bands at 80 % (four or more).
    """

    share: float
    rows: int
    claimed: bool


def row_effect(gp: SurfaceGP, analyte: int) -> RowEffect:
    """The share that widens bands at a new concentration of ``analyte`` so that they hold for a row never seen.

    Each row is predicted by the process fitted without it; its score is the smallest share with which its 80 % bands
    cover 80 % of its values at responding wavelengths. The share is the ⌈0.8 (R + 1)⌉-th smallest of R scores, the rank
    of leave-one-out conformal prediction (Barber, Candès, Ramdas and Tibshirani, Ann. Statist. 49, 2021): were rows
    exchangeable and the fit the same without one of them, bands would hold 80 % of a further row with probability at
    least 0.8. Neither is exactly so: docs/two_analytes.md has what was measured. With fewer than four rows that rank
    does not exist: the largest score is taken, and nothing claimed. Without any row that can be spared the share is 0.
    """
    rows = _spared_rows(gp.levels, analyte)
    everything = np.arange(len(gp.levels))
    scores = []
    for row, process in zip(
        rows, gp.fit_folds(gp.levels, gp.level_means, [np.setdiff1d(everything, row) for row in rows]), strict=True
    ):
        responding = responding_wavelengths(process.level_means)
        plain = process.predict_within(gp.levels[row])
        allowed = ((gp.level_means[row] - plain.mean) / stdtrit(plain.dof, 0.5 + 0.5 * NOMINAL)) ** 2
        excess = (allowed - plain.scale**2)[:, responding] / process.level_means.var(0)[responding]
        scores.append(float(np.quantile(excess, NOMINAL, method="inverted_cdf")))
    rank = math.ceil(NOMINAL * (len(scores) + 1) - 1e-9)
    share = max(0.0, sorted(scores)[min(rank, len(scores)) - 1]) if scores else 0.0
    return RowEffect(share, len(scores), rank <= len(scores))


def _spared_rows(levels: np.ndarray, analyte: int) -> list[np.ndarray]:
    """Rows (indices of levels) without which the rest still make standards of every analyte."""
    values = np.unique(levels[:, analyte])
    if len(values) > MOST_ROWS:
        values = values[np.linspace(0, len(values) - 1, MOST_ROWS).round().astype(int)]
    rows = []
    for value in values:
        rest = levels[levels[:, analyte] != value]
        if len(rest) >= levels.shape[1] + 2 and np.ptp(rest, axis=0).all():
            rows.append(np.flatnonzero(levels[:, analyte] == value))
    return rows


def new_values(concentrations: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """``[C, D]``: True where no level has that concentration of that analyte."""
    gap = np.abs(concentrations[:, None, :] - levels[None]).min(1)
    return gap > 1e-9 * np.ptp(levels, axis=0)


def outside_hull(points: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """``[C]``: True where a point ``[C, D]`` is no weighted mean of ``levels [n, D]``."""
    low, high = levels.min(0), levels.max(0)
    slack = 1e-9 * (high - low)
    outside = ((points < low - slack) | (points > high + slack)).any(1)
    corners = np.array(np.meshgrid(*zip(low, high, strict=True))).reshape(levels.shape[1], -1).T
    if all((np.abs(levels - corner) <= slack).all(1).any() for corner in corners):
        return outside  # all corners are there: the hull is the box
    scaled, unit = (levels - low) / (high - low), (points - low) / (high - low)
    try:
        faces = ConvexHull(scaled).equations
    except QhullError:  # it has no volume
        return outside | _no_mean(unit, scaled, ~outside)
    return outside | (unit @ faces[:, :-1].T + faces[:, -1] > ON_HULL).any(1)


def _no_mean(points: np.ndarray, levels: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """The same of the points that are ``asked [C]`` for, by a linear programme each."""
    conditions, outside = np.vstack([levels.T, np.ones(len(levels))]), np.zeros(len(points), dtype=bool)
    for i in np.flatnonzero(asked):
        found = linprog(np.zeros(len(levels)), A_eq=conditions, b_eq=[*points[i], 1.0], bounds=(0.0, None))
        outside[i] = found.status == 2  # infeasible
    return outside
