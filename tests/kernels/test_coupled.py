"""coupled_rk4 and coupled_shot: kernels against their reference in value and every gradient, and laws of the path."""

from __future__ import annotations

import importlib
from functools import partial

import pytest
import torch

import geonode_kernels as gk
from geonode_kernels import FlowUnits
from tests.kernels.common import check, draws, metric_weights, relative
from tests.tolerances import tolerance

integrate = importlib.import_module("geonode_kernels.geodesic_rk4")._launch
# models, pairs, wavelengths, hidden of the metric, hidden of the flow, steps
CASES = [
    (1, 1, 2, (3, 5), 1, 3),
    (2, 5, 3, (5, 17), 7, 2),
    pytest.param((2, 3, 131, (16, 16), 16, 1), marks=pytest.mark.gpu),
    pytest.param((1, 30, 601, (64, 64), 16, 20), marks=pytest.mark.gpu),
    pytest.param((1, 3, 33, (20, 30), 40, 5), marks=pytest.mark.gpu),
]
SHOOT = {"newton": 6, "stages": 3}


def inputs(device, models, pairs, width, hidden, units, seed=71):
    """c, v or end, λ [M, N], the metric's weights, and place, pace, shift, gain, level."""
    draw = draws(seed, device)
    n = pairs * width
    c, v = 0.5 + 0.5 * draw(models, n), 0.8 * draw(models, n)
    flow = [draw(models, units), draw(models, units), draw(models, units, width), draw(models, units), draw(models)]
    return [c, v, draw(models, n), *metric_weights(draw, models, *hidden), *flow]


def carried(*tensors, **options):
    return gk.coupled_rk4(*tensors[:9], FlowUnits(*tensors[9:]), **options)


def shot(*tensors, **options):
    return gk.coupled_shot(*tensors[:9], FlowUnits(*tensors[9:]), **options)[0]


@pytest.mark.parametrize("output", ["softplus", "exp"])
@pytest.mark.parametrize("case", CASES)
def test_the_coupled_ode_and_every_gradient(device, poisoned, case, output):
    options = {"steps": case[5], "output": output}
    arguments = inputs(device, *case[:5])
    kernel, plain = (partial(carried, **options, backend=backend) for backend in ("triton", "torch"))
    # a bias added to ln g scales every length alike: no geodesic sees it
    check(kernel, plain, arguments, constant=[8] if output == "exp" else [], largest=5e-6)


@pytest.mark.parametrize("function", [carried, shot])
def test_gradients_are_asked_at_the_nodes_of_paths_that_are_interpolated(device, poisoned, function):
    arguments = inputs(device, 1, 5, 8, (3, 5), 2)
    arguments = [arguments[0], arguments[0] + 0.3 * arguments[1], arguments[2], *(0.5 * t for t in arguments[3:])]
    if function is carried:
        arguments[1] = arguments[1] - arguments[0]
    options = {"steps": 6, **(SHOOT if function is shot else {})}
    ranges = integrate(*arguments[:3], arguments[3:9], 6, 0, 0, save=True)[2]
    assert bool((ranges != 0).all()) or function is shot  # of the shot, it is the velocity that decides
    kernel, plain = (partial(function, **options, backend=backend) for backend in ("triton", "torch"))
    check(kernel, plain, arguments, largest=3e-5)


@pytest.mark.parametrize("output", ["softplus", "exp"])
@pytest.mark.parametrize("case", CASES)
def test_the_coupled_ode_along_shot_paths_and_every_gradient(device, poisoned, case, output):
    options = {"steps": max(3, case[5]), **SHOOT, "output": output}
    arguments = inputs(device, *case[:5])
    kernel, plain = (partial(shot, **options, backend=backend) for backend in ("triton", "torch"))
    check(kernel, plain, arguments, constant=[8] if output == "exp" else [], largest=3e-5)


def test_one_walk_back_gives_what_the_shot_and_the_path_give_apart(device):
    arguments = inputs(device, 2, 5, 3, (5, 9), 4)
    leaves = [[t.detach().clone().requires_grad_() for t in arguments] for _ in range(2)]
    options = {"steps": 4, "output": "exp", "backend": "triton"}
    together = shot(*leaves[0], **options, **SHOOT)
    start, end, wavelength, *weights = leaves[1][:9]
    found = gk.geodesic_shoot(start, end, wavelength, *weights, **options, **SHOOT)
    apart = carried(start, found.velocity, wavelength, *leaves[1][3:], **options)
    torch.testing.assert_close(together, apart, **tolerance(torch.float32, "value"))
    grads = [torch.autograd.grad(out.square().sum(), own) for out, own in ((together, leaves[0]), (apart, leaves[1]))]
    for i, (a, b) in enumerate(zip(*grads, strict=True)):
        torch.testing.assert_close(a, b, **tolerance(torch.float32, "gradient"), msg=lambda text, i=i: f"{i}: {text}")


def test_a_flow_of_its_level_alone_changes_every_spectrum_by_it(device):
    arguments = inputs(device, 2, 3, 4, (5, 7), 3)
    arguments[12] = torch.zeros_like(arguments[12])
    expected = arguments[13][:, None].expand(2, 12)
    for function in (carried, partial(shot, **SHOOT)):
        torch.testing.assert_close(function(*arguments, steps=3, backend="triton"), expected, rtol=1e-6, atol=1e-6)


def test_a_flow_of_the_velocity_alone_integrates_to_the_distance(device):
    """With F = ε·tanh(v·k)/(ε k) → v for small k, ∫F dt = c(1) − c(0): what shooting was asked for."""
    arguments = inputs(device, 1, 5, 3, (5, 7), 1)
    k = 1e-3
    zero = torch.zeros(1, 1, device=device)
    arguments[9:] = [zero, zero + k, torch.zeros(1, 1, 3, device=device), zero + 1.0 / k, zero[:, 0]]
    found = shot(*arguments, steps=8, **SHOOT, backend="triton")
    torch.testing.assert_close(found, arguments[1] - arguments[0], rtol=1e-3, atol=1e-4)


def test_a_problem_without_a_geodesic_is_nan_and_leaves_none_in_any_gradient(device):
    leaves = inputs(device, 1, 5, 3, (5, 7), 4)
    clean = shot(*leaves, steps=3, **SHOOT, backend="triton")
    leaves[0] = leaves[0].clone()
    leaves[0][0, 4], leaves[0][0, 7] = torch.nan, torch.inf
    leaves = [t.detach().requires_grad_() for t in leaves]
    for backend in ("triton", "torch"):
        change, status = gk.coupled_shot(*leaves[:9], FlowUnits(*leaves[9:]), steps=3, **SHOOT, backend=backend)
        good = status == 0
        assert not bool(good[0, 4]) and not bool(good[0, 7]) and bool(good.sum() == 13)
        assert torch.equal(torch.isnan(change), ~good)
        if backend == "triton":
            assert torch.equal(change[good], clean[good])
        gradients = torch.autograd.grad(torch.where(good, change, 0.0).square().sum(), leaves)
        assert all(bool(torch.isfinite(g).all()) for g in gradients)


def test_a_second_walk_through_one_graph_gives_the_same_bits(device):
    leaves = [t.requires_grad_() for t in inputs(device, 1, 3, 3, (3, 3), 2)]
    for function in (carried, partial(shot, **SHOOT)):
        loss = function(*leaves, steps=3, backend="triton").square().sum()
        walks = [torch.autograd.grad(loss, leaves, retain_graph=True) for _ in range(2)]
        assert all(torch.equal(a, b) for a, b in zip(*walks, strict=True))


@pytest.mark.parametrize("precision", ["tf32", pytest.param("bf16", marks=pytest.mark.gpu)])
def test_the_coupled_ode_in_lower_precision(device, precision):
    arguments = inputs(device, 1, 11, 3, (16, 16), 8)
    got = carried(*arguments, steps=4, precision=precision, backend="triton")
    exact = carried(*(t.double() for t in arguments), steps=4, backend="torch")
    assert relative(got, exact) < (2e-3 if precision == "tf32" else 2e-2)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"units": 65}, "65 hidden units of the flow"),
        ({"hidden": (5, 129)}, "129 units"),
        ({"output": "square"}, "output='square' is unknown"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(device, change, sentence):
    sizes = {"models": 1, "pairs": 1, "width": 2, "hidden": (3, 3), "units": 2, **change}
    output = sizes.pop("output", "exp")
    with pytest.raises(gk.KernelError, match=sentence):
        carried(*inputs(device, **sizes), steps=2, output=output, backend="triton")
