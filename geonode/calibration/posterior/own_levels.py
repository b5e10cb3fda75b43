"""The last step: what the assay's own left-out standards say about the width of the posterior.

Every level is left out with its replicates and looked for as an unknown. The posterior's density is raised to the power
t ≤ 1 under which those truths are most probable, with a prior on ln t around 0: it may widen, never narrow.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from geonode.calibration.leave_out import SOME_LEVELS, levels_kept
from geonode_runtime.posterior.density import Posterior

POWERS = (1.0, 0.8, 0.65, 0.5, 0.4, 0.3, 0.2)
PRIOR_WIDTH = 0.5
"""Standard deviation of ln t in the prior."""
_MOST_REPLICATES = 3
_FEWEST_LEVELS = 4


def levels_asked(count: int) -> np.ndarray:
    """Which of ``count`` levels are left out: all of up to `SOME_LEVELS`, else so many spread over the range; none
    where fewer than three would stay."""
    if count < _FEWEST_LEVELS:
        return np.arange(0)
    return np.unique(np.linspace(0, count - 1, min(count, SOME_LEVELS)).round().astype(int))


def widening(
    levels: np.ndarray,
    level_index: np.ndarray,
    spectra: np.ndarray,
    posteriors_without: Callable[[np.ndarray, np.ndarray], list[Posterior]],
) -> float:
    """The power t.

    Args:
        levels: ``[n]``. level_index: ``[N]`` of the single ``spectra [N, W]``.
        posteriors_without: of unknown spectra ``[U, W]`` given the rows of ``spectra`` that stay.
    """
    score = -0.5 * (np.log(POWERS) / PRIOR_WIDTH) ** 2
    for i in levels_asked(len(levels)):
        stay = np.isin(level_index, levels_kept(len(levels), int(i)))
        own = spectra[~stay][:_MOST_REPLICATES]
        for one in posteriors_without(stay, own):
            score += np.array([one.widened(t).log_density(float(levels[i])) for t in POWERS]) / len(own)
    return float(POWERS[int(score.argmax())])
