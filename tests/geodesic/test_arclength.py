"""The closed form for one analyte: against shooting, analytic logarithms, and its own laws."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from geonode.geodesic import Status, arc_length_geodesic, exponential_map, shoot
from geonode.metric import (
    ConformalWarpMetric,
    LogMetricNetwork,
    Metric,
    MetricNetwork,
    PowerLaw,
    WarpMetric,
)
from tests.geodesic.metrics import DOUBLE, RawPowerLaw, Watched, ends, learned
from tests.tolerances import tolerance

# ------------------------------------------------------------------ agreement


@pytest.mark.smoke
def test_agrees_with_shooting() -> None:
    metric = learned()
    a, b = ends(8, 0.0, 1.0)
    wavelength = torch.linspace(-1.0, 1.0, 5, dtype=torch.float64)
    closed = arc_length_geodesic(metric, a[:, None], b[:, None], wavelength)
    shot = shoot(metric, a[:, None], b[:, None], wavelength, ode_steps=50, newton_steps=6, stages=1)
    assert bool(closed.converged.all()) and bool(shot.converged.all())
    relative = (closed.initial_velocity - shot.initial_velocity) / shot.initial_velocity
    assert relative.abs().max().item() < 1e-8
    t = torch.tensor([0.0, 0.25, 0.6, 1.0], dtype=torch.float64)
    torch.testing.assert_close(closed.at(t), shot.at(t), rtol=0, atol=1e-8)


@given(st.sampled_from([-2.0, -1.0, 1.0, 2.0]), st.floats(0.2, 3.0), st.floats(0.2, 3.0))
def test_agrees_with_the_analytic_logarithm(exponent: float, a: float, b: float) -> None:
    start, end = torch.tensor([a], dtype=torch.float64), torch.tensor([b], dtype=torch.float64)
    for metric in (PowerLaw(exponent), RawPowerLaw(exponent)):
        found = arc_length_geodesic(metric, start, end)
        torch.testing.assert_close(found.initial_velocity, metric.log(start, end), **DOUBLE)
        half = metric.exp(start, 0.5 * metric.log(start, end))
        torch.testing.assert_close(found.at(0.5), half, **DOUBLE)
        assert found.status.item() == Status.CONVERGED


def test_inverse_square_metric_interpolates_geometrically() -> None:
    a, b = ends(20, 0.5, 4.0)
    t = torch.linspace(0.0, 1.0, 5, dtype=torch.float64)
    path = arc_length_geodesic(RawPowerLaw(), a, b).at(t)
    torch.testing.assert_close(path, a ** (1 - t[:, None]) * b ** t[:, None], **DOUBLE)


@pytest.mark.parametrize("warp_first", [True, False])
def test_full_metric_of_the_default_flow(warp_first: bool) -> None:
    """The chart of √g = √g_warp·exp(½ m) gives what shooting finds in concentration."""
    network = LogMetricNetwork(hidden=(8,), seed=1).double()
    with torch.no_grad():
        network.network.mlp.weights[-1].normal_(0.0, 0.5, generator=torch.Generator().manual_seed(3))
    weights = torch.zeros(13, dtype=torch.float64)
    weights[6 if warp_first else 0] = 1.0
    metric = ConformalWarpMetric(WarpMetric.from_weights(weights, c_max=60.0), network)
    a, b = ends(6, 0.0, 60.0)
    wavelength = torch.linspace(-1, 1, 6, dtype=torch.float64)
    closed = arc_length_geodesic(metric, a, b, wavelength)
    shot = shoot(metric, a, b, wavelength, ode_steps=50, newton_steps=4, stages=1)
    assert bool(closed.converged.all()) and bool(shot.converged.all())
    torch.testing.assert_close(closed.initial_velocity, shot.initial_velocity, rtol=1e-8, atol=0)
    torch.testing.assert_close(closed.at(0.5), shot.at(0.5), rtol=1e-6, atol=0)


# ------------------------------------------------------------------ laws


@settings(max_examples=10)
@given(st.integers(0, 1000), st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(-1.0, 1.0))
def test_reversal_and_conservation(seed: int, a: float, b: float, wl: float) -> None:
    metric = learned(seed, (16,))
    start, end, wavelength = (torch.tensor([x], dtype=torch.float64) for x in (a, b, wl))
    there = arc_length_geodesic(metric, start, end, wavelength)
    back = arc_length_geodesic(metric, end, start, wavelength)
    t = torch.linspace(0.0, 1.0, 6, dtype=torch.float64)
    torch.testing.assert_close(there.at(t), back.at(1.0 - t), **DOUBLE)
    energies = [metric.energy(x.start, x.initial_velocity, wavelength) for x in (there, back)]
    torch.testing.assert_close(energies[0], energies[1], **DOUBLE)
    assert there.energy_drift.item() < 1e-10 and there.residual.item() < 1e-10


@settings(max_examples=10)
@given(st.integers(0, 12), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_length_does_not_depend_on_the_coordinate(warp: int, a: float, b: float) -> None:
    """The same geometry in c and in y = φ(c): lengths agree, velocities transform by dy/dc."""
    weights = torch.full((13,), 0.1, dtype=torch.float64)
    weights[warp] = 2.0
    phi = WarpMetric.from_weights(weights, c_max=1.0)
    metric = learned(1, (16,))

    class InC(Metric):
        def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
            return metric(phi.scaled(c), wavelength) * phi.scaled_derivative(c) ** 2

        chart = property(lambda self: None)

    start, end = torch.tensor([a], dtype=torch.float64), torch.tensor([b], dtype=torch.float64)
    wl = torch.zeros(1, dtype=torch.float64)
    in_y = arc_length_geodesic(metric, phi.scaled(start), phi.scaled(end), wl)
    in_c = arc_length_geodesic(InC(1), start, end, wl, nodes=400, tolerance=1e-3)
    length_y = metric.energy(in_y.start, in_y.initial_velocity, wl).sqrt()
    length_c = InC(1).energy(start, in_c.initial_velocity, wl).sqrt()
    torch.testing.assert_close(length_c, length_y, rtol=1e-4, atol=1e-12)
    velocity = in_c.initial_velocity * phi.scaled_derivative(start)
    torch.testing.assert_close(velocity, in_y.initial_velocity, rtol=1e-4, atol=1e-12)


def test_follows_the_exponential_map() -> None:
    metric = learned(2)
    a, b = ends(12, 0.0, 1.0)
    wl = torch.linspace(-1, 1, 12, dtype=torch.float64)
    solution = arc_length_geodesic(metric, a, b, wl)
    arrived = exponential_map(metric, a, solution.initial_velocity, wl, steps=100)
    torch.testing.assert_close(arrived.end, b, rtol=0, atol=1e-8)


def test_no_path_is_exactly_no_motion() -> None:
    metric = learned()
    a = torch.tensor([0.0, 0.3, 1.0], dtype=torch.float64)
    for shared in (True, False):
        solution = arc_length_geodesic(metric, a, a.clone(), torch.zeros(3, dtype=torch.float64), shared=shared)
        assert torch.equal(solution.initial_velocity, torch.zeros_like(a)) and bool(solution.converged.all())
        torch.testing.assert_close(solution.at(0.5), a, **tolerance(torch.float64))


# ------------------------------------------------------------------ how problems share tables


def test_sharing_changes_nothing() -> None:
    metric = learned()
    a, b = (x.reshape(6, 1) for x in ends(6, 0.0, 1.0))
    wl = torch.linspace(-1, 1, 4, dtype=torch.float64)
    reference = arc_length_geodesic(metric, a, b, wl).initial_velocity.detach()
    layouts = {
        "own": arc_length_geodesic(metric, a, b, wl, shared=False),
        "expanded": arc_length_geodesic(metric, a.expand(6, 4), b.expand(6, 4), wl.expand(6, 4)),
        "repeated": arc_length_geodesic(
            metric, a.expand(6, 4).flatten(), b.expand(6, 4).flatten(), wl.expand(6, 4).flatten()
        ),
        "carrying a gradient": arc_length_geodesic(metric, a, b, wl.clone().requires_grad_()),
        "with the axis D": arc_length_geodesic(
            metric, a.expand(6, 4)[..., None], b.expand(6, 4)[..., None], wl.expand(6, 4)
        ),
    }
    for name, solution in layouts.items():
        found = solution.initial_velocity.detach().reshape(6, 4)
        assert (found - reference).abs().max().item() < 1e-12, name
        assert (solution.at(0.3).detach().reshape(6, 4) >= 0).all(), name


def test_stacked_models_equal_single_ones() -> None:
    stack = MetricNetwork(models=3, seed=5).double()
    singles = [MetricNetwork(seed=5 + m).double() for m in range(3)]
    a, b = (x.reshape(1, 4, 1) for x in ends(4, 0.0, 1.0))
    wl = torch.linspace(-1, 1, 5, dtype=torch.float64)
    together = arc_length_geodesic(stack, a.expand(3, 4, 5), b.expand(3, 4, 5), wl)
    for m, single in enumerate(singles):
        alone = arc_length_geodesic(single, a[0], b[0], wl)
        torch.testing.assert_close(together.initial_velocity[m], alone.initial_velocity, **DOUBLE)
        torch.testing.assert_close(together.at(0.4)[m], alone.at(0.4), **DOUBLE)


def test_float32_in_float32_out() -> None:
    metric = MetricNetwork()
    a, b = (x.float() for x in ends(9, 0.0, 1.0))
    wl = torch.linspace(-1, 1, 9)
    solution = arc_length_geodesic(metric, a, b, wl)
    exact = arc_length_geodesic(metric.double(), a.double(), b.double(), wl.double())
    assert solution.initial_velocity.dtype == solution.residual.dtype == torch.float32
    assert bool(solution.converged.all())
    torch.testing.assert_close(
        solution.initial_velocity.double(), exact.initial_velocity, **tolerance(torch.float32, "solver")
    )


def test_a_float32_network_may_be_asked_in_float64() -> None:
    a, b = ends(5, 0.0, 1.0)
    assert bool(arc_length_geodesic(MetricNetwork(), a, b, torch.zeros_like(a)).converged.all())


def test_the_metric_is_asked_between_the_ends_only() -> None:
    metric = Watched()
    a, b = ends(6, 0.2, 0.9)
    arc_length_geodesic(metric, a, b, torch.zeros(6, dtype=torch.float64)).at(0.5)
    assert metric.low >= min(a.min(), b.min()).item() and metric.high <= max(a.max(), b.max()).item()
