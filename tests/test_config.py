"""`GeodesicConfig`: the original recipe to the letter, JSON there and back, and one sentence for what cannot work."""

from __future__ import annotations

import dataclasses
import json

import pytest

from geonode.config import GeodesicConfig, LossWeights
from geonode.errors import InputError


def test_blueprint_is_the_original_recipe():
    config = GeodesicConfig.blueprint()
    expected = {
        "warp": False,
        "metric_hidden": (64, 64),
        "path": "shooting",
        "newton_steps": 10,
        "flow": "free",
        "flow_hidden": 16,
        "embedding": 8,
        "solver": "adjoint",
        "rtol": 1e-5,
        "atol": 1e-7,
        "teacher": False,
        "batch_size": 2048,
        "micro_batch": 256,
        "precision": "16-mixed",
        "scaler_init": 65536.0,
        "scaler_backoff": 0.5,
    }
    assert {name: getattr(config, name) for name in expected} == expected
    assert config.accumulate == 8


def test_json_there_and_back_and_replace():
    config = GeodesicConfig(epochs=7, loss=LossWeights(smoothness=0.5, ramp=0.0), metric_hidden=(8, 4))
    assert GeodesicConfig.from_json(config.to_json()) == config
    assert config.replace(seed=3).seed == 3
    assert config.seed == 0


def test_regularisers_ramp_up_while_the_data_speak_first():
    weights = LossWeights(smoothness=2.0, bounds=4.0, ramp=0.2)
    assert weights.at(0.0)["smoothness"] == 0.0
    assert weights.at(0.1)["bounds"] == pytest.approx(2.0)
    assert weights.at(0.7)["smoothness"] == 2.0
    assert weights.at(0.0)["reconstruction"] == 1.0
    assert dataclasses.replace(weights, ramp=0.0).at(0.0)["bounds"] == 4.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"flow": "river"}, "flow='river' is not known; choose one of path_independent"),
        ({"precision": "8-bit"}, "precision='8-bit'"),
        ({"epochs": 0}, "epochs=0 is too small"),
        ({"margin": -0.1}, "margin=-0.1 is too small"),
        ({"loss": {"smoothness": -1.0}}, "loss.smoothness=-1.0"),
        ({"margin": float("nan")}, "margin=nan"),
        ({"path": "shooting"}, "solver='quadrature' needs path='arc_length'"),
        ({"flow": "free", "warp": False}, "has no quadrature"),
        ({"batch_size": 100, "micro_batch": 33}, "must be a multiple"),
        ({"epochs": "five"}, "epochs='five' must be a whole number"),
        ({"epochs": 2.5}, "epochs=2.5 must be a whole number"),
        ({"epochs": None}, "epochs=None must be a whole number"),
        ({"flow_lr": "1e-3"}, "flow_lr='1e-3' must be a number"),
        ({"warp": "no"}, "warp='no' must be true or false"),
        ({"metric_hidden": 64}, "metric_hidden=64 must be a list"),
        ({"metric_hidden": ()}, "metric_hidden=() must be a list"),
        ({"loss": {"smooth": 1.0}}, "Unknown setting 'loss.smooth'"),
        ({"loss": {"ramp": "slow"}}, "loss.ramp='slow' must be a number"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(changes, words):
    with pytest.raises(InputError) as error:
        GeodesicConfig(**changes)
    assert words in str(error.value)


def test_unknown_settings_are_refused_by_name():
    text = json.dumps({"epochs": 3, "epoch": 4})
    with pytest.raises(InputError, match="Unknown setting 'epoch'"):
        GeodesicConfig.from_json(text)
