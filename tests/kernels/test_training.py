"""The optimiser in one launch and the captured step."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import geonode_kernels as gk
from tests.kernels.common import draws, metric_weights
from tests.kernels.test_flow import flow_inputs

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


@pytest.mark.parametrize("backend", ["triton", "torch"])
def test_rates_loss_scale_and_mask_are_each_models_own(device, backend):
    """Model 0 by its own rate and loss scale, model 1 overflows in the second step, model 2 is asleep."""
    kept, alone = parameters(device), [nn.Parameter(p.detach()[:2].clone()) for p in parameters(device)]
    start = [p.detach().clone() for p in kept]
    flat = gk.FlatAdamW([{"params": kept, "lr": 1e-2, "clip": 0.7}], weight_decay=0.1, backend=backend)
    flat.rates.copy_(torch.tensor([[3e-3], [1e-2], [1e-2]]))
    flat.scale.copy_(torch.tensor([8.0, 1.0, 1.0]))
    flat.active.copy_(torch.tensor([1.0, 1.0, 0.0]))
    exact = []
    for m, rate in ((0, 3e-3), (1, 1e-2)):
        own = [p[m : m + 1].detach().clone().requires_grad_() for p in alone]
        exact.append(gk.FlatAdamW([{"params": own, "lr": rate, "clip": 0.7}], weight_decay=0.1, backend=backend))
    for step in range(3):
        given = gradients(device, step)
        for m in (0, 1):
            if (step, m) != (1, 1):
                exact[m].step([g[m : m + 1] for g in given])
        scaled = [g * flat.scale.reshape(-1, *[1] * (g.ndim - 1)) for g in given]
        if step == 1:
            scaled[1][1, 2] = float("inf") if backend == "torch" else float("nan")
        norms = flat.step(scaled)
        assert torch.isfinite(norms).all(1).tolist() == [True, step != 1, True]
    for k, p in enumerate(kept):
        for m in (0, 1):
            torch.testing.assert_close(p[m], exact[m].parameters[k][0], rtol=1e-6, atol=1e-7)
        assert torch.equal(p[2], start[k][2])
    assert flat.powers[:, 0].tolist() == pytest.approx([0.9**3, 0.9**2, 1.0])


def test_gradients_accumulate_to_one_update(device):
    once, twice = (gk.FlatAdamW([{"params": parameters(device), "lr": 1e-2}]) for _ in range(2))
    given = gradients(device, 0)
    once.step(given)
    for more in (False, True):
        twice.gather([0.5 * g for g in given], add=more)
    twice.update()
    torch.testing.assert_close(once.flat, twice.flat, rtol=1e-6, atol=1e-7)


def test_flat_adamw_refuses_what_it_cannot_lay_out(device):
    with pytest.raises(ValueError, match="two parameter groups"):
        gk.FlatAdamW([{"params": parameters(device), "lr": 1.0}] * 3)
    with pytest.raises(ValueError, match="leading model axis"):
        gk.FlatAdamW([{"params": [*parameters(device), nn.Parameter(torch.zeros(2, 2, device=device))], "lr": 1.0}])


class Step:
    """A whole training step of the default flow out of its kernels: density, arc length, loss, update."""

    def __init__(self, device, models=2, pairs=7, width=11, nodes=5):
        draw = draws(8, device)
        metric = metric_weights(draw, models, 5, 7)
        flow = flow_inputs(device, models, pairs, width, 6, 4)[2:]
        self.parameters = [nn.Parameter(t) for t in (*metric, *flow)]
        self.points = draw(models, nodes * width), draw(models, nodes * width)
        self.phi = 1.5 + draw(models, 2 * pairs + 1, nodes)
        self.target, self.weight = draw(models, pairs, width), 0.5 + 0.5 * draw(models, pairs)
        groups = [{"params": p, "lr": 1e-2, "clip": 1.0} for p in (self.parameters[:6], self.parameters[6:])]
        self.optimizer = gk.FlatAdamW(groups, backend="triton")

    def __call__(self, target):
        models, _, nodes = self.phi.shape
        density = gk.metric_density(*self.points, *self.parameters[:6], backend="triton").view(models, nodes, -1)
        ends = gk.arc_length(self.phi, density, backend="triton").view(models, 2, -1, density.shape[2])
        loss = gk.flow_loss_of_ends(ends, *self.parameters[6:], target, self.weight, nodes=4, backend="triton")
        gradients = torch.autograd.grad(loss.sum(), self.parameters, materialize_grads=True, allow_unused=True)
        self.optimizer.step(gradients)
        return loss.detach()


def test_a_captured_step_changes_what_the_step_itself_would(device):
    captured, plain = Step(device), Step(device)
    target = plain.target
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
    first = step(step.target).sum()
    for _ in range(5):
        last = step(step.target).sum()
    assert last < 0.98 * first
