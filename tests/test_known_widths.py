"""Tests may share widths of the posterior where all that they are made of is the same, and nowhere else."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from geonode.calibration import Calibration
from geonode.calibration.design import posterior_widths
from tests.calibration.assays import LEVELS, WAVE, monotone, noisy
from tests.known_widths import asked_of, widths_made_once

PLACES = np.array([5.0, 20.0])


def made(seed: int = 0, **options) -> Calibration:
    return Calibration(LEVELS, noisy(monotone, LEVELS, seed), WAVE, **options)


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return made()


def test_equal_standards_are_the_same_and_others_are_not(calibration):
    same = asked_of(calibration, PLACES, 1)
    assert asked_of(made(), PLACES, 1) == same
    others = [
        asked_of(made(seed=1), PLACES, 1),
        asked_of(made(concentration_std=np.full(len(LEVELS), 0.5)), PLACES, 1),
        asked_of(calibration, PLACES + 1e-9, 1),
        asked_of(calibration, PLACES, 2),
    ]
    assert same not in others and len({*others}) == len(others)


@pytest.mark.parametrize("name", ["q_limit", "highest", "has_blank", "declines"])
def test_what_verdicts_rest_on_counts(calibration, name, monkeypatch):
    before = asked_of(calibration, PLACES, 1)
    facts = calibration.facts
    other = {"q_limit": 2.0, "highest": 61.0, "has_blank": not facts.rules.has_blank, "declines": "not today"}
    changed = dataclasses.replace(facts, rules=dataclasses.replace(facts.rules, **{name: other[name]}))
    monkeypatch.setitem(vars(calibration), "facts", changed)
    assert asked_of(calibration, PLACES, 1) != before


def test_they_are_worked_out_once(calibration, monkeypatch):
    asked = []
    monkeypatch.setattr(posterior_widths, "_posterior_widths", lambda *given: asked.append(given) or len(asked))
    with widths_made_once():
        found = [posterior_widths._posterior_widths(one, PLACES, 1) for one in (calibration, made(), made(seed=1))]
    assert found == [1, 1, 2] and len(asked) == 2
