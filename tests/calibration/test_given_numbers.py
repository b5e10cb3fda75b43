"""What is no number is refused in one sentence that names the argument, by whatever function it is given to."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import geonode
from geonode.calibration import (
    Calibration,
    detection_limits,
    quality_check,
    resolution,
    suggest_standard,
    uncertainty_budget,
)
from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset
from geonode.errors import InputError
from geonode_runtime.given_numbers import as_number, as_numbers
from tests.calibration.assays import LEVELS, WAVE, monotone, noisy

SPECTRA = noisy(monotone, LEVELS, 1)
NO_NUMBERS = [["a"], "a", None, [[1.0, 2.0], [3.0]], [1.0 + 2.0j], [None], {}, object()]


@pytest.fixture(scope="module")
def model() -> geonode.model.GeodesicModel:
    return geonode.fit(SpectralDataset(SPECTRA, LEVELS, WAVE), GeodesicConfig(predictor="gp"))


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_no_number_is_refused_by_name(value):
    with pytest.raises(
        InputError, match=r"^concentrations must be (a number, or numbers in|real numbers, and complex)"
    ):
        as_numbers(value, "concentrations")
    with pytest.raises(InputError, match=r"^the level must be one number, but "):
        as_number(value, "the level")


@pytest.mark.parametrize("value", [15, 15.0, np.float32(15.0), torch.tensor(15.0, requires_grad=True), ["15"], [15]])
def test_what_is_one_is_taken(value):
    assert as_number(value, "it") == 15.0 and as_numbers(value, "it").dtype == np.float64


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_spectra_are_predicted_at_numbers(model, value):
    with pytest.raises(InputError, match=r"^concentrations must be"):
        model.predict_spectra(value)


CALLS = {
    "level": lambda made, x: made.quantify(SPECTRA[1], level=x),
    "dilution": lambda made, x: made.quantify(SPECTRA[1], dilution=x),
    "dilution_std": lambda made, x: made.quantify(SPECTRA[1], dilution_std=x),
    "a control": lambda made, x: quality_check(made, SPECTRA[1], x),
    "factor": lambda made, x: resolution(made, factor=x),
    "places": lambda made, x: resolution(made, [x]),
    "replicates": lambda made, x: detection_limits(made, replicates=x),
    "a budget": lambda made, x: uncertainty_budget(made, x),
    "candidates": lambda made, x: suggest_standard(made, candidates=x),
    "standards": lambda made, x: Calibration([x] * len(LEVELS), SPECTRA, WAVE),
    "their error": lambda made, x: Calibration(LEVELS, SPECTRA, WAVE, concentration_std=[x] * len(LEVELS)),
    "simulated": lambda made, x: geonode.simulate_assay([x]),
    "noise": lambda made, x: geonode.simulate_assay(noise=x),
}


@pytest.mark.parametrize("value", ["a", [None]])
@pytest.mark.parametrize("name", CALLS)
def test_every_function_refuses_it(model, name, value):
    with pytest.raises(InputError, match=r"must be|number"):
        CALLS[name](model.calibration, value)
