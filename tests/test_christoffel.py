"""Christoffel symbols: exact formulas, laws, and agreement of the three rules."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geonode.christoffel import RULES, ChristoffelRule, Exact, FiniteDifference, Grid, christoffel
from geonode.errors import InputError
from geonode.metric import Euclidean, MetricNetwork, PoincareHalfPlane, PowerLaw, PullbackMetric, Sphere
from tests.tolerances import tolerance

DOUBLE = tolerance(torch.float64)


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.smoke
def test_known_symbols() -> None:
    theta = draw(4) + 0.5
    gamma = christoffel(Sphere(), torch.stack([theta, draw(4, seed=1)], -1))
    torch.testing.assert_close(gamma[:, 0, 1, 1], -theta.sin() * theta.cos(), **DOUBLE)
    torch.testing.assert_close(gamma[:, 1, 0, 1], 1.0 / theta.tan(), **DOUBLE)
    y = draw(4) + 0.5
    gamma = christoffel(PoincareHalfPlane(), torch.stack([draw(4, seed=1), y], -1))
    for (k, i, j), sign in {(0, 0, 1): -1, (1, 0, 0): 1, (1, 1, 1): -1, (0, 0, 0): 0, (1, 0, 1): 0}.items():
        torch.testing.assert_close(gamma[:, k, i, j], sign / y, **DOUBLE)
    torch.testing.assert_close(christoffel(PowerLaw(), y), -1.0 / y, **DOUBLE)


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_symmetric_in_its_lower_indices(seed: int, dim: int) -> None:
    metric = MetricNetwork(dim=dim, hidden=(8,), seed=seed).double()
    gamma = christoffel(metric, draw(5, dim, seed=seed), draw(5, seed=seed))
    torch.testing.assert_close(gamma, gamma.mT, **DOUBLE)


@given(st.integers(1, 4), st.integers(0, 10_000))
def test_zero_for_a_constant_metric(dim: int, seed: int) -> None:
    shape = (5,) if dim == 1 else (5, dim)
    assert christoffel(Euclidean(dim), draw(*shape, seed=seed)).abs().max().item() == 0.0
    skew = torch.randn(dim + 1, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    linear = (lambda c: c[..., None] * skew[:, 0]) if dim == 1 else (lambda c: c @ skew.T)
    assert christoffel(PullbackMetric(linear, dim=dim), draw(*shape, seed=seed)).abs().max().item() < 1e-10


@settings(max_examples=5)
@given(st.integers(0, 1000), st.integers(1, 3))
def test_finite_differences_agree(seed: int, dim: int) -> None:
    metric = MetricNetwork(dim=dim, hidden=(8,), seed=seed).double()
    c, wl = draw(6, dim, seed=seed) if dim > 1 else draw(6, seed=seed), draw(6, seed=seed + 1)
    exact = christoffel(metric, c, wl)
    torch.testing.assert_close(christoffel(metric, c, wl, "finite_difference"), exact, rtol=0, atol=1e-7)
    single = christoffel(metric.float(), c.float(), wl.float(), "finite_difference")
    torch.testing.assert_close(single.double(), exact, rtol=0, atol=3e-3)


def test_finite_difference_error_is_quadratic_and_stays_in_range() -> None:
    metric = MetricNetwork(hidden=(8,)).double()
    asked: list[torch.Tensor] = []
    metric.register_forward_pre_hook(lambda module, arguments: asked.append(arguments[0]))
    c, wl = torch.tensor([0.0, 0.01, 0.5, 1.0], dtype=torch.float64), torch.zeros(4, dtype=torch.float64)
    exact = christoffel(metric, c, wl)
    errors = [
        (christoffel(metric, c, wl, "finite_difference", epsilon=e) - exact).abs().max().item() for e in (0.04, 0.02)
    ]
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.3)
    assert all(x.min() >= 0 and x.max() <= 1 for x in asked), "the metric is never asked outside the range"


def test_grid_reads_and_reports_its_error() -> None:
    metric = MetricNetwork(hidden=(16,)).double()
    coarse, fine = (Grid(metric, shape=shape) for shape in ((21, 11), (41, 21)))
    c, wl = draw(50), draw(50, seed=1)
    exact = christoffel(metric, c, wl)
    reports = [grid.interpolation_error() for grid in (coarse, fine)]
    for grid, report in zip((coarse, fine), reports, strict=True):
        assert (grid(metric, c, wl) - exact).abs().max().item() <= 1.5 * report.maximum
    assert reports[0].rms / reports[1].rms == pytest.approx(4.0, rel=0.2), "bilinear: second order"
    nodes = christoffel(metric, fine.c, fine.wavelengths[0])
    torch.testing.assert_close(fine(metric, fine.c, fine.wavelengths[:1].expand(41)), nodes, rtol=0, atol=1e-9)


def test_grid_is_never_extrapolated() -> None:
    metric = MetricNetwork().double()
    grid = Grid(metric, shape=(20, 10))
    outside = grid(metric, torch.tensor([0.5, 1.01, 0.5, math.nan]), torch.tensor([0.5, 0.5, -0.1, 0.5]))
    assert torch.isnan(outside).tolist() == [False, True, True, True]


def test_grid_without_wavelength() -> None:
    metric = PowerLaw()
    grid = Grid(metric, low=1.0, high=2.0, wavelength_low=None, shape=(500, 2))
    c = torch.tensor([1.0, 1.5, 2.0], dtype=torch.float64)
    torch.testing.assert_close(grid(metric, c), -1.0 / c, rtol=1e-5, atol=0)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_acceleration_contracts_the_symbols(dim: int) -> None:
    metric = MetricNetwork(dim=dim, hidden=(6,)).double()
    shape = (4,) if dim == 1 else (4, dim)
    c, v, wl = draw(*shape), draw(*shape, seed=1) - 0.5, draw(4)
    torch.testing.assert_close(
        Exact().acceleration(metric, c, v, wl), ChristoffelRule.acceleration(Exact(), metric, c, v, wl), **DOUBLE
    )


@pytest.mark.parametrize("dim", [2, 3])
def test_linearised_acceleration(dim: int) -> None:
    metric = MetricNetwork(dim=dim, hidden=(6,)).double()
    c, v, wl = draw(4, dim), draw(4, dim, seed=1) - 0.5, draw(4)
    ours, default = (f(Exact(), metric, c, v, wl) for f in (Exact.linearised, ChristoffelRule.linearised))
    for x, y in zip(ours, default, strict=True):
        torch.testing.assert_close(x, y, **DOUBLE)


@pytest.mark.parametrize("dim", [1, 2])
def test_derivatives(dim: int) -> None:
    metric = MetricNetwork(dim=dim, hidden=(4,)).double()
    c = (draw(2) if dim == 1 else draw(2, dim)).requires_grad_()
    wl = draw(2).requires_grad_()
    assert torch.autograd.gradcheck(lambda c, wl: christoffel(metric, c, wl), (c, wl), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda c, wl: christoffel(metric, c, wl), (c, wl), fast_mode=True)


def test_a_rule_can_be_added(monkeypatch) -> None:
    monkeypatch.setattr(RULES, "_items", dict(RULES._items))  # back to what it was, afterwards

    @RULES.register("flat")
    class Flat(ChristoffelRule):
        def __call__(self, metric, c, wavelength=None):
            return torch.zeros_like(c)

    assert christoffel(PowerLaw(), torch.ones(3), method="flat").tolist() == [0.0] * 3


def test_the_axis_of_one_analyte_may_be_given() -> None:
    metric = MetricNetwork().double()
    c, wl = draw(5), draw(5, seed=1)
    unit = christoffel(metric, c[:, None], wl)
    assert unit.shape == (5, 1, 1, 1) and torch.equal(unit[:, 0, 0, 0], christoffel(metric, c, wl))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: christoffel(PowerLaw(), torch.ones(1), method="spline"), "Christoffel method='spline' is not known"),
        (lambda: christoffel(PowerLaw(), torch.ones(1), method="exact", epsilon=1), "takes no arguments"),
        (lambda: christoffel(Sphere(), torch.ones(3)), "last axis is 2"),
        (lambda: FiniteDifference(epsilon=0.7), "fraction of the range"),
        (lambda: FiniteDifference(low=1.0, high=1.0), "low < high"),
        (lambda: Grid(Sphere()), "one analyte only"),
        (lambda: Grid(PowerLaw(), shape=(1, 5)), "at least 2 points"),
        (lambda: Grid(MetricNetwork(), shape=(3, 3))(PowerLaw(), torch.ones(1)), "belongs to another metric"),
    ],
)
def test_bad_input(call, says: str) -> None:
    with pytest.raises(InputError, match=says):
        call()
