"""Two labels exchanged at a fold: the order of the levels under which their curve is far more probable.

Where a response folds, several orders of the levels make a curve, and levels left out, which leave a gap just where it
turns, tell little of them (:mod:`~geonode.calibration.assessment.swapped_labels`). The curve through all levels tells
more: its evidence, over all warps and lengths, under the labels as they are and with those of two exchanged.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import torch

from geonode.calibration.assessment.untold import response_size
from geonode.calibration.gp.grid import Grid
from geonode.calibration.gp.numerics import one_thread

if TYPE_CHECKING:
    from geonode.calibration.calibration import Calibration

LIKELIER = 4.0
"""ln of the ratio of evidences (tempered as the process has it) from which an exchange is told: of 216 genuine assays,
simulated, of five to ten levels and families left out of training, with errors below 30 % of the response and nothing
else to be said of them, one has it (docs/calibration.md)."""
APART = 0.3
"""Pairs whose spectra differ by a smaller share of the response are not tried: low neighbours on a logarithm exchange
without a trace, and without harm."""
FEWEST, MOST = 5, 10
"""Levels: of fewer any order makes a curve, of more an exchange is found level by level."""
_TOGETHER = 8


def likelier_exchange(calibration: Calibration) -> tuple[int, int] | None:
    """The two levels, by position, ascending, with whose labels exchanged the curve is far more probable; None where
    there are none."""
    means, levels = calibration.gp.level_means, np.array(calibration.levels, dtype=float)
    if not FEWEST <= len(levels) <= MOST:
        return None
    least = APART * response_size(calibration)
    pairs = [
        (i, j) for i, j in combinations(range(len(levels)), 2) if np.sqrt(((means[i] - means[j]) ** 2).mean()) > least
    ]
    if not pairs:
        return None
    orders = [list(range(len(levels))) for _ in [None, *pairs]]
    for order, (i, j) in zip(orders[1:], pairs, strict=True):
        order[i], order[j] = j, i
    now, *then = _evidences(calibration, levels, np.array(orders))
    best = int(np.argmax(then))
    return pairs[best] if then[best] - now > LIKELIER else None


def likelier_sentence(levels: np.ndarray, pair: tuple[int, int] | None, unit: str = "") -> str:
    """What to say of such a pair of ``levels [n]``; empty where there is none."""
    if pair is None:
        return ""
    unit = f" {unit}" if unit else ""
    low, high = (f"{levels[k]:g}{unit}" for k in pair)
    return (
        f"the labels of {low} and {high} may be exchanged: with the two swapped the curve through all levels is far "
        "more probable, and no level left out speaks for either order: check which sample was which"
    )


@one_thread()
def _evidences(calibration: Calibration, levels: np.ndarray, orders: np.ndarray) -> list[float]:
    """Log evidence of the curve with the spectra in each of ``orders [P, n]``, up to a constant."""
    gp, x = calibration.gp, calibration.gp.residual
    grid, gram, found = Grid(gp.lengths, gp.alphas, gp.etas), x @ x.T, []
    for start in range(0, len(orders), _TOGETHER):
        some = orders[start : start + _TOGETHER]
        grams = torch.from_numpy(np.stack([gram[np.ix_(order, order)] for order in some]))
        same = torch.from_numpy(np.repeat(levels[None], len(some), axis=0))
        weighed = grid.weigh(same, grams, x.shape[1], gp.effective_outputs)
        found += [float(torch.logsumexp(one.log_weights.flatten(), 0)) for one in weighed]
    return found
