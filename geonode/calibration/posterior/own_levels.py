"""The last step: what the assay's own left-out standards say about the width of the posterior.

Every level is left out with its replicates and looked for as an unknown. The posterior's density is raised to the power
t ≤ 1 under which those truths are most probable, with a prior on ln t around 0: it may widen, never narrow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from geonode.calibration.leave_out import SOME_LEVELS, levels_kept
from geonode_runtime.posterior.density import Posterior

POWERS = (1.0, 0.8, 0.65, 0.5, 0.4, 0.3, 0.2)
PRIOR_WIDTH = 0.5
"""Standard deviation of ln t in the prior."""
_MOST_REPLICATES = 3
_FEWEST_LEVELS = 4
_SET_LEVEL = 0.8


@dataclass(frozen=True)
class OwnLevels:
    """What m of the n levels, each left out, said.

    Attributes:
        power: t. count: n. asked: ``[m]`` positions of the levels.
        covered: ``[m]`` share of each one's replicates whose 80 % set, widened by t, holds the true concentration.
        squares: ``[m]`` mean squared error of their estimates. nearest: ``[m]`` the same of that piece of the set which
            lies nearest: which of several is the true one a dilution tells, and no standard.
        implied: ``[m]`` mean estimate, t not heard. surprise: ``[m]`` mean of ln of the density there ÷ that at the
            label.
    """

    power: float
    count: int
    asked: np.ndarray
    covered: np.ndarray
    squares: np.ndarray
    nearest: np.ndarray
    implied: np.ndarray
    surprise: np.ndarray

    def share(self, interior: bool = False) -> float:
        """Share of levels that were covered; where not all were left out, the interior ones stand for all of them. NaN
        where there is none."""
        edge = (self.asked == 0) | (self.asked == self.count - 1)
        weights = np.where(edge, 0.0 if interior else 1.0, (self.count - 2) / max(int((~edge).sum()), 1))
        return float(np.average(self.covered, weights=weights)) if weights.any() else float("nan")


def levels_asked(count: int) -> np.ndarray:
    """Which of ``count`` levels are left out: all of up to `SOME_LEVELS`, else so many spread over the range; none
    where fewer than three would stay."""
    if count < _FEWEST_LEVELS:
        return np.arange(0)
    return np.unique(np.linspace(0, count - 1, min(count, SOME_LEVELS)).round().astype(int))


def own_levels(
    levels: np.ndarray,
    level_index: np.ndarray,
    spectra: np.ndarray,
    posteriors_without: Callable[[np.ndarray, np.ndarray], list[Posterior]],
) -> OwnLevels:
    """The power t, and what it makes of the levels that it was learned from.

    Args:
        levels: ``[n]``. level_index: ``[N]`` of the single ``spectra [N, W]``.
        posteriors_without: of unknown spectra ``[U, W]`` given the rows of ``spectra`` that stay.
    """
    asked = levels_asked(len(levels))
    found = []
    for i in asked:
        stay = np.isin(level_index, levels_kept(len(levels), int(i)))
        found.append(posteriors_without(stay, spectra[~stay][:_MOST_REPLICATES]))
    score = -0.5 * (np.log(POWERS) / PRIOR_WIDTH) ** 2
    for i, group in zip(asked, found, strict=True):
        truth = float(levels[i])
        score += np.mean([[one.widened(t).log_density(truth) for t in POWERS] for one in group], axis=0)
    power = float(POWERS[int(score.argmax())])
    covered, squares, nearest, implied, surprise = (np.zeros(len(asked)) for _ in range(5))
    for k, (i, group) in enumerate(zip(asked, found, strict=True)):
        truth, sets = float(levels[i]), [one.widened(power).highest(_SET_LEVEL) for one in group]
        covered[k] = np.mean([one.contains(truth) for one in sets])
        squares[k] = np.mean([(one.best.estimate - truth) ** 2 for one in sets])
        nearest[k] = np.mean([min((c.estimate - truth) ** 2 for c in one.components) for one in sets])
        said = [one.highest(_SET_LEVEL).best.estimate for one in group]
        implied[k] = np.mean(said)
        surprise[k] = np.mean([p.log_density(c) - p.log_density(truth) for p, c in zip(group, said, strict=True)])
    return OwnLevels(power, len(levels), asked, covered, squares, nearest, implied, surprise)
