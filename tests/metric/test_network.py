"""Learned metrics: positive definite, their own derivatives, stacks equal to single models, exportable."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geonode.errors import InputError
from geonode.metric import ConformalWarpMetric, LogMetricNetwork, Metric, MetricNetwork, WarpMetric
from tests.tolerances import tolerance


def inputs(dim: int, seed: int = 0, count: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    c = torch.randn((count,) if dim == 1 else (count, dim), generator=generator, dtype=torch.float64)
    return c, torch.randn(count, generator=generator, dtype=torch.float64)


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.integers(1, 3), st.floats(0.1, 30.0))
def test_positive_definite_wherever_it_is_asked(seed: int, dim: int, spread: float) -> None:
    metric = MetricNetwork(dim=dim, hidden=(8,), seed=seed).double()
    c, wl = inputs(dim, seed)
    g = metric(spread * c, wl)
    if dim == 1:
        assert g.min().item() >= metric.floor
    else:
        assert torch.equal(g, g.mT)
        assert torch.linalg.eigvalsh(g).min().item() >= metric.floor - 1e-9


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("activation", ["tanh", "silu", "softplus"])
@pytest.mark.parametrize("transform", ["softplus", "exp"])
def test_derivatives_travel_with_the_value(dim: int, activation: str, transform: str) -> None:
    metric = MetricNetwork(dim=dim, hidden=(5, 4), activation=activation, transform=transform).double()
    c, wl = inputs(dim)
    ours, default = metric.two_derivatives(c, wl), Metric.two_derivatives(metric, c, wl)
    first = Metric.value_and_derivative(metric, c, wl)
    for x, y in zip((*ours, *metric.value_and_derivative(c, wl)), (*default, *first), strict=True):
        torch.testing.assert_close(x, y, **tolerance(torch.float64))


@pytest.mark.parametrize("dim", [1, 2])
def test_a_stack_is_its_models(dim: int) -> None:
    stack = MetricNetwork(dim=dim, models=3, seed=4)
    c, wl = (x.float() for x in inputs(dim))
    together = stack(c.expand(3, *c.shape), wl.expand(3, -1))
    for m in range(3):
        alone = MetricNetwork(dim=dim, seed=4 + m)(c, wl)
        torch.testing.assert_close(together[m], alone, **tolerance(torch.float32))


def test_defaults_are_the_original_recipe() -> None:
    metric = MetricNetwork()
    assert metric.network.mlp.sizes == (2, 64, 64, 1) and metric.floor == 0.1 and metric.transform == "softplus"
    g = metric(torch.linspace(0, 1, 7)[:, None], torch.linspace(-1, 1, 5))
    assert g.shape == (7, 5) and g.dtype == torch.float32


def test_without_wavelength() -> None:
    metric = MetricNetwork(uses_wavelength=False)
    assert metric(torch.linspace(0, 1, 7)).shape == (7,)
    assert metric.network.mlp.sizes[0] == 1


@pytest.mark.parametrize("dim", [1, 2])
def test_exported_program_takes_other_batch_sizes(dim: int) -> None:
    class Both(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.metric = MetricNetwork(dim=dim, hidden=(8,))

        def forward(self, c: torch.Tensor, wl: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return self.metric.value_and_derivative(c, wl)

    model = Both()
    c, wl = (x.float() for x in inputs(dim, count=6))
    batch = torch.export.Dim("batch", min=2, max=4096)
    program = torch.export.export(model, (c, wl), dynamic_shapes=({0: batch}, {0: batch}))
    for count in (3, 11):
        c, wl = (x.float() for x in inputs(dim, count=count))
        for ours, theirs in zip(model(c, wl), program.module()(c, wl), strict=True):
            torch.testing.assert_close(ours, theirs)


def test_log_metric_starts_from_zero() -> None:
    network = LogMetricNetwork(models=2)
    u, wl = torch.linspace(-1, 1, 6).expand(2, 6), torch.zeros(2, 6)
    assert torch.equal(network(u, wl), torch.zeros(2, 6))
    metric = ConformalWarpMetric(WarpMetric(c_max=60.0), LogMetricNetwork())
    c = torch.linspace(0, 60, 5, dtype=torch.float64)
    torch.testing.assert_close(metric(c, torch.zeros(5)), metric.warp(c))


def test_full_metric_and_its_chart() -> None:
    network = LogMetricNetwork(hidden=(6,), seed=1).double()
    torch.nn.init.normal_(network.network.mlp.weights[-1], generator=torch.Generator().manual_seed(0))
    metric = ConformalWarpMetric(WarpMetric(c_max=60.0), network)
    c, wl = torch.linspace(0, 60, 9, dtype=torch.float64), torch.linspace(-1, 1, 9, dtype=torch.float64)
    g, dg = metric.value_and_derivative(c, wl)
    default = Metric.value_and_derivative(metric, c, wl)
    torch.testing.assert_close(g, default[0], **tolerance(torch.float64))
    torch.testing.assert_close(dg, default[1], rtol=1e-9, atol=1e-9)
    chart = metric.chart
    torch.testing.assert_close(chart.slope(c) ** 2 * chart.metric(chart.to(c), wl), g, **tolerance(torch.float64))
    torch.testing.assert_close(chart.back(chart.to(c)), c, rtol=1e-9, atol=1e-12)


def test_autocast_rounds_the_products_only() -> None:
    metric = MetricNetwork(dim=2)
    c, wl = (x.float() for x in inputs(2))
    with torch.autocast("cpu", torch.bfloat16):
        g, dg = metric.value_and_derivative(c, wl)
    assert g.dtype == dg.dtype == torch.float32
    torch.testing.assert_close(g, metric(c, wl), **tolerance(torch.bfloat16))
    assert torch.equal(g, g.mT)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: MetricNetwork(floor=0.0), "floor must be positive"),
        (lambda: MetricNetwork(transform="square"), "choose one of softplus, exp"),
        (lambda: MetricNetwork(activation="relu"), "choose one of tanh"),
        (lambda: MetricNetwork()(torch.zeros(3)), "pass wavelength="),
        (lambda: MetricNetwork()(torch.zeros(3), torch.zeros(2)), r"do not broadcast together: \(3,\), \(2,\)"),
        (lambda: MetricNetwork(models=3)(torch.zeros(2, 4), torch.zeros(2, 4)), "stacks 3 models"),
        (lambda: MetricNetwork(dim=2)(torch.zeros(4), torch.zeros(4)), "last axis is 2"),
        (lambda: MetricNetwork(models=2, seed=[1]), "one seed or 2 seeds"),
    ],
)
def test_bad_input(call, says: str) -> None:
    with pytest.raises(InputError, match=says):
        call()
