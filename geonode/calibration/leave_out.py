"""Training sets for leaving one concentration out, by level, with inner validation nested inside.

Leaving level i out gives outer fold i. Inside it, leaving level j out as well gives the training set {all} − {i, j},
which serves outer fold i / inner j *and* outer fold j / inner i. So n + n(n−1)/2 training sets cover both layers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geonode.errors import InputError

MAX_FULL_LEVELS = 16
PARTNERS = 8


@dataclass(frozen=True)
class NestedSplits:
    """All training sets of nested leave-one-level-out over n ascending levels.

    Attributes:
        levels: n.
        training: index arrays of training levels; the first n leave one level out, the others two.
        targets: for every training set the indices of the levels to be predicted from it (those left out).
        pairs: ``[n, n]`` number of the training set without {i, j}; on the diagonal, that without {i}; −1 where inner
            sets were not asked for and for pairs that are left out.
    """

    levels: int
    training: list[np.ndarray]
    targets: list[np.ndarray]
    pairs: np.ndarray

    @property
    def has_inner(self) -> bool:
        """Whether two-level-out sets are present."""
        return len(self.training) > self.levels

    def inner(self, outer: int) -> list[tuple[int, int, int]]:
        """(inner level j, number of the training set, position of j among its targets) inside outer fold ``outer``."""
        found = []
        for j in range(self.levels):
            number = int(self.pairs[outer, j])
            if j != outer and number >= 0:
                found.append((j, number, int(np.flatnonzero(self.targets[number] == j)[0])))
        return found


def nested_leave_one_level_out(levels: int, inner: bool = True) -> NestedSplits:
    """The training sets of leave-one-level-out, with the inner layer unless ``inner`` is False.

    With more than ``MAX_FULL_LEVELS`` levels, each level is paired with ``PARTNERS`` others spread over the range
    instead of with all of them: inner scores are averages, and n(n−1)/2 trainings would cost more than they tell.

    Raises:
        InputError: fewer than three levels (four with the inner layer).
    """
    needed = 4 if inner else 3
    if levels < needed:
        raise InputError(
            f"leaving levels out{' with inner validation' if inner else ''} needs at least {needed} concentration "
            f"levels, but there are {levels}."
        )
    everything = np.arange(levels)
    training = [np.delete(everything, i) for i in range(levels)]
    targets = [np.array([i]) for i in range(levels)]
    pairs = np.full((levels, levels), -1)
    pairs[everything, everything] = everything
    if inner:
        for i in range(levels):
            for j in _partners(i, levels):
                pairs[i, j] = pairs[j, i] = len(training)
                training.append(np.delete(everything, [i, j]))
                targets.append(np.array([i, j]))
    return NestedSplits(levels, training, targets, pairs)


def _partners(level: int, levels: int) -> list[int]:
    """Partners j of ``level`` for which the set without both is trained here (each pair once)."""
    if levels <= MAX_FULL_LEVELS:
        return list(range(level + 1, levels))
    offsets = np.unique(np.linspace(1, (levels - 1) // 2, PARTNERS // 2).round().astype(int))
    return [int((level + offset) % levels) for offset in offsets]
