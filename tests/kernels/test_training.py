"""The optimiser in one launch and the captured step."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import geonode_kernels as gk
from tests.kernels.common import draws
from tests.kernels.test_flow import default_arguments

SHAPES = ((3, 5), (5,), (7,))


def parameters(device, models=3, seed=9):
    draw = draws(seed, device)
    return [nn.Parameter(draw(models, *shape)) for shape in SHAPES]


def gradients(device, step, models=3):
    draw = draws(100 + step, device)
    return [draw(models, *shape, scale=4.0) for shape in SHAPES]


@pytest.mark.parametrize("backend", ["triton", "torch"])
@pytest.mark.parametrize("clip", [0.0, 0.7])
def test_flat_adamw_is_torchs_with_each_models_gradient_clipped_by_group(device, backend, clip):
    ours, theirs = parameters(device), parameters(device)
    groups = [{"params": ours[:2], "lr": 1e-2, "clip": clip}, {"params": ours[2:], "lr": 3e-3, "clip": clip}]
    flat = gk.FlatAdamW(groups, weight_decay=0.1, backend=backend)
    groups = [{"params": theirs[:2], "lr": 1e-2}, {"params": theirs[2:], "lr": 3e-3}]
    exact = torch.optim.AdamW(groups, weight_decay=0.1)
    for step in range(4):
        norms = flat.step(gradients(device, step))
        for p, g in zip(theirs, gradients(device, step), strict=True):
            p.grad = g
        for k, group in enumerate((theirs[:2], theirs[2:])):
            norm = sum(p.grad.flatten(1).square().sum(1) for p in group).sqrt()
            torch.testing.assert_close(norms[:, k], norm)
            if clip:
                for p in group:
                    p.grad *= (clip / norm).clamp(max=1.0).reshape(-1, *[1] * (p.ndim - 1))
        exact.step()
        if step == 1:
            flat.set_rates([5e-3, 5e-3])
            for group in exact.param_groups:
                group["lr"] = 5e-3
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_flat_adamw_refuses_what_it_cannot_lay_out(device):
    with pytest.raises(ValueError, match="two parameter groups"):
        gk.FlatAdamW([{"params": parameters(device), "lr": 1.0}] * 3)
    with pytest.raises(ValueError, match="leading model axis"):
        gk.FlatAdamW([{"params": [*parameters(device), nn.Parameter(torch.zeros(2, 2, device=device))], "lr": 1.0}])


class Step:
    """A whole training step of the default flow's loss."""

    def __init__(self, device):
        tensors = default_arguments(device)
        self.parameters = [nn.Parameter(t) for t in tensors[:10]]
        self.data = tensors[10:]
        groups = [{"params": p, "lr": 1e-2, "clip": 1.0} for p in (self.parameters[:6], self.parameters[6:])]
        self.optimizer = gk.FlatAdamW(groups, backend="triton")

    def __call__(self, target):
        data = [*self.data[:3], target, self.data[4]]
        loss = gk.default_flow_loss(self.parameters[:6], self.parameters[6:], *data, nodes=4, backend="triton")
        self.optimizer.step(torch.autograd.grad(loss.sum(), self.parameters))
        return loss.detach()


def test_a_captured_step_changes_what_the_step_itself_would(device):
    captured, plain = Step(device), Step(device)
    target = plain.data[3]
    replay = gk.CapturedStep(captured, [target], captured.optimizer.state_tensors())
    for p, q in zip(captured.parameters, plain.parameters, strict=True):
        assert torch.equal(p, q), "capture left a trace"
    for step in range(3):
        new = target * (1.0 + 0.1 * step)
        assert torch.equal(replay(new), plain(new))
    for p, q in zip(captured.parameters, plain.parameters, strict=True):
        assert torch.equal(p, q)


def test_training_lowers_the_loss(device):
    step = Step(device)
    first = step(step.data[3]).sum()
    for _ in range(5):
        last = step(step.data[3]).sum()
    assert last < 0.98 * first
