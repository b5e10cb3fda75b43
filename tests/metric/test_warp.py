"""Warps: monotone, smooth, invertible; arc length in closed form; single warps as in the recipe."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from geonode.errors import InputError
from geonode.metric import WARPS, Metric, Warp, WarpMetric
from geonode.metric.warp import scaled_warps, warp_values
from tests.tolerances import tolerance

DOUBLE = tolerance(torch.float64)
EXACT = {
    "identity": lambda x, k: x,
    "sqrt": lambda x, k: x**0.5,
    "square": lambda x, k: x**2,
    "saturation": lambda x, k: x / (x + k),
    "logarithm": lambda x, k: torch.log1p(x / k),
}


def mixture(seed: int) -> Tensor:
    return torch.rand(13, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) ** 4


@pytest.mark.parametrize("warp", WARPS, ids=lambda warp: warp.name)
def test_formula_inside_and_strictly_monotone_everywhere(warp: Warp) -> None:
    x = torch.linspace(0.01, 1.0, 50, dtype=torch.float64)
    torch.testing.assert_close(warp.value(x), EXACT[warp.kind](x, warp.kappa), rtol=3e-5, atol=1e-5)
    wide = torch.linspace(-6.0, 6.0, 400, dtype=torch.float64)
    assert bool((warp.value(wide).diff() > 0).all()) and bool((warp.derivative(wide) > 0).all())


@pytest.mark.smoke
@pytest.mark.parametrize("warp", WARPS, ids=lambda warp: warp.name)
def test_derivatives_are_derivatives(warp: Warp) -> None:
    x = torch.tensor([-2.0, -0.3, -1e-4, 0.0, 1e-3, 0.2, 0.9, 3.0], dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(warp.value(x).sum(), x, create_graph=True)
    torch.testing.assert_close(warp.derivative(x), first, rtol=1e-9, atol=1e-9)
    if warp.kind != "identity":
        (second,) = torch.autograd.grad(first.sum(), x)
        torch.testing.assert_close(warp.second_derivative(x), second, rtol=1e-7, atol=1e-7)


def test_all_at_once_equal_one_by_one() -> None:
    x = torch.linspace(-1.0, 2.0, 11, dtype=torch.float64)
    for order, name in enumerate(("value", "derivative", "second_derivative")):
        single = torch.stack([getattr(warp, name)(x) for warp in WARPS])
        torch.testing.assert_close(warp_values(x, order), single, **DOUBLE)
    ends = scaled_warps(torch.tensor([0.1, 0.8], dtype=torch.float64), 0.1, 0.8)
    torch.testing.assert_close(ends, torch.tensor([-1.0, 1.0], dtype=torch.float64).expand(13, 2), **DOUBLE)


@given(st.integers(0, 10_000), st.floats(-5.0, 5.0), st.floats(0.0, 3.0), st.floats(0.1, 1e4))
def test_arc_length_integrates_the_metric(seed: int, c0: float, gap: float, span: float) -> None:
    c_min, c_max = c0 + gap, c0 + gap + span
    metric = WarpMetric.from_weights(mixture(seed), c0=c0, c_min=c_min, c_max=c_max)
    c = torch.linspace(c_min - 0.3 * span, c_max + 0.3 * span, 9, dtype=torch.float64, requires_grad=True)
    length = metric.arc_length(c)
    (speed,) = torch.autograd.grad(length.sum(), c)
    torch.testing.assert_close(speed**2, metric(c), rtol=1e-6, atol=0)
    ends = metric.arc_length(torch.tensor([c_min, c_max], dtype=torch.float64))
    torch.testing.assert_close(ends, torch.tensor([0.0, 2.0], dtype=torch.float64), rtol=1e-9, atol=1e-9)


@given(st.integers(0, 10_000))
def test_inverse(seed: int) -> None:
    metric = WarpMetric.from_weights(mixture(seed), c_max=60.0)
    c = torch.linspace(-20.0, 90.0, 23, dtype=torch.float64)
    back = metric.from_scaled(metric.scaled(c))
    torch.testing.assert_close(metric.scaled(back), metric.scaled(c), rtol=1e-10, atol=1e-10)
    steep = metric.scaled_derivative(c) > 1e-4
    torch.testing.assert_close(back[steep], c[steep], rtol=1e-7, atol=1e-6)


def test_what_no_concentration_reaches_is_nan() -> None:
    weights = torch.zeros(13, dtype=torch.float64)
    weights[3] = 1.0  # saturation(0.03) ends a little above 1
    metric = WarpMetric.from_weights(weights)
    assert torch.isnan(metric.from_scaled(torch.tensor([1.5], dtype=torch.float64))).all()


def test_derivative_in_c_and_of_the_inverse() -> None:
    metric = WarpMetric.from_weights(mixture(1), c_max=60.0)
    c = torch.linspace(1.0, 80.0, 9, dtype=torch.float64)
    ours, default = metric.value_and_derivative(c), Metric.value_and_derivative(metric, c)
    for x, y in zip(ours, default, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-9, atol=1e-12)
    u = torch.tensor([-0.9, 0.1, 0.8], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(metric.from_scaled, (u,))
    assert torch.autograd.gradgradcheck(metric.from_scaled, (u,))


@settings(max_examples=5)
@given(st.floats(1e-6, 1e6))
def test_invariant_to_units(unit: float) -> None:
    c = torch.linspace(0.0, 60.0, 7, dtype=torch.float64)
    plain = WarpMetric.from_weights(mixture(2), c_max=60.0)
    other = WarpMetric.from_weights(mixture(2), c_max=60.0 * unit)
    torch.testing.assert_close(other.scaled(c * unit), plain.scaled(c), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(other(c * unit) * unit**2, plain(c), rtol=1e-9, atol=0)


def test_a_stack_is_its_models() -> None:
    weights = torch.stack([mixture(0), mixture(1)])
    tops = torch.tensor([60.0, 3.0], dtype=torch.float64)
    stack = WarpMetric.from_weights(weights, c_max=tops)
    c = torch.rand(2, 4, 3, dtype=torch.float64)
    for m in range(2):
        single = WarpMetric.from_weights(weights[m], c_max=tops[m].item())
        torch.testing.assert_close(stack(c)[m], single(c[m]), **DOUBLE)
        torch.testing.assert_close(stack.from_scaled(stack.scaled(c))[m], c[m], rtol=1e-8, atol=1e-10)


def test_domain() -> None:
    metric = WarpMetric(c_max=10.0)
    assert metric.in_domain(torch.tensor([-79.0, 0.0, 79.0, 81.0, math.nan])).tolist() == [True] * 3 + [False] * 2
    assert metric.in_domain(metric.reference(torch.zeros(2))).all()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: WarpMetric(torch.zeros(12)), r"must have shape \[13\]"),
        (lambda: WarpMetric(c_max=0.0), "c0 ≤ c_min < c_max"),
        (lambda: WarpMetric(c0=1.0, c_min=0.5, c_max=2.0), "c0 ≤ c_min < c_max"),
        (lambda: WarpMetric(c_max=math.inf), "c_max must be a finite number"),
        (lambda: WarpMetric.from_weights(torch.zeros(13)), "not all zero"),
        (lambda: WarpMetric.from_weights(-torch.ones(13)), "not negative"),
        (lambda: WarpMetric(torch.zeros(2, 13))(torch.zeros(3, 4)), "holds 2 models"),
    ],
)
def test_bad_input(call, says: str) -> None:
    with pytest.raises(InputError, match=says):
        call()
