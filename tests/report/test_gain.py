"""A gain on an unknown of a response that folds may be read as another concentration: then the answer says that its set
does not hold the one behind the gain, in Python and on the page."""

from __future__ import annotations

import pytest

import geonode
from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset
from geonode.report.browser.data import answer_data
from geonode_runtime.causes.explainer import ELSEWHERE
from tests.calibration.assays import WAVE, noisy
from tests.report.test_answers import as_json, asked, compare, needs_node
from tests.report.test_untold import LEVELS, fold

GAINS = {(0.9, 19.8): True, (0.9, 14.2): True, (1.1, 42.3): True, (1.0, 19.8): False}
"""Gain and concentration, and whether the set that is reported misses it."""


def truth(c):
    return fold(c, 20.0, 30.0)


@pytest.fixture(scope="module")
def model() -> geonode.model.GeodesicModel:
    data = SpectralDataset(noisy(truth, LEVELS, 1), LEVELS, WAVE, concentration_unit="ppb", signal="absorbance")
    return geonode.fit(data, GeodesicConfig(predictor="gp"))


@pytest.mark.parametrize("dilution", [1.0, 5.0])
@pytest.mark.parametrize(("gain", "c"), GAINS)
def test_a_set_that_misses_what_the_cause_leads_to_says_so(model, gain, c, dilution):
    answer = model.quantify(gain * noisy(truth, [c], 101)[0], dilution=dilution)
    held = any(one.low <= c * dilution <= one.high for one in answer.verdict_components)
    assert (ELSEWHERE in answer.why) == GAINS[gain, c] == (not held)
    if not held:
        assert answer.explanation.cause == "scale" and answer.explanation.corrected == pytest.approx(c, rel=0.05)
        assert any("holds something that the standards do not" in note for note in answer.notes)


@needs_node
def test_so_does_the_page(model):
    asking = {"mask": None, "options": {}, "wavelengths": WAVE, "name": "u"}
    unknowns = [asking | {"values": gain * noisy(truth, [c], 101)} for gain, c in GAINS]
    for mine, one in zip(asked(answer_data(model), [as_json(one) for one in unknowns]), unknowns, strict=True):
        compare(model, mine, model.quantify(one["values"][0], name="u"))
