"""Stacked training: as each alone, deterministic, for every flow and solver; predictions go through the standards."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from geonode.calibration import GeodesicGP
from geonode.training import BatchSource, build_problem, fit_node_folds, predict, train
from geonode.training.chunks import select


@pytest.mark.smoke
@pytest.mark.parametrize("flow", ["path_independent", "velocity"])
def test_training_together_equals_training_alone(folds, assay, small, away, flow):
    """From the same start and the same draws every model equals itself alone, to rounding.

    Fifteen models: in smaller stacks even batched products round as single ones do. The constant of ln g̃ changes no
    prediction, its gradient is rounding alone, and AdamW makes steps of it.
    """
    small = small.replace(flow=flow, epochs=10)
    together = build_problem(folds * 5, assay.wavelengths, small).to("cpu", torch.float64)
    fresh = together.build_model(small, 5)
    start = {name: parameter.detach().clone() for name, parameter in fresh.named_parameters()}
    stacked = dict(train(together, small, seed=5, ode=fresh).named_parameters())
    assert any(not torch.equal(stacked[name], value) for name, value in start.items())
    for m in (0, 7, 14):
        row = select(together, m, 1)
        alone = row.build_model(small, 5 + m)
        with torch.no_grad():
            for name, parameter in _trained(alone):
                parameter.copy_(start[name][m : m + 1])
        for name, parameter in _trained(train(row, small, seed=5, ode=alone)):
            if name != "metric.network.mlp.biases.2":
                torch.testing.assert_close(
                    stacked[name][m], parameter[0], rtol=0, atol=1e-9, msg=f"{name} of model {m}"
                )


def _trained(ode):
    """Named parameters less the warp's, which is given."""
    return [(name, parameter) for name, parameter in ode.named_parameters() if not name.startswith("warp.")]


def test_the_flow_follows_its_teacher(folds, assay):
    from geonode.config import GeodesicConfig

    levels, means = assay.levels, assay.level_means()
    targets = [levels[[i]] for i in (0, 2, 5)]
    config = GeodesicConfig(epochs=30, table_nodes=24, wavelengths_per_step=None)
    predicted = fit_node_folds(folds, targets, assay.wavelengths, config)
    for gp, target, spectrum in zip(folds, targets, predicted, strict=True):
        teacher = gp.predict(target).mean
        assert np.sqrt(np.mean((spectrum - teacher) ** 2)) < 0.02 * means.std()


@pytest.mark.parametrize(
    "changes",
    [
        {"flow": "velocity"},
        {"flow": "free"},
        {"flow": "free", "solver": "dopri5"},
        {"solver": "rk4"},
        {"batch_size": 8, "micro_batch": 4},
        {"teacher": False},
        {"metric_network": False},
        {
            "warp": False,
            "solver": "rk4",
            "path": "shooting",
            "newton_steps": 2,
            "ode_steps": 3,
            "epochs": 2,
            "wavelengths_per_step": None,
        },
    ],
    ids=str,
)
def test_every_variant_trains_and_predicts_finite_spectra(folds, assay, small, away, changes):
    config = small.replace(epochs=6, batch_size=8, micro_batch=8, ode_steps=6, wavelengths_per_step=5)
    config = config.replace(**changes)
    problem = build_problem(folds[:2], assay.wavelengths, config).to("cpu", torch.float64)
    ode = problem.build_model(config, 0)
    before = {name: p.detach().clone() for name, p in ode.named_parameters()}
    trained = train(problem, config)
    after = dict(trained.named_parameters())
    assert any(not torch.equal(before[name], after[name]) for name in before)
    assert all(torch.isfinite(p).all() for p in after.values())
    spectra = predict(trained, problem, torch.tensor([[15.0, 33.0], [15.0, 33.0]], dtype=torch.float64))
    assert spectra.shape == (2, 2, 21)
    assert torch.isfinite(spectra).all()


def test_batches_are_keyed(folds, assay, small):
    config = small.replace(flow="velocity", batch_size=8, micro_batch=4, wavelengths_per_step=5)
    problem = build_problem(folds, assay.wavelengths, config).to("cpu", torch.float64)
    source = BatchSource(problem, problem.build_model(config, 0).table, config, seed=3)
    one, same, other = source.batch(2, 1), source.batch(2, 1), source.batch(2, 2)
    assert torch.equal(one.start, same.start) and torch.equal(one.index, same.index)
    assert not torch.equal(one.start, other.start)
    assert source.steps_per_epoch == 5 and source.accumulate == 2  # 20 ordered pairs of five levels


def test_predictions_outside_the_served_range_are_refused(assay, small):
    from geonode.errors import InputError

    gp = GeodesicGP().fit_levels(assay.levels, assay.level_means())
    problem = build_problem([gp], assay.wavelengths, small).to("cpu", torch.float64)
    ode = problem.build_model(small, 0)
    with pytest.raises(InputError, match="outside the range"):
        predict(ode, problem, torch.tensor([[1000.0]]))


def test_there_and_back_returns_to_the_start(assay, small):
    gp = GeodesicGP().fit_levels(assay.levels, assay.level_means())
    problem = build_problem([gp], assay.wavelengths, small).to("cpu", torch.float64)
    ode = train(problem, small)
    source = torch.rand(3, 21, dtype=torch.float64)
    start, end = torch.tensor([0.0, 10.0, 40.0]), torch.tensor([60.0, 10.0, 20.0])
    there = ode(source, start, end)
    back = ode(there, end, start)
    assert torch.equal(there[1], source[1])  # nothing moves, nothing changes
    assert (back - source).abs().max() < 1e-6
