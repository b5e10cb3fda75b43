"""Chebyshev quadrature: exact for polynomials, convergent for analytic functions, never extrapolated."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geonode.errors import InputError
from geonode.geodesic.chebyshev import (
    chebyshev_nodes,
    chebyshev_polynomials,
    integral_of_series,
    integration_matrix,
    series_from_values,
)
from geonode_kernels.arc_length.reference import clenshaw
from tests.tolerances import tolerance


@given(st.integers(2, 12), st.floats(-3.0, -1.0), st.floats(1.0, 4.0))
def test_integrates_polynomials_exactly(nodes: int, low: float, high: float) -> None:
    degree = nodes - 1
    points = torch.linspace(low, high, 9, dtype=torch.float64)
    samples = chebyshev_nodes(nodes, low, high) ** degree
    exact = (points ** (degree + 1) - (-1.0) ** (degree + 1)) / (degree + 1)
    scale = max(abs(low), high) ** (degree + 1)
    found = integration_matrix(points, nodes, low, high) @ samples
    torch.testing.assert_close(found / scale, exact / scale, **tolerance(torch.float64))


def test_error_falls_geometrically() -> None:
    """1/(1 + 4x²) has its poles at ±i/2: the error of its integral falls by ((1 + √5)/2)⁻ᵀ."""
    points = torch.linspace(-1.0, 1.0, 11, dtype=torch.float64)
    exact = 0.5 * (torch.atan(2 * points) + math.atan(2.0))
    errors = []
    for nodes in (16, 32, 48):
        found = integration_matrix(points, nodes) @ (1.0 / (1.0 + 4.0 * chebyshev_nodes(nodes) ** 2))
        errors.append((found - exact).abs().max().item())
    rate = (errors[0] / errors[2]) ** (1 / 32)
    assert rate == pytest.approx(0.5 * (1 + math.sqrt(5)), rel=0.05)


def test_nodes_ascend_symmetrically() -> None:
    x = chebyshev_nodes(65)
    assert bool((x[1:] > x[:-1]).all())
    assert torch.equal(x, -x.flip(0))


def test_series_interpolates_and_differentiates_its_integral() -> None:
    nodes = 20
    series = series_from_values(nodes) @ torch.exp(chebyshev_nodes(nodes))
    x = torch.linspace(-1.0, 1.0, 7, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(clenshaw(series, x), x.exp(), **tolerance(torch.float64))
    integral = clenshaw(integral_of_series(nodes) @ series, x)
    (slope,) = torch.autograd.grad(integral.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(slope.sum(), x)
    torch.testing.assert_close(slope, x.exp(), **tolerance(torch.float64, "gradient"))
    torch.testing.assert_close(second, x.exp(), **tolerance(torch.float64, "gradient"))


def test_clenshaw_sums_the_polynomials() -> None:
    coefficients = torch.linspace(1.0, 2.0, 6, dtype=torch.float64)
    x = torch.tensor([-1.0, -0.3, 0.9], dtype=torch.float64)
    torch.testing.assert_close(clenshaw(coefficients, x), chebyshev_polynomials(x, 6) @ coefficients)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: chebyshev_nodes(1), "nodes must be at least 2"),
        (lambda: chebyshev_nodes(8, 1.0, 1.0), "low < high"),
        (lambda: integration_matrix(torch.tensor([1.1])), "rebuild it on a range that covers"),
        (lambda: integration_matrix(torch.tensor([math.nan])), "rebuild it on a range that covers"),
        (lambda: integration_matrix(torch.tensor([0.5]), 8, 0.0, 1.0), "must contain −1"),
    ],
)
def test_bad_input(call, says: str) -> None:
    with pytest.raises(InputError, match=says):
        call()
