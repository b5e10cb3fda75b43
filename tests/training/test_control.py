"""What each model of a stack has to itself: rates, rest, loss scale, and the way back. The others never notice."""

from __future__ import annotations

import pytest
import torch

from geonode.errors import TrainingError
from geonode.training import BatchSource, build_problem, train
from geonode.training.chunks import select
from geonode.training.loss import losses
from geonode.training.steps import StackSteps, train_stack

BLIND = "metric.network.mlp.biases.2"  # scales every length alike: no data loss sees it, Adam makes steps of rounding


def _trained(ode):
    return {name: p.detach().clone() for name, p in ode.named_parameters() if not name.startswith("warp.")}


def _problem(folds, assay, config, dtype=torch.float64):
    return build_problem(folds, assay.wavelengths, config).to("cpu", dtype)


def _away(ode, models=None):
    """The model away from its least-squares start, where nothing is left to learn."""
    with torch.no_grad():
        for number, parameter in enumerate(p for _, p in ode.named_parameters() if p.requires_grad):
            draws = torch.Generator().manual_seed(number)
            noise = torch.randn(3, *parameter.shape[1:], generator=draws, dtype=torch.float64).to(parameter)
            parameter += 0.1 * (noise if models is None else noise[models])
    return ode


def _alone(problem, config, m, **options):
    """Model m of the stack by itself."""
    row = select(problem, m, 1)
    return _trained(train(row, config, seed=4, ode=_away(row.build_model(config, 4 + m), [m]), **options))


def test_rates_and_patience_of_each_model_are_as_if_it_were_alone(folds, assay, small):
    config = small.replace(epochs=15)
    problem = _problem(folds, assay, config)
    rates = torch.tensor([[3e-3, 1e-3], [1e-1, 1e-1], [1e-6, 1e-7]], dtype=torch.float64)
    seen = []
    start = _away(problem.build_model(config, 4))
    stacked = _trained(train(problem, config, seed=4, ode=start, rates=rates, patience=2, report=seen.append))
    (outcome,) = seen
    assert len(set(outcome.epochs.tolist())) > 1, "every model rested at the same epoch: the test would show nothing"
    assert not outcome.rollbacks.any() and not outcome.skipped.any()
    for m in range(3):
        alone = _alone(problem, config, m, rates=rates[m : m + 1], patience=2, report=seen.append)
        assert seen[-1].epochs.item() == outcome.epochs[m]
        for name, value in alone.items():
            if name != BLIND:
                torch.testing.assert_close(stacked[name][m], value[0], rtol=0, atol=1e-10, msg=name)
    plain = _trained(train(problem, config, seed=4, ode=_away(problem.build_model(config, 4))))
    assert any(not torch.equal(plain[name], value) for name, value in stacked.items())


def _poisoned(model, when, value=float("nan"), gradient_only=False):
    """Losses that are no number for one model in the calls ``when``; or whose gradient alone is not finite."""
    calls = [-1]

    def function(ode, batch, weights):
        calls[0] += 1
        terms = losses(ode, batch, weights)
        if calls[0] in when:
            factor = torch.ones(ode.models, dtype=batch.target.dtype)
            factor[model] = value
            if gradient_only:
                terms["reconstruction"].register_hook(lambda gradient: gradient * factor)
            else:
                terms["reconstruction"] = terms["reconstruction"] * factor
        return terms

    return function


def _stack(problem, config, function, **options):
    ode = problem.build_model(config, 4)
    outcome = train_stack(ode, BatchSource(problem, ode.table, config, 4), config, function=function, **options)
    return _trained(ode), outcome


def test_a_loss_that_is_no_number_sets_its_own_model_back_and_no_other(folds, assay, small):
    config = small.replace(epochs=12)
    problem = _problem(folds, assay, config)
    usual, _ = _stack(problem, config, losses)
    # the eighth epoch is poisoned; the look after the tenth sets model 1 back to where it was after the fifth
    after, outcome = _stack(problem, config, _poisoned(1, {7}))
    assert outcome.rollbacks.tolist() == [0, 1, 0] and outcome.skipped.tolist() == [0, 1, 0]
    assert outcome.warnings() == [
        "The loss of model 1 was not finite: back to its last good state with half the learning rate (1 of 3 "
        "roll-backs)."
    ]
    outcome.require_finite()
    for name, value in after.items():
        assert torch.isfinite(value).all()
        assert torch.equal(value[[0, 2]], usual[name][[0, 2]]), name
    assert any(not torch.equal(value[1], usual[name][1]) for name, value in after.items())


def test_the_last_good_state_is_what_it_goes_back_to(folds, assay, small):
    config = small.replace(epochs=10)
    problem = _problem(folds, assay, config)
    at_five = []

    def watching(ode, batch, weights):
        at_five.append([p.detach().clone() for _, p in sorted(_trained(ode).items())])
        return _poisoned(2, {0}, gradient_only=True)(ode, batch, weights) if len(at_five) == 8 else losses(
            ode, batch, weights
        )  # fmt: skip

    after, outcome = _stack(problem, config, watching)
    assert outcome.rollbacks.tolist() == [0, 0, 1]
    for (name, value), then in zip(sorted(after.items()), at_five[5], strict=True):
        assert torch.equal(value[2], then[2]), name


def test_three_roll_backs_are_the_end_for_that_model(folds, assay, small):
    config = small.replace(epochs=40)
    problem = _problem(folds, assay, config)
    usual, _ = _stack(problem, config, losses)
    after, outcome = _stack(problem, config, _poisoned(0, range(1000)))
    assert outcome.given_up.tolist() == [True, False, False]
    assert outcome.epochs.tolist() == [20, 40, 40]  # looks after 5, 10, 15 set it back, the one after 20 gives it up
    with pytest.raises(TrainingError, match=r"model 0 \(of 3\) is not finite, and 3 roll-backs"):
        outcome.require_finite()
    for name, value in after.items():
        assert torch.equal(value[1:], usual[name][1:]), name


def test_one_models_overflow_halves_its_scale_and_skips_no_other(folds, assay, small):
    config = small.replace(precision="16-mixed", epochs=4, scaler_init=8.0)
    problem = _problem(folds, assay, config, torch.float32)
    usual, none = _stack(problem, config, losses)
    assert not none.skipped.any()
    after, outcome = _stack(problem, config, _poisoned(1, {1}, float("inf"), gradient_only=True))
    assert outcome.skipped.tolist() == [0, 1, 0] and not outcome.rollbacks.any()
    for name, value in after.items():
        assert torch.equal(value[[0, 2]], usual[name][[0, 2]]), name
    assert any(not torch.equal(value[1], usual[name][1]) for name, value in after.items())


def test_gradients_do_not_depend_on_the_loss_scale(folds, assay, small):
    """Norms are of unscaled gradients; a scale at which half precision overflows is brought down, step by step."""
    config = small.replace(precision="16-mixed", epochs=8)
    problem = _problem(folds, assay, config, torch.float32)

    def norms(**changes):
        own = config.replace(**changes)
        ode = _away(problem.build_model(own, 4))
        return StackSteps(ode, BatchSource(problem, ode.table, own, 4), own).take(0, 0).clone()

    exact = norms(precision="32-true")
    for scale in (1.0, 2.0**10):
        torch.testing.assert_close(norms(scaler_init=scale), exact, rtol=2e-2, atol=0)
    assert not torch.equal(norms(scaler_init=1.0), exact), "nothing ran in half precision"
    after, outcome = _stack(problem, config.replace(scaler_init=2.0**120), losses)
    assert not outcome.rollbacks.any() and outcome.skipped.min() > 0
    assert all(torch.isfinite(value).all() for value in after.values())


def test_recomputing_in_parts_is_the_same_training(folds, assay, small):
    for changes in ({}, {"flow": "velocity", "batch_size": 8, "micro_batch": 4, "wavelengths_per_step": 7}):
        config = small.replace(**changes)
        problem = _problem(folds, assay, config)
        kept, parts = train(problem, config), train(problem, config, recompute=4)
        for name, value in _trained(kept).items():
            if name != BLIND:
                torch.testing.assert_close(_trained(parts)[name], value, rtol=0, atol=1e-9, msg=name)
