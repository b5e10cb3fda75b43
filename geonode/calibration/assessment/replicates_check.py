"""Replicates of one level against each other, before anything is said of the levels: swapped labels, an empty well, a
cuvette of water.

One wrong replicate drags the mean of its level along; what looks at levels alone then finds the level bad, its
neighbours too, or the whole assay useless. So replicates are looked at first, in the space of wavelengths whitened by
the noise:

* *centre* of a level: mean of that half of its replicates (h = k//2 + 1 of k) that lie closest together. Of two, none
  is the centre.
* *scatter* of replicates at a level: the largest of three that a few wrong ones cannot inflate: the levels' median, the
  same in proportion to the size of the spectra (errors of path and volume grow with them), and that of the level's own
  closest half. The scatter of one level is that of the distances within the closest half (as in Rousseeuw & Croux 1993,
  J. Am. Stat. Assoc. 88, 1273).
* A replicate outside the closest half is *off* where it lies more than ``TIMES`` the scatter and more than ``STEP`` of
  the way to the next level away from the centre. Two that are off from each other are judged by the line through the
  other levels: the one further from it is the wrong one where the other is ``AGREES`` times as near; else nobody can
  tell which.

Thresholds were chosen on simulated assays of 4 to 12 levels (docs/calibration.md, "One wrong replicate").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from geonode.calibration.measurement_noise import whitening_variance

TIMES = 6.0
"""Genuine replicates lie this many times the scatter off in less than one assay of a hundred."""
TIMES_OF_TWO = 8.0
"""The same of two replicates, of which the level's own scatter says nothing."""
CHOSEN = 2.0
"""By how much the scatter of the closest half of three or more, on one line, is too small (its median)."""
STEP = 0.5
"""Part of the way to the next level."""
AGREES = 6.0
"""Of two replicates one is the wrong one where the other agrees this many times better with the other levels."""
LIKE = 0.35
"""What lies nearer to another level than this share of its distance from its siblings looks like that level."""
NOTHING = 0.1
"""A spectrum this small, as a share of its siblings', has next to nothing in it."""


@dataclass(frozen=True)
class ReplicateCheck:
    """Replicates of one level that are not of one sample.

    Attributes:
        level: prepared concentration, user units. rows: positions among the standards: of the wrong one, or of the two
            of which one is.
        names: of these spectra.
        times: distance from the siblings ÷ scatter of replicates.
        looks_like: the level whose spectra are like it, None where none is. empty: next to nothing is in it.
    """

    level: float
    rows: tuple[int, ...]
    names: tuple[str, ...]
    times: float
    looks_like: float | None
    empty: bool = False

    @property
    def known(self) -> bool:
        """Whether it is known which replicate is the wrong one."""
        return len(self.rows) == 1

    def sentence(self, unit: str = "") -> str:
        """What to tell the analyst."""
        unit = f" {unit}" if unit else ""
        times = f"{self.times:.2g}" if self.times < 100.0 else f"{self.times:.0f}"
        scatter = f"{times} times the scatter of replicates"
        if not self.known:
            first, second = self.names
            return (
                f"the replicates '{first}' and '{second}' of {self.level:g}{unit} lie {scatter} apart, and the other "
                "levels do not tell which of the two is wrong: measure that level again, or leave it out"
            )
        (name,) = self.names
        said = f"the replicate '{name}' of {self.level:g}{unit} lies {scatter} from its siblings"
        if self.looks_like is not None:
            blank = " (a blank, or an empty cuvette or well)" if self.looks_like == 0.0 else ""
            return f"{said} and looks like {self.looks_like:g}{unit}{blank}: put its label right, or leave it out"
        if self.empty:
            return f"{said}, and next to nothing is in it (an empty cuvette or well): leave it out"
        return f"{said} and looks like no other level: leave it out, or measure it again"


def check_replicates(
    concentrations: np.ndarray, spectra: np.ndarray, names: Sequence[str] = ()
) -> list[ReplicateCheck]:
    """Every replicate that is not of its level; empty where there are none, or none is off.

    Args:
        concentrations: ``[N]``, equal ones for replicates. spectra: ``[N, W]``, finite.
        names: ``[N]``; without them, "2 of 3" and the like.
    """
    levels, index = np.unique(concentrations, return_inverse=True)
    rows = [np.flatnonzero(index == i) for i in range(len(levels))]
    if max((len(own) for own in rows), default=0) < 2 or len(levels) < 3:
        return []
    names = list(names) or [
        f"{int(np.sum(index[:i] == index[i])) + 1} of {len(rows[index[i]])}" for i in range(len(index))
    ]
    # Noise is taken from roughness alone: the scatter of replicates holds what is looked for.
    return _Replicates(levels, rows, spectra / np.sqrt(whitening_variance(spectra) * spectra.shape[1])).found(names)


class _Replicates:
    """Levels, the rows of each, and whitened spectra ``[N, W]``."""

    def __init__(self, levels: np.ndarray, rows: list[np.ndarray], x: np.ndarray) -> None:
        self.levels, self.rows, self.x = levels, rows, x
        self.half = [self._closest_half(own) for own in rows]
        self.centres = np.stack([x[half].mean(axis=0) for half in self.half])
        self.own = np.array([self._spread(half, len(own)) for half, own in zip(self.half, rows, strict=True)])
        self.sizes = np.linalg.norm(self.centres, axis=1)

    def _closest_half(self, own: np.ndarray) -> np.ndarray:
        """Of two or fewer all; else the h whose distances from one of them are least."""
        if len(own) < 3:
            return own
        apart = np.linalg.norm(self.x[own][:, None] - self.x[own][None], axis=2)
        nearest = np.argsort(apart, axis=1, kind="stable")[:, : len(own) // 2 + 1]
        sums = np.take_along_axis(apart, nearest, axis=1).sum(axis=1)
        return own[np.sort(nearest[int(sums.argmin())])]

    def _spread(self, half: np.ndarray, count: int) -> float:
        """Root mean square distance of two of them ÷ √2, made up for their having been chosen; NaN of one."""
        pairs = [np.sum((self.x[i] - self.x[j]) ** 2) for i, j in combinations(half, 2)]
        chosen = CHOSEN if len(half) < count else 1.0
        return chosen * float(np.sqrt(0.5 * np.mean(pairs))) if pairs else np.nan

    def scatter(self, level: int) -> float:
        """What replicates of this level may scatter; NaN where no other level has any and its own do not tell."""
        others = [i for i in range(len(self.levels)) if i != level and np.isfinite(self.own[i])]
        three = len(self.rows[level]) > 2
        if not others:
            return float(self.own[level]) if three else np.nan
        absolute = float(np.median(self.own[others]))
        relative = float(np.median(self.own[others] / np.maximum(self.sizes[others], 1e-300))) * self.sizes[level]
        return max(absolute, relative, float(self.own[level]) if three else 0.0)

    def step(self, level: int) -> float:
        """Distance to the nearer of the two neighbours; of a level of two, whose own place is in doubt, half of that
        between them."""
        last = len(self.levels) - 1
        if len(self.rows[level]) > 2:
            near = [i for i in (level - 1, level + 1) if 0 <= i <= last]
            return float(min(np.linalg.norm(self.centres[i] - self.centres[level]) for i in near))
        before, after = max(level - 1, 0), min(level + 1, last)
        if level in (0, last):
            before, after = (1, 2) if level == 0 else (last - 2, last - 1)
            return float(np.linalg.norm(self.centres[after] - self.centres[before]))
        return 0.5 * float(np.linalg.norm(self.centres[after] - self.centres[before]))

    def found(self, names: Sequence[str]) -> list[ReplicateCheck]:
        """Level by level."""
        limits = [max((TIMES if len(own) > 2 else TIMES_OF_TWO) * self.scatter(i), STEP * self.step(i))
                  for i, own in enumerate(self.rows)]  # fmt: skip
        doubtful = {i for i, own in enumerate(self.rows) if len(own) == 2 and self._apart(i) > limits[i]}
        checks = []
        for i, own in enumerate(self.rows):
            if i in doubtful:
                checks.append(self._of_two(i, doubtful, names))
            elif len(own) > 2 and np.isfinite(limits[i]):
                checks += self._of_more(i, limits[i], names)
        return checks

    def _apart(self, i: int) -> float:
        first, second = self.rows[i]
        return float(np.linalg.norm(self.x[first] - self.x[second])) / np.sqrt(2.0)

    def _of_more(self, i: int, limit: float, names: Sequence[str]) -> list[ReplicateCheck]:
        spare = np.sqrt(1.0 + 1.0 / len(self.half[i]))
        checks = []
        for row in np.setdiff1d(self.rows[i], self.half[i]).tolist():
            away = float(np.linalg.norm(self.x[row] - self.centres[i])) / spare
            if away > limit:
                checks.append(self._named(i, row, away, self.sizes[i], names))
        return checks

    def _of_two(self, i: int, doubtful: set[int], names: Sequence[str]) -> ReplicateCheck:
        rows, away = [int(row) for row in self.rows[i]], self._apart(i)
        off = [self._from_the_others(i, row, doubtful) for row in rows]
        for k in (0, 1):
            if off[k] > AGREES * off[1 - k]:
                return self._named(i, rows[k], away, float(np.linalg.norm(self.x[rows[1 - k]])), names)
        both = names[rows[0]], names[rows[1]]
        return ReplicateCheck(float(self.levels[i]), tuple(rows), both, away / self.scatter(i), None)

    def _named(self, i: int, row: int, away: float, size: float, names: Sequence[str]) -> ReplicateCheck:
        """The wrong replicate ``row`` of level ``i``, so far ``away`` from siblings of this ``size``."""
        near = [np.linalg.norm(self.x[half] - self.x[row], axis=1).min() if k != i else np.inf
                for k, half in enumerate(self.half)]  # fmt: skip
        like = int(np.argmin(near))
        alike = float(self.levels[like]) if near[like] <= LIKE * away else None
        empty = bool(np.linalg.norm(self.x[row]) <= NOTHING * size)
        times = away / self.scatter(i)
        return ReplicateCheck(float(self.levels[i]), (row,), (names[row],), float(times), alike, empty)

    def _from_the_others(self, i: int, row: int, doubtful: set[int]) -> float:
        """Distance of a spectrum to the line between the nearest levels that are not in doubt, or, at an end of the
        range, to that line carried on."""
        sure = [k for k in range(len(self.levels)) if k not in doubtful]
        before, after = [k for k in sure if k < i], [k for k in sure if k > i]
        if before and after:
            start, end, first, last = before[-1], after[0], 0.0, 1.0
        elif len(sure) > 1:
            start, end = (after[1], after[0]) if after else (before[-2], before[-1])
            first, last = 1.0, np.inf
        else:
            return 1.0  # nothing to go by
        step = self.centres[end] - self.centres[start]
        square = float(step @ step)
        along = float((self.x[row] - self.centres[start]) @ step) / square if square > 0.0 else 0.0
        return float(np.linalg.norm(self.x[row] - self.centres[start] - np.clip(along, first, last) * step))
