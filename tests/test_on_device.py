"""Predictions on a device: what `predict_spectra` gives on a CPU; a few graphs are kept, one a number of places."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import geonode
from geonode import GeodesicConfig
from geonode.data import simulate_assay
from geonode.errors import InputError
from geonode.on_device import GRAPHS, Predictor, predictor_of
from tests.tolerances import tolerance

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
SMALL = {"epochs": 2, "precision": "32-true", "metric_hidden": (6, 5), "flow_hidden": 8, "embedding": 3}
CONFIGS = {
    "pretrained": GeodesicConfig(),
    "gp": GeodesicConfig(predictor="gp"),
    "path_independent": GeodesicConfig(flow="path_independent", members=2, **SMALL),
    "without a warp": GeodesicConfig(flow="path_independent", warp=False, **SMALL),
    "velocity": GeodesicConfig(flow="velocity", **SMALL),
    "rk4": GeodesicConfig(flow="free", solver="rk4", ode_steps=4, **SMALL),
    "shot through a table of symbols": GeodesicConfig(
        flow="velocity", solver="rk4", path="shooting", christoffel="grid", ode_steps=3, newton_steps=2, **SMALL
    ),
}


@pytest.fixture(scope="module")
def assay():
    return simulate_assay(wavelengths=np.linspace(400.0, 700.0, 11).tolist())


@pytest.fixture(scope="module", params=CONFIGS)
def model(request, assay):
    return geonode.fit(assay, CONFIGS[request.param])


def asked(model, count=5, seed=0):
    """Concentrations of the served range in no order, standards and both ends among them."""
    low, high = model.served_range if model.config.predictor == "node" else model.calibrated_range
    inside = low + (high - low) * np.random.default_rng(seed).random(count)
    return np.concatenate([inside, model.gp.levels, [low, high]])


def predictor(model) -> Predictor:
    node = model.config.predictor == "node"
    return predictor_of(DEVICE, model.gp, *((model.flow, model.ode, model.problem) if node else ()))


def test_mean_and_std_are_those_of_the_cpu(model):
    there = predictor(model)
    kind = tolerance(torch.float64 if model.config.predictor == "gp" or model.flow else torch.float32, "solver")
    for seed in range(3):  # the first records, the next replay
        c = asked(model, seed=seed)
        for found, expected in zip(there(c), model.predict_spectra(c), strict=True):
            np.testing.assert_allclose(found, expected.values, rtol=kind["rtol"], atol=kind["atol"])
    assert there.dof == model.predict_spectra(c)[0].attrs["degrees_of_freedom"]


def test_one_concentration_and_many_are_predicted_alike(model):
    there, c = predictor(model), asked(model)
    together = there(c)
    for i in (0, 3, 7):
        for found, whole in zip(there(c[i : i + 1]), together, strict=True):
            np.testing.assert_allclose(found[0], whole[i], rtol=1e-5, atol=1e-6)


def test_results_are_the_callers_own(model):
    there, c = predictor(model), asked(model)
    first = [there(c) for _ in range(2)][1]
    kept = [x.copy() for x in first]
    there(c[::-1].copy())
    assert all(np.array_equal(a, b) for a, b in zip(first, kept, strict=True))


def test_what_the_flow_is_not_trained_for_is_refused_on_every_device(assay):
    model = geonode.fit(assay)
    model._device = torch.device("cuda")  # refused before any device is asked
    for c, said in ((100.0, "outside"), (1e6, "three ranges beyond")):
        with pytest.raises(InputError, match=said):
            model.predict_spectra([c])
    with pytest.raises(InputError, match="no neural flow"):
        geonode.fit(assay, CONFIGS["gp"]).predict_spectra([1.0], predictor="node")


def test_a_model_answers_on_the_cpu_again(assay):
    model = geonode.fit(assay)
    before = model.predict_spectra([10.0])[0]
    assert model.to("cpu") is model
    assert model.predict_spectra([10.0])[0].identical(before)


@pytest.mark.gpu
@pytest.mark.skipif(not CUDA, reason="no CUDA device here")
def test_on_a_gpu_graphs_are_recorded_and_few_are_kept(model):
    name = model.config.predictor
    expected = model.predict_spectra(asked(model))
    model.to("cuda")
    try:
        for found, theirs in zip(model.predict_spectra(asked(model)), expected, strict=True):
            np.testing.assert_allclose(found.values, theirs.values, **tolerance(torch.float32, "solver"))
            assert found.name == theirs.name and found.attrs == theirs.attrs
        there = model.on_device(name)
        for count in range(1, GRAPHS + 4):
            there(asked(model, count))
        assert len(there._graphs) == GRAPHS
        bits = [there(asked(model)) for _ in range(3)]
        assert all(np.array_equal(a, b) for a, b in zip(bits[1], bits[2], strict=True))
    finally:
        model.to("cpu")


def test_labels_are_those_of_the_places_asked_and_copies_are_apart(assay):
    model = geonode.fit(assay)
    mean, _ = model.predict_spectra([10.0, 30.0])
    again, std = model.predict_spectra([10.0, 30.0])
    assert again.identical(mean) and std.name == "std" and mean.name == "mean"
    again.attrs["units"], again.values[:] = "other", 0.0
    assert model.predict_spectra([10.0, 30.0])[0].identical(mean)
    with pytest.raises(ValueError, match="read-only"):
        again["extrapolated"].values[:] = True
    other, _ = model.predict_spectra([10.0, 20.0])
    assert other["concentration"].values.tolist() == [10.0, 20.0]
    by_process, _ = model.predict_spectra([10.0, 20.0], predictor="gp")
    assert by_process.attrs["degrees_of_freedom"] == model.gp.dof
