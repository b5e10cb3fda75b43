"""Mega-batches are as large as they are asked for, and every pair has its part in a step however it is cut."""

from __future__ import annotations

import pytest
import torch

from geonode.config import GeodesicConfig
from geonode.errors import InputError
from geonode.training import BatchSource, build_problem, fit_gp, losses
from geonode.training.batches import step_counts
from geonode.training.steps import LossStep


def _source(assay, config):
    problem = build_problem([fit_gp(assay)], assay.wavelengths, config).to("cpu", torch.float64)
    ode = problem.build_model(config, 0)
    return ode, BatchSource(problem, ode.table, config, 3)


@pytest.mark.parametrize(
    "batch, micro, steps, accumulate, updates",
    [
        (2048, 256, 8, 8, 1),  # the original recipe with six standards: 30 pairs, repeated
        (64, 16, 4, 4, 1),
        (None, 7, 5, 5, 1),
        (8, 4, 8, 2, 4),  # the last optimiser step has six pairs
        (30, None, 1, 1, 1),
    ],
)
def test_what_runs_is_what_the_settings_say(assay, small, batch, micro, steps, accumulate, updates):
    config = small.replace(flow="velocity", batch_size=batch, micro_batch=micro, teacher=False)
    _, source = _source(assay, config)
    assert (source.steps_per_epoch, source.accumulate, source.updates_per_epoch) == (steps, accumulate, updates)
    if batch is not None:
        assert config.accumulate == accumulate
    drawn = [source.draw(1, step) for step in range(steps)]
    counts = torch.zeros(source.phi.shape[1], source.phi.shape[1], dtype=torch.long)
    for starts, ends, _ in drawn:
        counts.index_put_((starts[0], ends[0]), torch.ones_like(starts[0]), accumulate=True)
    taken = counts[counts > 0]
    assert len(taken) == 30 and taken.max() - taken.min() <= 1 and int(taken.sum()) == max(batch or 30, 30)
    for update in range(updates):  # the shares of an optimiser step's micro-batches are its whole
        shares = [share for k, (*_, share) in enumerate(drawn) if k // accumulate == update]
        torch.testing.assert_close(torch.stack(shares).sum(0), torch.ones(1, dtype=torch.float64), rtol=1e-12, atol=0)


@pytest.mark.parametrize("flow", ["velocity", "free"])
@pytest.mark.parametrize("micro", [1, 7, 11])
def test_gradients_do_not_depend_on_how_a_step_is_cut(assay, small, flow, micro):
    """30 pairs in micro-batches that do not divide them, against the loss of all of them written at once."""
    whole = small.replace(flow=flow, batch_size=30, wavelengths_per_step=5, nodes=4)
    ode, source = _source(assay, whole)
    weights = whole.loss.at(0.5)
    parameters = [*ode.metric.parameters(), *ode.flow.parameters()]
    total = losses(ode, source.batch(2, 0), weights)["total"].sum()
    expected = torch.autograd.grad(total, parameters, allow_unused=True, materialize_grads=True)
    cut = BatchSource(source.problem, ode.table, _cut(whole, micro), 3)
    step = LossStep(ode, cut, cut.config)
    row = torch.tensor([weights[name] for name in step.names], dtype=torch.float64)
    found = [torch.zeros_like(p) for p in parameters]
    for number in range(cut.steps_per_epoch):
        part = step(row, *cut.draw(2, number)).sum()
        for sum_, grad in zip(
            found, torch.autograd.grad(part, parameters, allow_unused=True, materialize_grads=True), strict=True
        ):
            sum_ += grad
    assert cut.steps_per_epoch == -(-30 // micro)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-13)


def _cut(config, micro):
    """The same steps in micro-batches, without a batch size: they need not divide it."""
    return config.replace(batch_size=None, micro_batch=micro)


def test_a_micro_batch_that_would_have_no_effect_is_refused(small):
    for micro in (1, 4, 64):
        with pytest.raises(InputError, match=f"micro_batch={micro} cuts batches of pairs, and here a step takes all"):
            step_counts(6, GeodesicConfig(flow="path_independent", micro_batch=micro))
    assert step_counts(6, GeodesicConfig(flow="path_independent", micro_batch=5, batch_size=10)).accumulate == 2
