"""`GeodesicConfig`: the original recipe to the letter, JSON there and back, and one sentence for what cannot work."""

from __future__ import annotations

import dataclasses
import json

import pytest

from geonode.config import ALIASES, FlowConfig, GeodesicConfig, LossConfig, MetricConfig, PathConfig, TrainingConfig
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
        "solver": "rk4",
        "ode_steps": 20,
        "rtol": 1e-5,
        "atol": 1e-7,
        "teacher": False,
        "batch_size": 2048,
        "micro_batch": 256,
        "precision": "16-mixed",
        "scaler_init": 65536.0,
        "scaler_backoff": 0.5,
    }
    components = {"path": config.path.name, "flow": config.flow.name}
    assert {name: components.get(name) or getattr(config, name) for name in expected} == expected
    assert config.accumulate == 8
    assert {name for name, weight in config.loss.weights.items() if weight} == {"reconstruction"}


@pytest.mark.parametrize(
    ("setting", "word"),
    [
        ("christoffel", "finite_difference"),
        ("metric_lr", "1e-3"),
        ("newton_steps", "four stages"),
        ("ode_steps", "20 steps"),
        ("solver", 'solver="adjoint"'),
        ("flow", "GroupNorm"),
    ],
)
def test_where_the_blueprint_deviates_it_says_so(setting, word):
    assert setting in ALIASES or setting == "flow"
    assert word in (GeodesicConfig.blueprint.__doc__ or "")


def test_a_change_of_the_blueprints_loss_keeps_the_rest_of_the_recipe():
    config = GeodesicConfig.blueprint(loss={"smoothness": 0.5}, ode_steps=10, batch_size=30, micro_batch=30)
    assert {name: weight for name, weight in config.loss.weights.items() if weight} == {
        "reconstruction": 1.0,
        "smoothness": 0.5,
    }
    assert (config.path.ode_steps, config.accumulate, config.path.name) == (10, 1, "shooting")


def test_json_there_and_back_and_replace():
    config = GeodesicConfig(epochs=7, loss=LossConfig(smoothness=0.5, ramp=0.0), metric_hidden=(8, 4))
    assert GeodesicConfig.from_json(config.to_json()) == config
    assert config.replace(seed=3).seed == 3
    assert config.seed == 0


def test_regularisers_ramp_up_while_the_data_speak_first():
    weights = LossConfig(smoothness=2.0, bounds=4.0, ramp=0.2)
    assert weights.at(0.0)["smoothness"] == 0.0
    assert weights.at(0.1)["bounds"] == pytest.approx(2.0)
    assert weights.at(0.7)["smoothness"] == 2.0
    assert weights.at(0.0)["reconstruction"] == 1.0
    assert dataclasses.replace(weights, ramp=0.0).at(0.0)["bounds"] == 4.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"flow": "river"}, "flow='river' is not known; choose one of free, gradient, pretrained, path_independent"),
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
        ({"metric_hidden": 64}, "metric.hidden=64 must be a list"),
        ({"metric_hidden": ()}, "metric.hidden=() must be a list"),
        ({"loss": {"smooth": 1.0}}, "loss term='smooth' is not known; choose one of reconstruction, smoothness"),
        ({"solver": "euler"}, "solver='euler' is not known; choose one of quadrature, rk4, dopri5, adjoint"),
        ({"metric": "rubber"}, "metric='rubber' is not known; choose one of"),
        ({"path": "detour"}, "path='detour' is not known; choose one of arc_length, shooting"),
        ({"christoffel": "guess"}, "christoffel='guess' is not known; choose one of exact"),
        ({"predictor": "oracle"}, "predictor='oracle' is not known"),
        ({"training": {"epoch": 3}}, "Unknown setting 'training.epoch'; known settings of training are"),
        ({"flow": 3}, "flow=3 must be a FlowConfig"),
        ({"loss": "smoothness"}, "loss='smoothness' must be a LossConfig"),
        ({"metric": {"options": 3}}, "metric.options=3 must be a mapping"),
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


def test_an_unknown_keyword_is_a_type_error():
    with pytest.raises(TypeError, match="no setting 'epoch'"):
        GeodesicConfig(epoch=3)
    with pytest.raises(TypeError, match="no setting 'epoch'"):
        GeodesicConfig().replace(epoch=3)
    with pytest.raises(AttributeError, match="no setting 'epoch'"):
        GeodesicConfig().epoch  # noqa: B018


FLAT = {
    "warp": False,
    "metric_hidden": (8, 4),
    "table_nodes": 16,
    "newton_steps": 3,
    "ode_steps": 7,
    "flow_hidden": 5,
    "embedding": 2,
    "solver": "rk4",
    "christoffel": "finite_difference",
    "nodes": 9,
    "interval_nodes": 2,
    "rtol": 1e-3,
    "atol": 1e-4,
    "teacher": False,
    "collocation": 3,
    "margin": 0.5,
    "epochs": 7,
    "batch_size": 8,
    "micro_batch": 4,
    "wavelengths_per_step": 5,
    "metric_lr": 0.1,
    "flow_lr": 0.2,
    "metric_clip": 0.3,
    "flow_clip": 0.4,
    "weight_decay": 0.5,
    "precision": "64-true",
    "scaler_init": 2.0,
    "scaler_backoff": 0.25,
    "members": 3,
    "seed": 4,
    "folds": True,
}


def test_every_flat_name_sets_its_component_and_is_read_back():
    assert set(FLAT) == set(ALIASES)
    for config in (
        GeodesicConfig(**FLAT),
        GeodesicConfig().replace(**FLAT),
        GeodesicConfig.from_json(json.dumps(FLAT)),
    ):
        for name, value in FLAT.items():
            component, setting = ALIASES[name]
            assert getattr(getattr(config, component), setting) == getattr(config, name) == value, name


def test_components_and_flat_names_say_the_same():
    by_component = GeodesicConfig(
        metric=MetricConfig(hidden=(8,)),
        path=PathConfig(solver="rk4", ode_steps=5),
        flow=FlowConfig("velocity", embedding=4),
        loss=LossConfig(smoothness=0.5),
        training=TrainingConfig(epochs=3),
    )
    flat = GeodesicConfig(
        metric_hidden=(8,), solver="rk4", ode_steps=5, flow="velocity", embedding=4, loss={"smoothness": 0.5}, epochs=3
    )
    assert by_component == flat
    nested = json.loads(flat.to_json())
    assert sorted(nested) == ["flow", "loss", "metric", "path", "predictor", "training"]
    assert GeodesicConfig.from_json(
        json.dumps({"training": {"epochs": 3}}), "path_independent"
    ).training == TrainingConfig(epochs=3)


def test_a_change_keeps_the_rest_of_its_component():
    config = GeodesicConfig(flow_hidden=5, loss={"smoothness": 0.5})
    assert config.replace(flow="velocity").flow == FlowConfig("velocity", hidden=5)
    assert config.replace(flow={"embedding": 2}).flow == FlowConfig(hidden=5, embedding=2)
    assert config.replace(loss={"bounds": 0.25}).loss == LossConfig(smoothness=0.5, bounds=0.25)
    assert config.replace(flow=FlowConfig("velocity")).flow.hidden == 64


@pytest.mark.parametrize(
    ("settings", "name", "warp"),
    [
        ({}, "log_network", True),
        ({"warp": False}, "network", False),
        ({"metric_network": False}, "flat", True),
        ({"metric_network": False, "warp": False}, "flat", False),
        ({"metric": "network"}, "network", True),
        ({"metric": "log_network", "warp": False}, "log_network", False),
    ],
)
def test_warp_and_metric_network_name_the_metric_as_they_always_did(settings, name, warp):
    config = GeodesicConfig(**settings)
    assert (config.metric.name, config.metric.warp) == (name, warp)
    assert config.metric_network == (name != "flat")


def test_changing_the_warp_back_and_forth_takes_the_network_along():
    config = GeodesicConfig(flow="path_independent").replace(warp=False)
    assert config.metric.name == "network"
    assert config.replace(warp=True) == GeodesicConfig(flow="path_independent")
    assert config.replace(metric_network=False).replace(metric_network=True) == config
    assert config.replace(epochs=3).metric == config.metric


def test_settings_of_an_earlier_state_are_read():
    text = """{"warp": true, "metric_network": false, "metric_hidden": [16, 16], "path": "arc_length",
    "flow": "velocity", "solver": "quadrature", "epochs": 5, "loss": {"reconstruction": 1.0, "smoothness": 1e-05,
    "bounds": 0.01, "path_length": 0.0, "christoffel": 0.0, "ramp": 0.2}, "predictor": "gp"}"""
    config = GeodesicConfig.from_json(text)
    assert config == GeodesicConfig(
        metric=MetricConfig("flat", hidden=(16, 16)), flow="velocity", epochs=5, predictor="gp"
    )


@pytest.mark.parametrize(
    "own",
    [{"metric": "flat"}, {"warp": False}, {"solver": "rk4"}, {"path": "shooting", "solver": "rk4"}, {"flow_hidden": 8}],
)
def test_a_motion_of_ones_own_is_trained_on_the_standards(own):
    assert GeodesicConfig().flow.name == "pretrained"
    assert GeodesicConfig(**own).flow.name == GeodesicConfig().replace(**own).flow.name == "path_independent"


@pytest.mark.parametrize(
    "given",
    [{"epochs": 5}, {"flow_lr": 0.1}, {"members": 3}, {"precision": "64-true"}, {"loss": {"smoothness": 0.5}}]
    + [{"flow": "pretrained", **own} for own in ({"solver": "rk4"}, {"metric": "flat"}, {"embedding": 3})],
)
def test_settings_that_a_flow_without_training_would_pass_over_are_refused(given):
    with pytest.raises(InputError, match=r"would have no effect.*flow='path_independent'"):
        GeodesicConfig(**given)
    GeodesicConfig(predictor="gp", **{name: value for name, value in given.items() if name != "flow"})


def test_settings_of_before_the_pretrained_flow_mean_what_they_meant():
    assert GeodesicConfig.from_json('{"epochs": 3}', "path_independent").flow == FlowConfig()
    assert GeodesicConfig.from_json(GeodesicConfig().to_json(), "path_independent") == GeodesicConfig()
