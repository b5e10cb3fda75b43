"""What torch may ask of the ops as operators: opcheck, capture by torch.compile and CUDA graphs, forward mode, second
derivatives."""

from __future__ import annotations

from functools import partial

import pytest
import torch

import geonode_kernels as gk
from geonode_kernels import _dispatch
from tests.kernels.common import draws, metric_weights
from tests.kernels.test_flow import flow_inputs
from tests.kernels.test_velocity import loss_inputs, path_inputs
from tests.tolerances import tolerance


def calls(device, steps=None):
    """name → (function of tensors with ``backend=``, tensors that may want a gradient, constant tensors).

    ``steps``: of every path; from six on Γ may be interpolated along it.
    """
    draw = draws(51, device)
    weights = metric_weights(draw, 2, 3, 5)
    points = [draw(2, 7) for _ in range(3)]
    units = [draw(2, 2), draw(2, 2), draw(2, 2, 7), draw(2, 2), draw(2)]
    flow = flow_inputs(device, 2, 4, 3, 5, 4)
    loss = [draw(2, 4, 3), 0.5 + 0.5 * draw(2, 4)]
    grid = lambda c, w, t, **k: gk.christoffel_grid(t, c, w, (-1.0, 1.0), (-1.0, 1.0), **k)  # noqa: E731
    (ends, half, *series), where = path_inputs(device, 2, 4, 3, 1, 3, 5)
    return {
        "path_points": (partial(gk.path_points, nodes=3), [ends, half, *series[:2]], [series[2], *where.values()]),
        "velocity_loss": (gk.velocity_loss, *(lambda t: (t[:8], t[8:]))(loss_inputs(device, 2, 4, 3, 5, 4, 0))),
        "metric_christoffel": (gk.metric_christoffel, [*points[:2], *weights], []),
        "metric_value": (gk.metric_value, [*points[:2], *weights], []),
        "metric_density": (gk.metric_density, [*points[:2], *weights], []),
        "geodesic_rk4": (partial(gk.geodesic_rk4, steps=steps or 6), [*points, *weights], []),
        "geodesic_states": (partial(gk.geodesic_states, steps=steps or 3), [*points, *weights], []),
        "geodesic_shoot": (
            partial(gk.geodesic_shoot, steps=steps or 3, newton=4, stages=2),
            [0.5 * points[0], *points[1:], *weights],
            [],
        ),
        "coupled_rk4": (coupled(gk.coupled_rk4, steps=steps or 2), [*points, *weights, *units], []),
        "coupled_shot": (
            coupled(gk.coupled_shot, steps=steps or 3, newton=4, stages=2),
            [0.5 * points[0], *points[1:], *weights, *units],
            [],
        ),
        "flow_quadrature": (partial(gk.flow_quadrature, nodes=4), flow, []),
        "flow_loss": (partial(gk.flow_loss_of_ends, nodes=4), [torch.stack(flow[:2], 1), *flow[2:]], loss),
        "arc_length": (lambda d, p, **k: gk.arc_length(p, d, **k), [1.5 + draw(2, 4, 3)], [1.5 + draw(2, 6, 4)]),
        "christoffel_fd": (
            partial(gk.christoffel_fd, step=0.1),
            [*(1.5 + draw(6) for _ in range(3)), 0.1 * draw(6)],
            [],
        ),
        "christoffel_grid": (grid, [0.9 * draw(2, 6), 0.9 * draw(2, 6)], [draw(2, 5, 4)]),
    }


def coupled(function, **options):
    """An op of the coupled ODE as a function of tensors alone."""
    return lambda *t, **k: function(*t[:9], gk.FlowUnits(*t[9:]), **options, **k)


NAMES = sorted(calls("cpu"))


def first(result):
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize("name", NAMES)
def test_the_registered_operator_passes_opcheck(device, name, monkeypatch):
    """Schema, fake tensors and autograd registration of the very call the function makes."""
    function, tensors, constant = calls(device)[name]
    seen = []
    original = torch.library.CustomOpDef.__call__
    monkeypatch.setattr(
        torch.library.CustomOpDef, "__call__", lambda op, *a, **k: (seen.append((op, a)), original(op, *a, **k))[1]
    )
    function(*(t.detach().requires_grad_() for t in tensors), *constant, backend="triton")
    monkeypatch.undo()
    assert len(seen) == 1
    op, arguments = seen[0]
    torch.library.opcheck(op, arguments, test_utils=["test_schema", "test_autograd_registration", "test_faketensor"])


@pytest.mark.parametrize("name", NAMES)
def test_torch_compile_captures_it_whole_with_its_gradient(device, name):
    function, tensors, constant = calls(device)[name]

    def run(call):
        leaves = [t.detach().requires_grad_() for t in tensors]
        out = first(call(*leaves, *constant, backend="triton"))
        return out.detach(), torch.autograd.grad(out.square().sum(), leaves)

    torch.compiler.reset()
    compiled = torch.compile(function, fullgraph=True, backend="inductor" if device == "cuda" else "aot_eager")
    # Inductor adds up a gradient that is spread over a row in an order of its own; everything else is the op's.
    exact = tolerance(torch.float32, "value") if device == "cuda" else {"rtol": 0.0, "atol": 0.0}
    torch.testing.assert_close(run(compiled), run(function), **exact)


@pytest.mark.parametrize("name", NAMES)
def test_forward_mode_is_right_or_refused(device, name):
    function, tensors, constant = calls(device)[name]
    generator = torch.Generator().manual_seed(3)
    tangents = [torch.randn(t.shape, generator=generator).to(t) for t in tensors]
    with torch.autograd.forward_ad.dual_level():
        duals = [torch.autograd.forward_ad.make_dual(t, v) for t, v in zip(tensors, tangents, strict=True)]
        with pytest.raises(gk.KernelError, match="forward-mode"):
            function(*duals, *constant, backend="triton")
        got = torch.autograd.forward_ad.unpack_dual(first(function(*duals, *constant))).tangent
    leaves = [t.detach().double().requires_grad_() for t in tensors]
    out = first(function(*leaves, *(c.double() for c in constant), backend="torch"))
    up = torch.randn(out.shape, generator=generator, dtype=torch.float64).to(out)
    gradients = torch.autograd.grad(out, leaves, up, allow_unused=True, materialize_grads=True)
    expected = sum((g * v).sum() for g, v in zip(gradients, tangents, strict=True))
    torch.testing.assert_close((got.double() * up).sum(), expected, rtol=1e-4, atol=1e-4)


ONCE = ["path_points", "velocity_loss", "flow_loss"]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ONCE])
def test_a_second_derivative_is_that_of_plain_torch(device, name):
    """Through the reference, which is where the gradient's own gradient comes from, and `paths_taken` says so."""
    function, tensors, constant = calls(device)[name]

    def penalty(dtype, backend):
        leaves = [t.detach().to(dtype).requires_grad_() for t in tensors]
        out = first(function(*leaves, *(t.to(dtype) for t in constant), backend=backend))
        gradients = torch.autograd.grad(out.square().sum(), leaves, create_graph=True, allow_unused=True)
        size = sum(g.square().sum() for g in gradients if g is not None)
        return torch.autograd.grad(size, leaves, allow_unused=True, materialize_grads=True)

    for ours, exact in zip(penalty(torch.float32, "triton"), penalty(torch.float64, "torch"), strict=True):
        assert (ours.double() - exact).norm() <= 1e-3 * exact.norm() + 1e-5
    assert any("second derivative" in reason for reason in gk.paths_taken().values())


@pytest.mark.parametrize("name", ONCE)
def test_a_second_derivative_raises(device, name):
    function, tensors, constant = calls(device)[name]
    leaves = [t.detach().requires_grad_() for t in tensors]
    out = first(function(*leaves, *constant, backend="triton"))
    gradients = torch.autograd.grad(out.square().sum(), leaves, create_graph=True, allow_unused=True)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(sum(g.square().sum() for g in gradients if g is not None), leaves)


@pytest.mark.parametrize("name", ["metric_density", "flow_quadrature", "geodesic_rk4"])
def test_a_torch_func_transform_is_refused_or_done_by_torch(device, name):
    function, tensors, _ = calls(device)[name]
    loss = lambda t, backend: first(function(t, *tensors[1:], backend=backend)).sum()  # noqa: E731
    with pytest.raises(gk.KernelError, match=r"torch\.func"):
        torch.func.grad(partial(loss, backend="triton"))(tensors[0])
    got = torch.func.grad(partial(loss, backend="auto"))(tensors[0])
    leaf = tensors[0].detach().requires_grad_()
    (expected,) = torch.autograd.grad(loss(leaf, "torch"), leaf)
    torch.testing.assert_close(got, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_a_cuda_graph_replays_the_same_bits(name):
    function, tensors, constant = calls("cuda")[name]
    leaves = [t.detach().requires_grad_() for t in tensors]

    def step(*inputs):
        out = first(function(*inputs, *constant, backend="triton"))
        return out.detach(), torch.autograd.grad(out.square().sum(), inputs, allow_unused=True, materialize_grads=True)

    out, gradients = step(*leaves)
    captured = gk.CapturedStep(lambda *t: step(*(x.detach().requires_grad_() for x in t)), [t.detach() for t in leaves])
    again, replayed = captured(*(t.detach() for t in leaves))
    assert torch.equal(out, again)
    assert all(torch.equal(a, b) for a, b in zip(gradients, replayed, strict=True))


def test_auto_says_which_path_it_took(device, monkeypatch):
    monkeypatch.setattr(_dispatch, "_taken", {})
    function, tensors, _ = calls(device)["metric_density"]
    function(*tensors)
    taken = gk.paths_taken()["metric_density"]
    assert taken.startswith("triton" if device == "cuda" else "torch: the arguments are on cpu")


def test_a_later_path_does_not_hide_an_earlier_one(monkeypatch):
    """A fit on a GPU ends with predictions on the CPU: both are shown, and of several reasons the last."""
    monkeypatch.setattr(_dispatch, "_taken", {})
    for reason in ("first", None, "last"):
        _dispatch.record("an op", reason)
    assert gk.paths_taken() == {"an op": "triton; torch: last"}
