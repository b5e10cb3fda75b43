"""Where a response turns back an answer says why it is wide and what to do: in the library, exported, on the page."""

from __future__ import annotations

import numpy as np
import pytest

import geonode
from geonode.calibration.inverse.turns import turns_of
from geonode.data import SpectralDataset
from geonode.report.browser.data import answer_data
from tests.calibration.assays import LEVELS, WAVE, folding, monotone, noisy, straight
from tests.export.in_torch import in_torch
from tests.report.test_answers import as_json, asked, needs_node

SAID = "the response turns back near 22.6, within the reported range"


@pytest.fixture(scope="module")
def model():
    data = SpectralDataset(noisy(folding, LEVELS, 1), LEVELS, WAVE, concentration_unit="ppb")
    return geonode.fit(data, geonode.GeodesicConfig(predictor="gp"))


def told(answer) -> list[str]:
    return [note for note in answer.notes if "turns back" in note]


@pytest.mark.parametrize("method", ["posterior", "profile"])
@pytest.mark.parametrize("c", [21.5, 22.4, 23.0])
def test_an_answer_around_the_turn_says_so_and_what_to_do(model, method, c) -> None:
    answer = model.quantify(noisy(folding, [c], 3)[0], method=method)
    (said,) = told(answer)
    assert answer.verdict == "quantified" and said.startswith(SAID) and "dilute or spike the sample" in said
    diluted = model.quantify(noisy(folding, [c], 3)[0], method=method, dilution=10.0)
    assert told(diluted) == [said]  # of what was in the cuvette, as every other note


@pytest.mark.parametrize("c", [5.0, 12.0, 45.0, 58.0])
def test_away_from_the_turn_nothing_is_said(model, c) -> None:
    assert told(model.quantify(noisy(folding, [c], 3)[0])) == []


def test_an_exported_model_says_the_same(model) -> None:
    spectrum = noisy(folding, [22.4], 3)[0]
    assert told(in_torch(model).quantify(spectrum)) == told(model.quantify(spectrum)) != []


@needs_node
def test_the_page_says_the_same(model) -> None:
    rows = noisy(folding, [22.4, 45.0], 3)
    plain = {"wavelengths": WAVE, "mask": None, "name": "the unknown", "options": {}}
    mine = asked(answer_data(model), [as_json(plain | {"values": row[None]}) for row in rows])
    for one, row in zip(mine, rows, strict=True):
        assert [note for note in one["notes"] if "turns back" in note] == told(model.quantify(row))


@pytest.mark.parametrize("truth", [monotone, straight])
@pytest.mark.parametrize("seed", range(3))
def test_a_response_that_goes_one_way_has_no_turn(truth, seed) -> None:
    made = geonode.Calibration(LEVELS, noisy(truth, LEVELS, seed), WAVE)
    assert made.facts.turns == ()


def test_turns_of_curves_that_are_known() -> None:
    c = np.linspace(0.0, 9.0, 181)
    once, twice = 100.0 * np.abs(c - 4.0), 60.0 * np.cos(c)
    flat = 100.0 * np.tanh(c) + 3.0 * np.sin(20.0 * c)  # a plateau with a ripple of less than a leg
    bent = np.stack([np.minimum(c, 5.0), np.maximum(c - 5.0, 0.0)], 1) * 50.0  # on to another form, by a right angle
    assert turns_of(c, once[:, None]) == pytest.approx([4.0], abs=0.06)
    assert turns_of(c, twice[:, None]) == pytest.approx(np.pi * np.arange(1, 3), abs=0.06)
    assert turns_of(c, flat[:, None]) == () and turns_of(c, bent) == () and turns_of(c, 0.0 * c[:, None]) == ()
