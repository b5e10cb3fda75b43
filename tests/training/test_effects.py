"""The law of settings: each one changes a training, or `without_effect` names it, with the reason; never both, never
neither. Walked over every field of every component, for every kind of flow, solver, path and metric."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
import torch

import geonode
from geonode.config import GeodesicConfig
from geonode.data import simulate_assay
from geonode.training import build_problem, fit_gp, predict, train
from geonode.training.effects import COMPONENTS, sentences, without_effect
from geonode.training.precision import dtype_of
from geonode.training.terms import LOSSES

SMALL = {
    "metric": {"hidden": [3], "table_nodes": 10},
    "path": {"newton_steps": 4, "ode_steps": 6, "rtol": 0.1, "atol": 0.01, "nodes": 4},
    "training": {"epochs": 2, "members": 1, "precision": "64-true", "wavelengths_per_step": None},
}
RUNS = {
    "path_independent by quadrature": {"flow": "path_independent"},
    "path_independent by dopri5": {"flow": "path_independent", "solver": "dopri5"},
    "path_independent, flat": {"flow": "path_independent", "metric_network": False},
    "velocity by quadrature": {"flow": "velocity"},
    "velocity by adjoint, along shot paths": {"flow": "velocity", "solver": "adjoint", "path": "shooting"},
    "free by rk4, without warp and teacher": {"flow": "free", "solver": "rk4", "warp": False, "teacher": False},
    "free by rk4, along shot paths, in pairs": {"flow": "free", "solver": "rk4", "path": "shooting", "batch_size": 9},
}
SLOW = ("dopri5", "shot")
"""Of these the path's settings alone are walked: the rest is as in the runs beside them."""
OTHER = {
    "metric.hidden": [4],
    "metric.table_nodes": 12,
    "path.christoffel": "finite_difference",
    "path.newton_steps": 2,
    "path.ode_steps": 5,
    "path.nodes": 3,
    "path.interval_nodes": 2,
    "path.rtol": 1e-10,
    "path.atol": 1e-12,
    "flow.hidden": 5,
    "flow.embedding": 2,
    "loss.ramp": 0.7,
    "training.teacher": False,
    "training.collocation": 9,
    "training.margin": 0.5,
    "training.epochs": 4,
    "training.batch_size": 7,
    "training.micro_batch": 4,
    "training.wavelengths_per_step": 2,
    "training.metric_lr": 0.1,
    "training.flow_lr": 0.1,
    "training.metric_clip": 1e-5,
    "training.flow_clip": 1e-5,
    "training.weight_decay": 0.5,
    "training.precision": "32-true",
    "training.scaler_init": 2.0,
    "training.scaler_backoff": 0.25,
    "training.members": 2,
    "training.seed": 5,
}
"""One other value for each setting."""
NAMES = {"metric.name", "path.name", "path.solver", "flow.name", "metric.warp"}
"""They say which run it is."""
ELSEWHERE = {"metric.options", "path.options", "flow.options", "training.folds"}
"""Options that a class does not take are refused (`test_config`); folds are stacks of their own (`test_model`)."""
WEIGHTS = {f"loss.{name}": 0.5 for name in LOSSES}


@pytest.fixture(scope="module")
def gp():
    return fit_gp(simulate_assay([0.0, 20.0, 60.0], wavelengths=np.linspace(400.0, 600.0, 3).tolist(), seed=1))


@pytest.fixture(scope="module")
def found(gp):
    """Losses and spectra of a run, each made once."""
    seen = {}

    def of(config: GeodesicConfig) -> list[torch.Tensor]:
        text = config.to_json()
        if text not in seen:
            problem = build_problem([gp] * config.members, np.linspace(400.0, 600.0, 3), config)
            problem = problem.to("cpu", dtype_of(config))
            outcomes = []
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ode = problem.build_model(config, config.seed)
                _away(ode)
                train(problem, config, config.seed, ode=ode, report=outcomes.append)
                # of the losses the data's: a weight changes its own term wherever the metric is a constant
                seen[text] = [
                    outcomes[0].losses[..., 0],
                    predict(ode, problem, torch.tensor([[7.0, 33.0]] * config.members)),
                ]
        return seen[text]

    return of


def _away(ode: torch.nn.Module) -> None:
    """From where something is to be learned, and the metric bends."""
    with torch.no_grad():
        for number, parameter in enumerate(p for p in ode.parameters() if p.requires_grad):
            draws = torch.Generator().manual_seed(number)
            parameter += 0.3 * torch.randn(parameter.shape, generator=draws, dtype=torch.float64).to(parameter)


def changed(config: GeodesicConfig, name: str, value: object) -> GeodesicConfig:
    component, setting = name.split(".")
    return config.replace(**{component: {setting: value}})


def differs(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return any(a.shape != b.shape or not torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_every_setting_is_walked():
    every = {f"{kind.component}.{item.name}" for kind in COMPONENTS for item in dataclasses.fields(kind)}
    assert every - {"loss.weights"} == set(OTHER) | NAMES | ELSEWHERE


@pytest.mark.parametrize("run", RUNS)
def test_a_setting_changes_the_training_or_is_named(run, found):
    base, slow = GeodesicConfig(**SMALL).replace(**RUNS[run]), any(word in run for word in SLOW)
    if slow:
        base = base.replace(epochs=1)
    wrong = []
    for name, value in {**OTHER, **WEIGHTS}.items():
        if slow and not name.startswith("path."):
            continue
        if name == "loss.bounds" and base.metric.name in ("network", "log_network"):
            continue  # penalises what is met in a training that goes astray alone: `test_loss`
        if name == "training.micro_batch" and base.training.batch_size is None:
            continue  # changes nothing but memory (`test_batches`), and is refused where there is nothing to cut
        if name == "training.teacher" and not base.training.teacher:
            value = True
        config = changed(base, name, value)
        named = name in without_effect(config)
        if differs(found(base), found(config)) == named:
            wrong.append((name, "has no effect" if not named else "has an effect"))
    assert not wrong


@pytest.mark.parametrize(
    ("settings", "name", "why"),
    [
        ({"rtol": 1e-3}, "path.rtol", "solver='quadrature' does not take it"),
        ({"flow": "velocity", "scaler_init": 8.0}, "training.scaler_init", "precision='32-true' scales no loss"),
        ({"metric_network": False, "metric_lr": 1.0}, "training.metric_lr", "'flat' has no parameters to train"),
        ({"teacher": False, "collocation": 9}, "training.collocation", "nothing speaks between the standards"),
        ({"predictor": "gp", "epochs": 9}, "training.epochs", "predictor='gp' trains nothing"),
    ],
)
def test_a_run_says_so(settings, name, why):
    config = GeodesicConfig(**{"flow": "path_independent", **settings})
    (sentence,) = sentences(config)
    assert sentence.startswith(f"{name} has no effect here: ") and sentence.endswith(f"{why}; leave it out.")
    assay = simulate_assay([0.0, 20.0, 60.0], wavelengths=[400.0, 500.0])
    quick = config if "epochs" in settings else config.replace(epochs=1, members=1)
    with pytest.warns(UserWarning) as told:
        geonode.fit(assay, quick, device="cpu")
    assert sentence in [str(one.message) for one in told]


@pytest.mark.parametrize("flow", ["path_independent", "velocity", "free"])
def test_where_nothing_is_said_nothing_is_missing(flow):
    assert sentences(GeodesicConfig(flow=flow, epochs=7, seed=3, flow_lr=0.1)) == []
    half = GeodesicConfig(flow=flow, precision="16-mixed", scaler_init=8.0, scaler_backoff=0.25)
    assert sentences(half) == []
    assert sentences(GeodesicConfig.blueprint()) == []


@pytest.mark.parametrize("metric", ["euclidean", "power_law", "flat"])
def test_of_a_metric_without_a_network_nothing_is_trained(metric):
    settings = {"options": {"exponent": 2.0}} if metric == "power_law" else {}
    config = GeodesicConfig(flow="velocity", metric={"name": metric, "hidden": [3], **settings}, metric_lr=0.1)
    expected = {"metric.hidden", "training.metric_lr"}
    assert set(without_effect(config)) - {"metric.options"} == expected
