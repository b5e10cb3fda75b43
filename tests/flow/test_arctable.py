"""The arc-length table of the default flow: against quadrature, inversion, derivatives, and its range."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geonode.errors import InputError
from geonode.flow.arctable import ArcLengthTable
from geonode.geodesic import integration_matrix

LOW, HIGH = (-1.3, -1.0), (1.0, 2.1)


@pytest.fixture(scope="module")
def table() -> ArcLengthTable:
    return ArcLengthTable(torch.tensor(LOW), torch.tensor(HIGH), nodes=40)


def density(u: torch.Tensor) -> torch.Tensor:
    """ρ = e^{u/2}(1 + w): its integral is 2(e^{u/2} − e^{−½})(1 + w). u [M, P] → [M, P, 3]."""
    return torch.exp(0.5 * u)[..., None] * torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)


def exact(u: torch.Tensor) -> torch.Tensor:
    return 2.0 * (torch.exp(0.5 * u) - math.exp(-0.5))[..., None] * torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)


def points(table: ArcLengthTable, seed: int = 0) -> torch.Tensor:
    draw = torch.rand(2, 7, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return table.low[:, None] + (table.high - table.low)[:, None] * draw


@given(st.integers(0, 1000))
def test_both_ways_to_the_arc_length_agree_with_the_integral(seed: int) -> None:
    table = ArcLengthTable(torch.tensor(LOW), torch.tensor(HIGH), nodes=40)
    u, rho = points(table, seed), density(table.nodes)
    torch.testing.assert_close(table.phi(u) @ rho, exact(u), rtol=1e-12, atol=1e-12)
    by_series = table.evaluate(table.coefficients(rho), u[..., None].expand(2, 7, 3))
    torch.testing.assert_close(by_series, exact(u), rtol=1e-12, atol=1e-12)
    for m in range(2):
        torch.testing.assert_close(table.phi(u)[m], integration_matrix(u[m], 40, LOW[m], HIGH[m]))


def test_arc_length_at_the_nodes_is_the_series_there(table: ArcLengthTable) -> None:
    rho = density(table.nodes)
    series = table.evaluate(table.coefficients(rho), table.nodes[..., None].expand_as(rho))
    torch.testing.assert_close(table.at_nodes(rho), series, rtol=1e-12, atol=1e-12)


def test_autocast_does_not_round_arc_lengths(table: ArcLengthTable) -> None:
    phi, rho = table.phi(points(table)).float(), density(table.nodes).float()
    ways = (lambda: table.scaled(phi, rho), lambda: table.coefficients(rho), lambda: table.at_nodes(rho))
    for way in ways:
        plain = way()
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(way(), plain)


def test_scaled_runs_from_minus_one_to_one(table: ArcLengthTable) -> None:
    ends = torch.tensor([[-1.0, 1.0]] * 2, dtype=torch.float64)
    s_hat = table.scaled(table.phi(ends), density(table.nodes))
    torch.testing.assert_close(s_hat, torch.tensor([-1.0, 1.0], dtype=torch.float64)[None, :, None].expand(2, 2, 3))


def test_derivative_in_the_points_is_the_density(table: ArcLengthTable) -> None:
    u = points(table).requires_grad_()
    rho = density(table.nodes)
    (slope,) = torch.autograd.grad((table.phi(u) @ rho)[..., 0].sum(), u)
    torch.testing.assert_close(slope, density(u.detach())[..., 0], rtol=1e-10, atol=1e-10)


def test_never_extrapolates(table: ArcLengthTable) -> None:
    with pytest.raises(InputError, match="outside the range this model was trained for"):
        table.phi(torch.tensor([[-1.31], [0.0]], dtype=torch.float64))
    with pytest.raises(InputError, match="must cover the calibrated range"):
        ArcLengthTable(torch.tensor([-0.5]), torch.tensor([1.0]))
