"""Bands of a model: `predict_interval` is the central interval of the prediction's Student t."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

import geonode
from geonode.data import simulate_assay
from geonode.data.labelled import half_width
from geonode.errors import InputError

BETWEEN = (5.0, 15.0, 25.0, 35.0, 50.0)


@pytest.fixture(scope="module")
def model():
    return geonode.fit(simulate_assay(seed=0))


@pytest.mark.parametrize("predictor", ["node", "gp"])
@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_the_interval_is_that_of_the_student_t(model, predictor, level):
    mean, std = model.predict_spectra(BETWEEN, predictor)
    low, high = model.predict_interval(BETWEEN, level, predictor)
    assert low.attrs == high.attrs == mean.attrs == std.attrs and low.coords.equals(mean.coords)
    dof = std.attrs["degrees_of_freedom"]
    scale = std.values[2, 300] * np.sqrt((dof - 2) / dof)
    expected = t(dof, mean.values[2, 300], scale).interval(level)
    assert (float(low[2, 300]), float(high[2, 300])) == pytest.approx(expected)


def test_the_interval_is_that_of_the_process_and_of_the_flow(model):
    for predictor, process in (("gp", model.gp), ("node", model.flow)):
        for own, theirs in zip(
            model.predict_interval(BETWEEN, 0.8, predictor), process.predict(BETWEEN).interval(0.8), strict=True
        ):
            np.testing.assert_allclose(own.values, theirs, rtol=1e-9)


@pytest.mark.parametrize("seeds", [range(4)])
def test_fresh_spectra_of_the_demo_lie_in_the_band_as_often_as_it_says(seeds):
    inside = []
    for seed in seeds:
        fitted = geonode.fit(simulate_assay(seed=seed))
        low, high = fitted.predict_interval(BETWEEN)
        fresh = simulate_assay(BETWEEN, seed=seed + 500).spectra
        inside.append(np.mean((low.values <= fresh) & (fresh <= high.values)))
    assert 0.7 <= np.mean(inside) <= 0.9, inside


@pytest.mark.parametrize("level", [0.0, 1.0, -0.2, 80.0])
def test_a_level_that_is_none_is_refused(model, level):
    with pytest.raises(InputError, match="level"):
        model.predict_interval(BETWEEN, level)


def test_a_standard_deviation_without_its_distribution_is_refused(model):
    _, std = model.predict_spectra(BETWEEN)
    with pytest.raises(InputError, match="degrees_of_freedom"):
        half_width(std.drop_attrs())
