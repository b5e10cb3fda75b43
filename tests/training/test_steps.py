"""Captured training steps: the same training as step by step, and refused with the reason where they cannot be had."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from geonode.errors import DeviceError
from geonode.training import BatchSource, build_problem, predict, steps, train
from geonode.training.loss import build_optimizer, clip_gradients, learning_rate, losses
from geonode.training.steps import StackSteps, train_stack
from geonode_kernels import CapturedStep

VARIANTS = [
    {},
    {"wavelengths_per_step": 7},
    {"flow": "velocity"},
    {"flow": "velocity", "batch_size": 5, "micro_batch": None},
    {"flow": "velocity", "batch_size": 8, "micro_batch": 4, "wavelengths_per_step": 7},
    {"flow": "velocity", "batch_size": 9, "micro_batch": 3},
    {"metric_network": False},
]


def _plainly(problem, config, seed):
    """The training as one would write it: torch's AdamW, gradients accumulated in .grad, weights as numbers."""
    ode = problem.build_model(config, seed)
    source = BatchSource(problem, ode.table, config, seed)
    optimizer = build_optimizer(ode)
    for epoch in range(config.epochs):
        fraction = epoch / config.epochs
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"] * learning_rate(fraction)
        for step in range(source.steps_per_epoch):
            terms = losses(ode, source.batch(epoch, step), config.loss.at(fraction))
            (terms["total"].sum() / source.accumulate).backward()
            if (step + 1) % source.accumulate == 0 or step + 1 == source.steps_per_epoch:
                for group in optimizer.param_groups:
                    clip_gradients(group["params"], getattr(config, f"{group['name']}_clip"))
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
    return ode


@pytest.mark.parametrize("changes", VARIANTS)
def test_the_step_that_is_captured_trains_as_the_plain_loop(folds, assay, small, changes):
    config = dataclasses.replace(small, **changes)
    problem = build_problem(folds, assay.wavelengths, config).to("cpu", torch.float64)
    plain = _plainly(problem, config, 3)
    ours = train(problem, config, seed=3)
    for (name, a), b in zip(ours.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9, msg=name)


class Recorded(CapturedStep):
    """What recording does to the state (warm-up runs, then everything put back), where there is no graph to record."""

    def __init__(self, step, inputs=(), state=(), warm_up=3):
        before = [tensor.clone() for tensor in state]
        for _ in range(warm_up):
            step(*inputs)
        with torch.no_grad():
            for tensor, value in zip(state, before, strict=True):
                tensor.copy_(value)
        super().__init__(step, inputs, state)


@pytest.mark.parametrize("changes", VARIANTS)
def test_recording_steps_in_the_middle_of_a_training_leaves_no_trace(folds, assay, small, monkeypatch, changes):
    monkeypatch.setattr(steps, "CapturedStep", Recorded)
    config = dataclasses.replace(small, **changes)
    problem = build_problem(folds, assay.wavelengths, config).to("cpu", torch.float64)
    plain = _plainly(problem, config, 3)
    ode = problem.build_model(config, 3)
    stack = StackSteps(ode, BatchSource(problem, ode.table, config, 3), config)
    stack._capture = True
    for epoch in range(config.epochs):
        for number in range(stack.source.steps_per_epoch):
            stack.take(epoch, number)
        stack.control.end_epoch(epoch, epoch + 1 == config.epochs)
    for (name, a), b in zip(ode.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9, msg=name)


@pytest.mark.parametrize(("first", "last"), [(True, True), (True, False), (False, False), (False, True)])
def test_what_a_step_changes_is_put_back_after_recording(folds, assay, small, first, last):
    """Warming up runs a step several times; all that it leaves behind must be in the state that is put back."""
    config = small.replace(flow="velocity", batch_size=8, micro_batch=4)
    problem = build_problem(folds, assay.wavelengths, config).to("cpu", torch.float64)
    ode = problem.build_model(config, 3)
    stack = StackSteps(ode, BatchSource(problem, ode.table, config, 3), config)
    stack.take(0, 0)
    owners = (stack.optimizer, stack.control)
    tensors = [v for owner in owners for name, v in vars(owner).items() if torch.is_tensor(v) and name != "norms"]
    before = [tensor.clone() for tensor in tensors]
    stack._step(first, last, *stack.loss.inputs(0, 1))
    kept = {tensor.data_ptr() for tensor in stack._state}
    changed = [a for a, b in zip(tensors, before, strict=True) if not torch.equal(a, b)]
    assert len(changed) >= (5 if last else 2) and all(tensor.data_ptr() in kept for tensor in changed)


@pytest.mark.gpu
@pytest.mark.parametrize("changes", VARIANTS)
def test_captured_training_on_a_gpu_equals_uncaptured(folds, assay, small, away, changes):
    config = dataclasses.replace(small, precision="32-true", epochs=6, **changes)
    problem = build_problem(folds, assay.wavelengths, config).to("cuda", torch.float32)
    spectra = []
    for backend in ("torch", "triton"):
        ode = train(problem, config, seed=3, backend=backend)
        spectra.append(predict(ode, problem, problem.levels.cpu()))
    # the bias of ln g̃ changes no spectrum, and Adam makes steps of its rounding: spectra are compared, not weights
    scale = (spectra[0] - problem.centre).abs().max()
    assert (spectra[0] - spectra[1]).abs().max() <= 1e-4 * scale


@pytest.mark.gpu
def test_captured_training_twice_gives_the_same_bits(folds, assay, small):
    config = dataclasses.replace(small, precision="32-true", wavelengths_per_step=7)
    problem = build_problem(folds, assay.wavelengths, config).to("cuda", torch.float32)
    once, again = (train(problem, config, seed=3, backend="triton") for _ in range(2))
    for a, b in zip(once.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)


def test_trained_parameters_own_their_memory(folds, assay, small):
    problem = build_problem(folds, assay.wavelengths, small).to("cpu", torch.float64)
    ode = problem.build_model(small, 3)
    train_stack(ode, BatchSource(problem, ode.table, small, 3), small)
    for parameter in ode.parameters():
        assert parameter.untyped_storage().nbytes() == parameter.numel() * parameter.element_size()


def test_a_request_that_cannot_be_met_is_refused_with_the_reason(folds, assay, small):
    problem = build_problem(folds, assay.wavelengths, small).to("cpu", torch.float64)
    with pytest.raises(DeviceError, match="on cpu"):
        train(problem, small, backend="triton")
    with pytest.raises(DeviceError, match="unknown"):
        train(problem, small, backend="cuda")
