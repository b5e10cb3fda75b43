"""The closed form for one analyte: derivatives of first and second order, forward and backward."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from geonode.geodesic import arc_length_geodesic
from geonode.metric import (
    ConformalWarpMetric,
    LogMetricNetwork,
    Metric,
    WarpMetric,
)
from tests.geodesic.metrics import DOUBLE, ends, learned

# ------------------------------------------------------------------ derivatives


def derivative_case(kind: str):
    """(function of start, end, wavelength and weights → velocity and a point of the path; its inputs)."""
    if kind == "network":
        metric: Metric = learned(0, (3,))
    else:
        network = LogMetricNetwork(hidden=(4,), seed=1).double()
        torch.nn.init.normal_(network.network.mlp.weights[-1], generator=torch.Generator().manual_seed(1))
        metric = ConformalWarpMetric(WarpMetric(c_max=2.0), network)
    names = [name for name, _ in metric.named_parameters()]
    inputs = [p.detach().clone().requires_grad_() for p in metric.parameters()]

    def function(start: Tensor, end: Tensor, wavelength: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor]:
        return torch.func.functional_call(
            _Call(metric), {f"metric.{n}": w for n, w in zip(names, weights, strict=True)}, (start, end, wavelength)
        )

    start, end = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in ([0.2, 0.6], [0.9, 0.5]))
    wavelength = torch.tensor([0.1, -0.4], dtype=torch.float64, requires_grad=True)
    return function, (start, end, wavelength, *inputs)


class _Call(torch.nn.Module):
    def __init__(self, metric: Metric) -> None:
        super().__init__()
        self.metric = metric

    def forward(self, start: Tensor, end: Tensor, wavelength: Tensor) -> tuple[Tensor, Tensor]:
        solution = arc_length_geodesic(self.metric, start, end, wavelength, nodes=20)
        return solution.initial_velocity, solution.at(0.4)


@pytest.mark.smoke
@pytest.mark.parametrize("kind", ["network", "chart"])
def test_gradcheck(kind: str) -> None:
    function, inputs = derivative_case(kind)
    assert torch.autograd.gradcheck(function, inputs, check_forward_ad=kind == "network", fast_mode=True)


@pytest.mark.parametrize("kind", ["network", "chart"])
def test_gradgradcheck(kind: str) -> None:
    function, inputs = derivative_case(kind)
    assert torch.autograd.gradgradcheck(function, inputs, fast_mode=True)


def test_gradient_exists_where_nothing_moves() -> None:
    start = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
    end = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
    velocity = arc_length_geodesic(learned(), start, end, torch.zeros(1, dtype=torch.float64)).initial_velocity
    by_start, by_end = torch.autograd.grad(velocity.sum(), (start, end))
    torch.testing.assert_close(by_end, torch.ones_like(by_end), **DOUBLE)
    torch.testing.assert_close(by_start, -torch.ones_like(by_start), **DOUBLE)


def test_jvp_and_vmap() -> None:
    metric = learned(0, (8,))
    a, b = ends(4, 0.0, 1.0)
    wl = torch.linspace(-1, 1, 4, dtype=torch.float64)
    solve = lambda x, y, w: arc_length_geodesic(metric, x, y, w).initial_velocity  # noqa: E731
    together = solve(a, b, wl)
    torch.testing.assert_close(torch.func.vmap(solve)(a, b, wl), together, **DOUBLE)
    one = torch.ones_like(a)
    _, tangent = torch.func.jvp(solve, (a, b, wl), (one, 2 * one, 3 * one))
    step = 1e-6
    difference = (solve(a + step, b + 2 * step, wl + 3 * step) - solve(a - step, b - 2 * step, wl - 3 * step)) / (
        2 * step
    )
    torch.testing.assert_close(tangent, difference, rtol=1e-7, atol=1e-8)
