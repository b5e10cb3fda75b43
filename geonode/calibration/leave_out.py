"""Leaving one concentration out: the one way in which geonode judges anything by the standards themselves.

All replicates of a level are left out together, and whatever is fitted or chosen is fitted or chosen without them.
Held-out checks, rivals' cross-validation, comparisons of methods, folds of neural flows and scikit-learn's tools take
their training sets from here.

Comparisons nest it: leaving level i out gives outer fold i, and leaving level j out as well gives the training set
{all} − {i, j}, which serves outer fold i / inner j *and* outer fold j / inner i. So n + n(n−1)/2 training sets cover
both layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from geonode.errors import InputError

ALL_LEVELS = 16
"""Up to this many levels each is left out, and each pair of them inside a comparison."""
SOME_LEVELS = 8
"""Of more levels so many are left out, spread over the range; inside a comparison each is paired with so many."""


def levels_to_leave_out(count: int) -> np.ndarray:
    """Positions ``[m]`` of the levels that are left out of ``count``: all of up to ALL_LEVELS, else SOME_LEVELS evenly
    spread ones, both ends included."""
    if count <= ALL_LEVELS:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, SOME_LEVELS).round().astype(int))


def levels_kept(count: int, *left_out: int) -> np.ndarray:
    """Positions of the levels that stay of ``count`` when those at ``left_out`` go."""
    return np.delete(np.arange(count), left_out)


def leave_each_out(labels: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows that stay and rows that are left out, for each distinct label of ``labels [N]``, ascending."""
    for label in np.unique(labels):
        yield np.flatnonzero(labels != label), np.flatnonzero(labels == label)


class LeaveOneConcentrationOut:
    """Cross-validation that leaves all spectra of one concentration out at a time; a splitter of scikit-learn's kind.

    ``split(X, y, groups)`` groups by ``groups`` where given, else by equal ``y``: replicates never sit on both sides.
    """

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pairs of training and test indices, levels ascending.

        Args:
            X: not looked at, as scikit-learn's splitters do.
            y: ``[N]`` concentrations.
            groups: ``[N]`` labels, taken instead where given.

        Raises:
            InputError: neither ``y`` nor ``groups``, not one label per spectrum, or fewer than two different ones.
        """
        yield from leave_each_out(_labels(y, groups))

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of levels (or groups). Arguments and errors as for `split`."""
        return len(np.unique(_labels(y, groups)))


def _labels(y: Any, groups: Any) -> np.ndarray:
    if y is None and groups is None:
        raise InputError("LeaveOneConcentrationOut needs the concentrations y, or groups.")
    labels = np.asarray(y if groups is None else groups)
    if labels.ndim != 1 or len(np.unique(labels)) < 2:
        raise InputError(
            f"LeaveOneConcentrationOut needs one label per spectrum and at least two different ones, but got shape "
            f"{labels.shape} with {len(np.unique(labels))}."
        )
    return labels


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
    """The training sets of leave-one-level-out.

    With more than ALL_LEVELS levels, each level is paired with SOME_LEVELS others spread over the range instead of with
    all of them: inner scores are averages, and n(n−1)/2 trainings would cost more than they tell.

    Args:
        levels: n.
        inner: whether the inner layer is wanted too.

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
    training = [levels_kept(levels, i) for i in range(levels)]
    targets = [np.array([i]) for i in range(levels)]
    pairs = np.full((levels, levels), -1)
    pairs[everything, everything] = everything
    if inner:
        for i in range(levels):
            for j in _partners(i, levels):
                pairs[i, j] = pairs[j, i] = len(training)
                training.append(levels_kept(levels, i, j))
                targets.append(np.array([i, j]))
    return NestedSplits(levels, training, targets, pairs)


def _partners(level: int, levels: int) -> list[int]:
    """Partners j of ``level`` for which the set without both is trained here (each pair once)."""
    if levels <= ALL_LEVELS:
        return list(range(level + 1, levels))
    offsets = np.unique(np.linspace(1, (levels - 1) // 2, SOME_LEVELS // 2).round().astype(int))
    return [int((level + offset) % levels) for offset in offsets]
