"""The oracles among themselves: distance, log, exp and the metric tensor belong together."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from geonode.errors import InputError
from geonode.metric import Euclidean, Metric, PoincareHalfPlane, PowerLaw, Sphere
from tests.tolerances import tolerance

CASES: dict[str, tuple[Metric, float, float]] = {
    "line": (Euclidean(), -2.0, 2.0),
    "space": (Euclidean(3), -2.0, 2.0),
    "inverse square": (PowerLaw(), 0.2, 5.0),
    "cube": (PowerLaw(3.0), 0.2, 2.0),
    "half-plane": (PoincareHalfPlane(), 0.3, 3.0),
    "sphere": (Sphere(), 0.4, 2.2),
}


def points(metric: Metric, low: float, high: float, seed: int, count: int = 5) -> Tensor:
    shape = (count,) if metric.dim == 1 else (count, metric.dim)
    draw = torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return low + (high - low) * draw


@pytest.mark.parametrize("name", CASES)
@given(st.integers(0, 10_000))
def test_exp_inverts_log_and_the_speed_is_the_distance(name: str, seed: int) -> None:
    metric, low, high = CASES[name]
    a, b = points(metric, low, high, seed), points(metric, low, high, seed + 1)
    v = metric.log(a, b)
    torch.testing.assert_close(metric.exp(a, v), b, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(metric.energy(a, v).sqrt(), metric.distance(a, b), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(metric.distance(a, b), metric.distance(b, a), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_the_metric_is_the_length_of_a_short_step(name: str) -> None:
    metric, low, high = CASES[name]
    a = points(metric, low, high, 0)
    step = 1e-5 * (points(metric, -1.0, 1.0, 1))
    torch.testing.assert_close(metric.energy(a, step).sqrt(), metric.distance(a, a + step), rtol=1e-4, atol=0)


@pytest.mark.parametrize("name", CASES)
def test_no_step_at_all(name: str) -> None:
    metric, low, high = CASES[name]
    a = points(metric, low, high, 0).requires_grad_()
    v = metric.log(a, a.detach())
    torch.testing.assert_close(v, torch.zeros_like(v), **tolerance(torch.float64))
    torch.testing.assert_close(metric.exp(a, torch.zeros_like(a)), a)
    (gradient,) = torch.autograd.grad(v.sum() + metric.exp(a, 0.0 * a).sum(), a)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("name", CASES)
def test_derivatives_by_hand_equal_forward_mode(name: str) -> None:
    metric, low, high = CASES[name]
    c, wl = points(metric, low, high, 0), torch.zeros(5, dtype=torch.float64)
    for wavelength in (None, wl):
        by_hand, default = metric.two_derivatives(c, wavelength), Metric.two_derivatives(metric, c, wavelength)
        first = Metric.value_and_derivative(metric, c, wavelength)
        for ours, theirs in zip((*by_hand, *by_hand[:2]), (*default, *first), strict=True):
            torch.testing.assert_close(ours, theirs, **tolerance(torch.float64))
    column = metric(c.unsqueeze(1), torch.zeros(1, 7)).shape
    assert column[:2] == (5, 7), "a metric that ignores the wavelength still broadcasts against it"


@pytest.mark.parametrize("name", CASES)
def test_reference_is_in_the_domain(name: str) -> None:
    metric, _, _ = CASES[name]
    like = torch.full((3,) if metric.dim == 1 else (3, metric.dim), math.nan)
    inside = metric.in_domain(metric.reference(like))
    assert inside.tolist() == [True] * 3 and metric.in_domain(like).tolist() == [False] * 3


def test_chart_of_the_power_law() -> None:
    c = torch.tensor([0.3, 1.0, 4.0], dtype=torch.float64)
    for exponent in (-2.0, -1.0, 1.0):
        metric = PowerLaw(exponent)
        chart = metric.chart
        torch.testing.assert_close(chart.back(chart.to(c)), c)
        torch.testing.assert_close(chart.slope(c) ** 2 * chart.metric(chart.to(c)), metric(c))


def test_bad_input() -> None:
    with pytest.raises(InputError, match="dim must be at least 1"):
        Euclidean(0)
    with pytest.raises(InputError, match="last axis is 2"):
        Sphere()(torch.zeros(4, 3))
