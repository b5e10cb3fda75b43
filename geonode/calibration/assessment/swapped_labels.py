"""Two labels exchanged: the pair with whose labels swapped the levels, each left out, are found far better.

One of two exchanged labels, put right alone, makes two levels of one concentration, so that looking at one label at a
time (:mod:`~geonode.calibration.assessment.wrong_label`) finds neither, or blames a good standard. Every pair is tried
with straight lines between the neighbours first, on the axis of concentration and on that of its logarithm, and the
few that gain most with the curve itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from geonode.calibration.assessment.wrong_label import LeftOut

TRIED = 3
"""So many pairs are tried with the curve itself."""
PROMISING = 0.5
"""½ ln of the ratio of squared errors by straight lines from which a pair is tried with the curve."""
GAIN = 0.7
"""½ ln of that ratio with the curve from which the labels are called exchanged, …"""
GAIN_AT_AN_END = 1.4
"""… and from which they are where one of the two is the highest or the lowest level: a response that turns between an
end and the next level, where none was measured, looks like such an exchange, …"""
CLEARER = 0.3
"""… by so much more than with any other pair, …"""
LARGE = 0.005
"""… and the levels of the pair miss each other's spectra by this share of the largest distance between two levels: of
levels that are spaced evenly on a logarithm the low ones lie as near as that to each other."""


@dataclass(frozen=True)
class SwappedLabels:
    """Two levels whose labels look exchanged.

    Attributes:
        first, second: among the levels, ascending. gain: by how much all levels agree better, ½ ln of squared errors.
    """

    first: int
    second: int
    gain: float


def swapped_labels(now: LeftOut, white: np.ndarray) -> SwappedLabels | None:
    """The two exchanged labels; None where no exchange, or more than one, makes the levels agree far better.

    Args:
        now: every level left out, under the labels as they are; where some were not, no pair is tried.
        white: ``[n, W]`` level means ÷ noise.
    """
    labels, n = now.labels, len(now.labels)
    if len(now.means) < n:
        return None
    tried = []
    size = float(np.linalg.norm(white[:, None] - white[None], axis=2).max())
    for i, j in combinations(range(n), 2):
        if np.linalg.norm(white[i] - white[j]) >= LARGE * size:
            gain = max(_by_lines(one, white) - _by_lines(_exchanged(one, i, j), white) for one in _axes(labels))
            tried += [(gain, i, j)] if gain > PROMISING else []
    found = []
    for _, i, j in sorted(tried, reverse=True)[:TRIED]:
        then = now.under(_exchanged(labels, i, j))
        found.append((0.5 * float(np.log(now.square() / max(then.square(), np.finfo(float).tiny))), i, j))
    found.sort(reverse=True)
    if not found or found[0][0] < _needed(found[0], n) or (len(found) > 1 and found[0][0] - found[1][0] < CLEARER):
        return None
    gain, i, j = found[0]
    return SwappedLabels(i, j, float(gain))


def _needed(pair: tuple[float, int, int], n: int) -> float:
    return GAIN_AT_AN_END if pair[1] == 0 or pair[2] == n - 1 else GAIN


def _exchanged(labels: np.ndarray, i: int, j: int) -> np.ndarray:
    made = labels.copy()
    made[[i, j]] = labels[[j, i]]
    return made


def _axes(labels: np.ndarray) -> list[np.ndarray]:
    """Concentration, and its logarithm from the smallest step on: a response is nearly straight along one of them."""
    above = labels - labels.min()
    return [labels, np.log(above + above[above > 0.0].min())]


def _by_lines(places: np.ndarray, white: np.ndarray) -> float:
    """½ ln of the mean squared distance of the inner levels from the straight line between their neighbours."""
    order = np.argsort(places)
    x, u = white[order], places[order]
    share = ((u[1:-1] - u[:-2]) / (u[2:] - u[:-2]))[:, None]
    square = float(((x[1:-1] - (1.0 - share) * x[:-2] - share * x[2:]) ** 2).mean())
    return 0.5 * float(np.log(max(square, np.finfo(float).tiny)))
