"""The closed form for one analyte: against shooting, analytic logarithms, and its own laws."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from geonode.errors import InputError, SolverError
from geonode.geodesic import Status, arc_length_geodesic, exponential_map, shoot
from geonode.metric import (
    ConformalWarpMetric,
    Euclidean,
    LogMetricNetwork,
    Metric,
    MetricNetwork,
    PoincareHalfPlane,
    PowerLaw,
    WarpMetric,
)
from tests.tolerances import tolerance

DOUBLE = tolerance(torch.float64, "solver")


class RawPowerLaw(PowerLaw):
    """The power law without its chart, so that the table is built in c itself."""

    chart = None


class Watched(Metric):
    """g = 2 + sin(3c + λ); remembers the range it was asked for, and is NaN from λ = 10 on."""

    def __init__(self) -> None:
        super().__init__(dim=1)
        self.gain = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))
        self.low, self.high = math.inf, -math.inf

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        self.low, self.high = min(self.low, c.min().item()), max(self.high, c.max().item())
        wl = torch.zeros_like(c) if wavelength is None else wavelength
        return torch.where(wl < 10.0, self.gain + torch.sin(3.0 * c + wl), torch.nan)


def learned(seed: int = 0, hidden: tuple[int, ...] = (64, 64)) -> MetricNetwork:
    """A metric network whose metric varies several-fold over the range."""
    metric = MetricNetwork(hidden=hidden, seed=seed).double()
    with torch.no_grad():
        for parameter in metric.parameters():
            parameter.mul_(2.0)
    return metric


def ends(count: int, low: float, high: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    draw = torch.rand(2, count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return tuple(low + (high - low) * draw)


# ------------------------------------------------------------------ agreement


@pytest.mark.smoke
def test_agrees_with_shooting() -> None:
    metric = learned()
    a, b = ends(8, 0.0, 1.0)
    wavelength = torch.linspace(-1.0, 1.0, 5, dtype=torch.float64)
    closed = arc_length_geodesic(metric, a[:, None], b[:, None], wavelength)
    shot = shoot(metric, a[:, None], b[:, None], wavelength, ode_steps=80, newton_steps=6, stages=2)
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


# ------------------------------------------------------------------ failures


def test_failures_are_values_and_leave_their_neighbours_alone() -> None:
    nan = math.nan
    a = torch.tensor([0.1, nan, 0.1, 0.1, 0.7, 0.1], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([0.9, 0.5, math.inf, 0.8, 0.7, 0.9], dtype=torch.float64, requires_grad=True)
    wl = torch.tensor([0.0, 0.0, 0.0, 11.0, 0.0, nan], dtype=torch.float64)
    metric = Watched()
    solution = arc_length_geodesic(metric, a, b, wl)
    assert solution.status.tolist() == [0, 3, 3, 3, 0, 3]
    good = [0, 4]
    alone = arc_length_geodesic(metric, a[good], b[good], wl[good])
    torch.testing.assert_close(solution.initial_velocity[good], alone.initial_velocity, **tolerance(torch.float64))
    path = solution.at(0.5)
    assert torch.isfinite(path[good]).all() and torch.isnan(path[[1, 2, 3, 5]]).all()
    (solution.initial_velocity[good].sum() + path[good].sum()).backward()
    for tensor in (a, b, metric.gain):
        assert torch.isfinite(tensor.grad).all()
    with pytest.raises(SolverError, match=r"from nan to 0\.5 at wavelength 0 .*3 more of 6"):
        solution.throw()


def test_a_loss_over_everything_still_has_finite_gradients() -> None:
    """Not only the good ones are summed: the mask is the caller's, the zeros must be ours."""
    metric = Watched()
    a = torch.tensor([0.1, 0.1], dtype=torch.float64, requires_grad=True)
    wl = torch.tensor([0.0, 11.0], dtype=torch.float64)
    solution = arc_length_geodesic(metric, a, a + 0.5, wl)
    torch.where(solution.converged, solution.initial_velocity, 0.0).sum().backward()
    assert torch.isfinite(a.grad).all() and torch.isfinite(metric.gain.grad).all()


class Ends(MetricNetwork):
    """√(0.8 − c) times a network: no number beyond c = 0.8."""

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        return super().forward(c, wavelength) * (0.8 - c).sqrt()


@pytest.mark.parametrize("models", [None, 2])
def test_a_shared_table_spoilt_by_one_problem_costs_no_other(models: int | None) -> None:
    """All three have one wavelength; the second asks beyond the pole of the metric."""
    metric = Ends(models=models, hidden=(8,)).double()
    lead = () if models is None else (models,)
    a = torch.tensor([0.1, 0.1, 0.6], dtype=torch.float64).expand(*lead, 3)
    b = torch.tensor([0.5, 0.95, 0.2], dtype=torch.float64).expand(*lead, 3)
    wl = torch.zeros((*lead, 1), dtype=torch.float64)
    solution = arc_length_geodesic(metric, a, b, wl)
    assert solution.status.reshape(-1, 3)[0].tolist() == [0, 3, 0]
    assert arc_length_geodesic(metric, a, b, wl, shared=True).status.reshape(-1, 3)[0].tolist() == [3, 3, 3]
    good = [0, 2]
    alone = arc_length_geodesic(metric, a[..., good], b[..., good], wl)
    torch.testing.assert_close(solution.initial_velocity[..., good], alone.initial_velocity, **tolerance(torch.float64))
    path, path_alone = solution.at(torch.tensor([0.0, 0.4])), alone.at(torch.tensor([0.0, 0.4]))
    torch.testing.assert_close(path[..., good], path_alone, **tolerance(torch.float64))
    assert path[..., 1].isnan().all()
    torch.where(solution.converged, solution.initial_velocity, 0.0).sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in metric.parameters())


def test_a_far_neighbour_coarsens_no_table() -> None:
    a, b = torch.tensor([1e-3, 1.0], dtype=torch.float64), torch.tensor([10.0, 1.5], dtype=torch.float64)
    assert arc_length_geodesic(RawPowerLaw(), a, b, nodes=16).status.tolist() == [Status.MAX_ITERATIONS, 0]


def test_too_few_nodes_are_reported() -> None:
    """c⁻² over four decades is no polynomial of degree 15; the problem beside it is."""
    a = torch.tensor([1e-3, 1.0], dtype=torch.float64)
    b = torch.tensor([10.0, 1.5], dtype=torch.float64)
    own = arc_length_geodesic(RawPowerLaw(), a, b, nodes=16, shared=False)
    assert own.status.tolist() == [Status.MAX_ITERATIONS, Status.CONVERGED]
    assert torch.isfinite(own.initial_velocity).all() and own.residual[0] > own.residual[1]
    with pytest.raises(SolverError, match=r"from 0\.001 to 10 did not reach the tolerance"):
        own.throw()
    assert arc_length_geodesic(PowerLaw(), a, b, nodes=16).status.tolist() == [0, 0], "its chart resolves it"


def test_leaving_the_domain_is_reported() -> None:
    a, b = torch.tensor([1.0, -1.0, 1.0]), torch.tensor([2.0, 1.0, 0.0])
    assert arc_length_geodesic(PowerLaw(), a, b).status.tolist() == [0, 2, 2]


@settings(max_examples=15)
@given(st.floats(0.01, 1.0), st.integers(8, 40))
def test_the_estimated_error_bounds_the_true_one(low: float, nodes: int) -> None:
    a, b = torch.tensor([low], dtype=torch.float64), torch.tensor([2.0], dtype=torch.float64)
    metric = RawPowerLaw()
    solution = arc_length_geodesic(metric, a, b, nodes=nodes, tolerance=1.0)
    miss = (metric.exp(a, solution.initial_velocity) - b).abs()
    assert miss.item() <= 2.0 * solution.residual.item() + 1e-11


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: arc_length_geodesic(PoincareHalfPlane(), x, x), "2 coordinates: use shoot"),
        (lambda x: arc_length_geodesic(Euclidean(), x, x, nodes=4), "nodes must be at least 8"),
        (lambda x: arc_length_geodesic(Euclidean(), x, x.double()), "same dtype"),
        (lambda x: arc_length_geodesic(Euclidean(), x, torch.ones(3)), "do not broadcast"),
        (lambda x: arc_length_geodesic(Euclidean(), torch.arange(2), x), "floating-point"),
        (lambda x: arc_length_geodesic(MetricNetwork(), x, x), "depends on the wavelength"),
    ],
)
def test_bad_input(call, says: str) -> None:
    with pytest.raises(InputError, match=says):
        call(torch.ones(2))


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
