"""Nested leave-one-level-out: every outer and inner pair is covered, and nothing leaks."""

from __future__ import annotations

import numpy as np
import pytest

from geonode.calibration.leave_out import ALL_LEVELS, SOME_LEVELS, nested_leave_one_level_out
from geonode.errors import InputError


@pytest.mark.parametrize("n", [4, 6, 11])
def test_every_pair_once(n: int) -> None:
    splits = nested_leave_one_level_out(n)
    assert len(splits.training) == n + n * (n - 1) // 2
    for training, target in zip(splits.training, splits.targets, strict=True):
        assert not set(training) & set(target)
        assert set(training) | set(target) == set(range(n))
    for i in range(n):
        found = splits.inner(i)
        assert [j for j, _, _ in found] == [j for j in range(n) if j != i]
        for j, number, position in found:
            assert splits.targets[number][position] == j
            assert i not in splits.training[number] and j not in splits.training[number]


def test_many_levels_are_paired_sparsely_but_evenly() -> None:
    n = ALL_LEVELS + 26
    splits = nested_leave_one_level_out(n)
    assert {len(splits.inner(i)) for i in range(n)} == {SOME_LEVELS}
    assert len(splits.training) == n + n * SOME_LEVELS // 2


def test_outer_only_and_too_few() -> None:
    splits = nested_leave_one_level_out(3, inner=False)
    assert not splits.has_inner and np.array_equal(splits.training[1], [0, 2])
    with pytest.raises(InputError, match="at least 4"):
        nested_leave_one_level_out(3)
    with pytest.raises(InputError, match="at least 3"):
        nested_leave_one_level_out(2, inner=False)
