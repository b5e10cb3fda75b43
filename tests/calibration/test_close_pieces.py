"""Pieces of an answer that lie closer than it could tell apart are one; twins are two."""

from __future__ import annotations

import numpy as np
import pytest

from geonode_runtime.posterior.rules import joined
from geonode_runtime.remedies import VerdictRules
from geonode_runtime.sets import Component, ConcentrationSet, close_as_one
from geonode_runtime.verdicts import several

RULES = VerdictRules(0.0, 100.0, False, np.inf, np.inf)
LEVELS = np.array([0.0, 5.0, 20.0, 50.0, 100.0])


def a_set(*pieces: tuple[float, float, float, float]) -> ConcentrationSet:
    """Pieces of low, high, probability and standard deviation."""
    made = [Component(a, b, False, False, 0.5 * (a + b), 0.0, p, 0.5 * (a + b), s) for a, b, p, s in pieces]
    return ConcentrationSet(0.8, tuple(sorted(made, key=lambda c: -c.probability)), 0.0, 1.0)


WAYS = {"posterior": lambda one: joined(RULES, LEVELS, one), "profile": lambda one: close_as_one(one, 100.0)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("gap", [0.05, 0.4, 1.2])
def test_pieces_closer_than_a_standard_deviation_are_one(way, gap):
    found = WAYS[way](a_set((20.0, 24.0, 0.6, 1.3), (24.0 + gap, 25.0 + gap, 0.2, 0.3)))
    (piece,) = found.components
    assert (piece.low, piece.high, piece.estimate) == (20.0, 25.0 + gap, 22.0)
    assert piece.probability == pytest.approx(0.8) and not several(RULES, found, found)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("gap", "std"), [(0.4, 0.1), (1.5, 1.3), (2.5, 8.0), (30.0, 40.0)])
def test_pieces_further_apart_are_two(way, gap, std):
    found = WAYS[way](a_set((20.0, 24.0, 0.6, std), (24.0 + gap, 25.0 + gap, 0.2, std)))
    assert len(found.components) == 2 and "2 separate ranges" in several(RULES, found, found)


@pytest.mark.parametrize("way", WAYS)
def test_of_three_the_two_that_are_close_are_one(way):
    found = WAYS[way](a_set((20.0, 24.0, 0.3, 1.3), (24.4, 26.0, 0.2, 0.8), (60.0, 62.0, 0.5, 0.9)))
    assert [(c.low, c.high) for c in found.components] == [(20.0, 26.0), (60.0, 62.0)] or [
        (c.low, c.high) for c in found.components
    ] == [(60.0, 62.0), (20.0, 26.0)]
