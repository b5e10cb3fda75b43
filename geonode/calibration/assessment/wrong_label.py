"""Which standard has a wrong label: the one with which the others agree far better under another.

Every level i left out has, by the others' curve, a concentration of its own, ĉ_i: that of the nearest spectrum. With
e_j the error of level j, left out, and e_j′ the same once level i is called ĉ_i, over the other interior levels j

    gain_i = ½ ln( Σ_j e_j² / Σ_j e_j′² )          whole_i: the same with level i among them

A good standard is called something else where the curve is steep or sparse, but then the others agree no better for it.
A label is wrong where `GAIN` and `WHOLE` are exceeded, ĉ_i lies beyond `OFF` of the way to the nearest level, and the
spectrum is further from the others' curve than they leave room for (`DOUBTED`; of six or more a smaller way will do
where that is `CERTAIN`, `SLIGHTLY`) and than noise explains (`NOISY`). The lowest and the highest level are known by
extrapolation alone: there the others must be certain, and ĉ_i that of a slip of dilution or of a label. The clearest is
named, and no other: of two wrong labels neither makes the others agree.

Taking a level out instead, as was done before, opens a gap that hides what is gained, and accuses the ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geonode.calibration.assessment.few_standards import SLIPS
from geonode.calibration.assessment.held_out import level_means
from geonode.calibration.gp.geodesic_gp import GeodesicGP
from geonode.calibration.leave_out import levels_kept, levels_to_leave_out

if TYPE_CHECKING:
    from geonode.calibration.calibration import Calibration

FEWEST_LEVELS = 5
"""Of four one interior level is left to agree, which any curve suits: with fewer no label is tried, nor an exchange."""
GAIN, WHOLE = 0.3, 0.7
OFF, SLIGHTLY = 0.5, 0.2
DOUBTED, CERTAIN = 1.5, 3.0
"""Times the standard deviation that the others' curve is given there."""
NOISY = 3.0
"""Times the noise of a level's mean."""
SLIP = 0.1
"""How near to a slip's factor the ratio must be, as a share of it."""
_GRID = 241


@dataclass(frozen=True)
class WrongLabel:
    """A level that the others call something else.

    Attributes:
        position: among the levels, ascending. implied: ĉ, user units. gain, whole: see the module.
    """

    position: int
    implied: float
    gain: float
    whole: float


def wrong_label(now: LeftOut) -> WrongLabel | None:
    """The wrong label among `FEWEST_LEVELS` or more, of which ``now`` are left out one by one; None where there is
    none."""
    best, found = WHOLE, None
    for i, implied in now.suspects().items():
        whole, gain = _better(now, now.under(now.called(i, implied)), i)
        if whole > best and gain > GAIN:
            best, found = whole, WrongLabel(i, implied, gain, whole)
    return found


def left_out(calibration: Calibration) -> LeftOut:
    """Every level of a ``calibration``, left out, under the labels that it has."""
    return LeftOut(calibration, _means_left_out(calibration), np.array(calibration.levels, dtype=float))


def _better(now: LeftOut, then: LeftOut, i: int) -> tuple[float, float]:
    """whole_i and gain_i."""
    others = [j for j in now.interior if j != i]
    if not others:
        return 0.0, 0.0
    tiny = np.finfo(float).tiny

    def log_ratio(levels: list[int]) -> float:
        squares = [sum(one.error[j] ** 2 for j in levels) for one in (now, then)]
        return 0.5 * float(np.log(max(squares[0], tiny) / max(squares[1], tiny)))

    return log_ratio([*others, i]), log_ratio(others)


class LeftOut:
    """Levels under some ``labels [n]``, each left out of the others; ``means`` are those of `_means_left_out`.

    Attributes:
        interior: positions of those that lie between others. error: RMS of the residual spectrum, by position.
    """

    def __init__(self, calibration: Calibration, means: dict[int, np.ndarray], labels: np.ndarray) -> None:
        self.calibration, self.means, self.labels = calibration, means, labels
        n = len(labels)
        self.process = dict(zip(means, _fitted(calibration, means, labels), strict=True))
        ranks = np.argsort(np.argsort(labels))
        self.interior = [i for i in means if 0 < ranks[i] < n - 1]
        self.error = {i: _rms(one.predict_mean(labels[[i]])[0] - self.means[i][i]) for i, one in self.process.items()}

    def under(self, labels: np.ndarray) -> LeftOut:
        """The same levels under other ``labels [n]``."""
        return LeftOut(self.calibration, self.means, labels)

    def square(self) -> float:
        """Mean squared error of the levels that lie between others."""
        return float(np.mean([self.error[i] ** 2 for i in self.interior]))

    def suspects(self) -> dict[int, float]:
        """Levels that are off their label by so much that trying another is worth it, and that other: ĉ."""
        noise = self.calibration.inverse.projection
        floor = NOISY * _rms(noise.scale / np.sqrt(noise.per_level))
        found = {}
        for i, process in self.process.items():
            label, others = self.labels[i], np.delete(self.labels, i)
            if self.error[i] <= floor:
                continue
            low, high = process.predict(self.labels[[i]]).interval(0.68)
            doubt = self.error[i] / _rms(0.5 * (high - low))
            if doubt <= DOUBTED:
                continue
            certain = doubt > CERTAIN and len(self.labels) > FEWEST_LEVELS
            implied, share = self.implied(i), SLIGHTLY if certain else OFF
            if abs(implied - label) <= share * float(np.abs(others - label).min()):
                continue
            slip = label > 0.0 and any(abs(implied / label - s) < SLIP * s for s in SLIPS)
            if i in self.interior or (slip and doubt > CERTAIN):
                found[i] = implied
        return found

    def implied(self, i: int) -> float:
        """The concentration at which the others' curve comes nearest to the spectrum of level ``i``."""
        inverse, process, spectrum = self.calibration.inverse, self.process[i], self.means[i][i]
        low, high = inverse.low, inverse.high
        grid = np.unique(np.concatenate([np.linspace(low, high, _GRID), inverse.grid]))
        for _ in range(2):
            far = ((process.predict_mean(grid) - spectrum) ** 2).mean(axis=1)
            k = int(far.argmin())
            low, high = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
            nearest, grid = float(grid[k]), np.linspace(low, high, 21)
        return nearest

    def called(self, i: int, implied: float) -> np.ndarray:
        """The labels with that of level ``i`` replaced; two levels of one concentration stay two."""
        labels, least = self.labels.copy(), 1e-3 * float(np.ptp(self.labels))
        labels[i] = implied
        others = np.delete(self.labels, i)
        while np.abs(others - labels[i]).min() < least:
            labels[i] += 2.0 * least
        return labels


def _fitted(calibration: Calibration, means: dict[int, np.ndarray], labels: np.ndarray) -> list[GeodesicGP]:
    """The process without each level, replicates unheard. Under the labels that the standards have it is at hand."""
    gp, held = calibration.gp, calibration.held_out
    if np.array_equal(labels, gp.levels) and list(means) == held.left_out.tolist():
        return [one.without_replicates() for one in held.processes]
    folds = [levels_kept(len(labels), i) for i in means]
    if all(one is gp.level_means for one in means.values()):
        return gp.fit_folds(labels, gp.level_means, folds)
    return [gp.fit_folds(labels, one, [fold])[0] for one, fold in zip(means.values(), folds, strict=True)]


def _means_left_out(calibration: Calibration) -> dict[int, np.ndarray]:
    """Level left out → level means ``[n, W]`` as a preprocessing fitted without it gives them."""
    asked = [int(i) for i in levels_to_leave_out(len(calibration.levels))]
    without = calibration.measured.spectra_without(calibration.level_index)
    if without is None:
        return dict.fromkeys(asked, calibration.gp.level_means)
    return {i: level_means(without(i), calibration.level_index, len(calibration.levels)) for i in asked}


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
