"""The exponential map: analytic ends, conserved energy, measured orders, failures as values, derivatives."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geonode.christoffel import FiniteDifference, Grid
from geonode.errors import InputError, SolverError
from geonode.geodesic import ADAPTIVE, STEPPERS, RungeKutta, Status, exponential_map
from geonode.metric import Euclidean, Metric, MetricNetwork, PoincareHalfPlane, PowerLaw, Sphere
from tests.tolerances import tolerance

DOUBLE = tolerance(torch.float64, "solver")


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CASES = {
    "half-plane": (PoincareHalfPlane(), draw(6, 2) + 0.5, 2.0 * draw(6, 2, seed=1) - 1.0),
    "sphere": (Sphere(), draw(6, 2) + 0.8, 2.0 * draw(6, 2, seed=1) - 1.0),
    "power law": (PowerLaw(), draw(6) + 0.5, 2.0 * draw(6, seed=1) - 1.0),
    "plane": (Euclidean(3), draw(6, 3), draw(6, 3, seed=1)),
}


@pytest.mark.parametrize("name", CASES)
def test_ends_where_the_analytic_map_does(name: str) -> None:
    metric, start, velocity = CASES[name]
    solution = exponential_map(metric, start, velocity, steps=150)
    torch.testing.assert_close(solution.end, metric.exp(start, velocity), rtol=0, atol=1e-8)
    torch.testing.assert_close(solution.at(0.37), metric.exp(start, 0.37 * velocity), rtol=0, atol=1e-8)
    assert torch.equal(solution.at(1.0), solution.end) and torch.equal(solution.at(0.0), start)
    assert bool(solution.converged.all()) and solution.energy_drift.max().item() < 1e-8


@settings(max_examples=6)
@given(st.integers(0, 100), st.integers(1, 2))
def test_energy_is_conserved_by_a_learned_metric(seed: int, dim: int) -> None:
    metric = MetricNetwork(dim=dim, hidden=(16,), seed=seed).double()
    shape = (5,) if dim == 1 else (5, dim)
    start, velocity, wl = draw(*shape, seed=seed), draw(*shape, seed=seed + 1) - 0.5, draw(5, seed=seed)
    solution = exponential_map(metric, start, velocity, wl, steps=20)
    before, after = metric.energy(start, velocity, wl), metric.energy(solution.end, solution.end_velocity, wl)
    torch.testing.assert_close(after, before, rtol=1e-6, atol=0)
    assert solution.energy_drift.max().item() < 1e-6


@pytest.mark.parametrize("method", STEPPERS)
def test_measured_order(method: str) -> None:
    metric, start, velocity = CASES["half-plane"]
    exact = metric.exp(start, velocity)
    errors = [
        (exponential_map(metric, start, velocity, steps=steps, method=method).end - exact).abs().max().item()
        for steps in (32, 64)
    ]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(STEPPERS[method].order, abs=0.25)


def test_a_stepper_can_be_added(monkeypatch) -> None:
    ralston = RungeKutta(((), (2 / 3,)), (0.25, 0.75), 2)
    monkeypatch.setitem(STEPPERS, "ralston", ralston)
    metric, start, velocity = CASES["sphere"]
    found = exponential_map(metric, start, velocity, steps=200, method="ralston").end
    torch.testing.assert_close(found, metric.exp(start, velocity), rtol=0, atol=1e-3)


@pytest.mark.parametrize("method", ADAPTIVE)
def test_adaptive_methods_agree(method: str) -> None:
    metric, start, velocity = CASES["half-plane"]
    # of a low order a tight tolerance takes thousands of steps
    rtol, atol, off = (1e-10, 1e-12, 1e-7) if method in ("dopri5", "dopri8") else (1e-6, 1e-8, 1e-4)
    found = exponential_map(metric, start, velocity, steps=4, method=method, rtol=rtol, atol=atol)
    torch.testing.assert_close(found.end, metric.exp(start, velocity), rtol=0, atol=off)


def test_adaptive_methods_do_not_look_past_the_end() -> None:
    """A metric without a value beyond the end: a step across it would end in NaN or in an underflow of the step."""

    class Bounded(Metric):
        def __init__(self) -> None:
            super().__init__(dim=1)

        def forward(self, c: torch.Tensor, wavelength: torch.Tensor | None = None) -> torch.Tensor:
            return torch.where(c <= 1.0 + 1e-6, torch.ones_like(c), torch.nan)

    start = torch.zeros(1, dtype=torch.float64)
    found = exponential_map(Bounded(), start, start + 1.0, steps=1, method="dopri5", rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(found.end, start + 1.0, rtol=0, atol=1e-6)
    assert found.converged.all()


def test_adaptive_methods_survive_bad_neighbours() -> None:
    start = torch.tensor([1.0, math.nan, -1.0], dtype=torch.float64)
    velocity = torch.full((3,), 0.5, dtype=torch.float64)
    found = exponential_map(PowerLaw(), start, velocity, steps=4, method="dopri5")
    assert found.status.tolist() == [0, 3, 2]
    torch.testing.assert_close(found.end[0], PowerLaw().exp(start, velocity)[0], rtol=0, atol=1e-7)


@pytest.mark.parametrize("name", ["half-plane", "power law"])
def test_jacobian_is_the_derivative_of_the_end(name: str) -> None:
    metric, start, velocity = CASES[name]
    found = exponential_map(metric, start, velocity, steps=40, jacobian=True).jacobian
    assert found is not None
    exact = torch.stack(
        [
            torch.autograd.functional.jacobian(lambda v, c=c: metric.exp(c, v), v)
            for c, v in zip(start, velocity, strict=True)
        ]
    )
    torch.testing.assert_close(found, exact, rtol=1e-4, atol=1e-6)


def test_other_rules_for_the_symbols() -> None:
    metric = MetricNetwork(hidden=(16,)).double()
    start, velocity, wl = draw(7), 0.3 * draw(7, seed=1) - 0.15, draw(7, seed=2)
    exact = exponential_map(metric, start, velocity, wl)
    for rule in (FiniteDifference(low=-0.5, high=1.5), Grid(metric, low=-0.5, high=1.5, shape=(200, 61))):
        found = exponential_map(metric, start, velocity, wl, christoffel=rule)
        torch.testing.assert_close(found.end, exact.end, rtol=0, atol=1e-5)


def test_float32() -> None:
    metric, start, velocity = CASES["half-plane"]
    found = exponential_map(metric, start.float(), velocity.float())
    assert found.end.dtype == torch.float32
    torch.testing.assert_close(found.end.double(), metric.exp(start, velocity), **tolerance(torch.float32, "solver"))


def test_failures_are_values() -> None:
    nan = math.nan
    start = torch.tensor([1.0, -1.0, nan, 1.0, 1.0], dtype=torch.float64, requires_grad=True)
    velocity = torch.tensor([0.5, 0.5, 0.5, -8.0, 0.2], dtype=torch.float64, requires_grad=True)
    metric = PowerLaw(1.0)  # ends at c = 0, where s = ⅔ c^{3/2} = 0: velocity −8 runs over it
    solution = exponential_map(metric, start, velocity, steps=20)
    assert solution.status.tolist() == [0, Status.LEFT_DOMAIN, Status.NOT_FINITE, Status.LEFT_DOMAIN, 0]
    leaps = exponential_map(metric, start, velocity, steps=50)
    assert leaps.status[3].item() == Status.MAX_ITERATIONS, "it lands in the domain again, but not by a geodesic"
    assert leaps.energy_drift[3].item() > 1
    good = [0, 4]
    torch.testing.assert_close(solution.end[good], metric.exp(start, velocity)[good], rtol=1e-6, atol=0)
    assert torch.isnan(solution.end[[1, 2, 3]]).all()
    solution.end[good].sum().backward()
    assert torch.isfinite(start.grad).all() and torch.isfinite(velocity.grad).all()
    with pytest.raises(SolverError, match=r"from -1 to nan left the domain .* \(2 more of 5"):
        solution.throw()
    with pytest.raises(SolverError):
        exponential_map(metric, start, velocity, throw=True)


def test_batches_of_any_shape() -> None:
    metric = PoincareHalfPlane()
    start, velocity = draw(2, 3, 2) + 0.5, draw(3, 2, seed=1)
    together = exponential_map(metric, start, velocity, steps=10)
    assert together.end.shape == (2, 3, 2) and together.status.shape == (2, 3)
    alone = exponential_map(metric, start[1, 2], velocity[2], steps=10)
    torch.testing.assert_close(alone.end, together.end[1, 2], **DOUBLE)
    times = torch.linspace(0, 1, 4, dtype=torch.float64)
    assert together.at(times).shape == (4, 2, 3, 2)


def test_the_axis_of_one_analyte_may_be_given() -> None:
    metric = MetricNetwork(hidden=(8,)).double()
    start, velocity, wl = draw(2, 3), draw(2, 3, seed=1), draw(2, 3, seed=2)
    plain = exponential_map(metric, start, velocity, wl, jacobian=True)
    unit = exponential_map(metric, start[..., None], velocity[..., None], wl, jacobian=True)
    assert torch.equal(unit.end[..., 0], plain.end) and unit.jacobian.shape == (2, 3, 1, 1)
    assert torch.equal(unit.at(0.5)[..., 0], plain.at(0.5))


@pytest.mark.parametrize("name", ["half-plane", "power law"])
def test_derivatives(name: str) -> None:
    metric, start, velocity = CASES[name]
    start, velocity = start[:2].clone().requires_grad_(), velocity[:2].clone().requires_grad_()

    def end(c: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return exponential_map(metric, c, v, steps=3).end

    assert torch.autograd.gradcheck(end, (start, velocity), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(end, (start, velocity), fast_mode=True)
    together = end(start, velocity)
    torch.testing.assert_close(torch.func.vmap(end)(start, velocity), together, **DOUBLE)


def test_rebuilding_the_graph_changes_no_gradient(monkeypatch) -> None:
    metric = MetricNetwork(hidden=(8,)).double()
    start, velocity, wl = draw(5), draw(5, seed=1), draw(5, seed=2)
    gradients = []
    for limit in (10**9, 1):
        monkeypatch.setattr("geonode.geodesic.ivp._CHECKPOINT_ABOVE", limit)
        metric.zero_grad()
        exponential_map(metric, start, velocity, wl).end.sum().backward()
        gradients.append([p.grad.clone() for p in metric.parameters()])
    for stored, rebuilt in zip(*gradients, strict=True):
        assert torch.equal(stored, rebuilt)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: exponential_map(Euclidean(2), x, x), "last axis is 2"),
        (lambda x: exponential_map(Euclidean(), x, x, steps=0), "steps must be at least 1"),
        (lambda x: exponential_map(Euclidean(), x, x, method="rk5"), "choose one of euler"),
        (lambda x: exponential_map(Euclidean(), x, x, christoffel="spline"), "Christoffel method="),
        (lambda x: exponential_map(Euclidean(), x, x[:2]), "do not broadcast"),
        (lambda x: exponential_map(Euclidean(), x, x.double()), "same dtype"),
        (lambda x: exponential_map(Euclidean(), x, [1.0]), "floating-point tensor, got list"),
        (lambda x: exponential_map(Euclidean(), x, x, wavelength=500.0), "tensor or None, got float"),
        (lambda x: exponential_map(Euclidean(), x, x).at(1.5), "t from 0 to 1"),
        (lambda x: exponential_map(Euclidean(), x, x).at(torch.zeros(2, 2)), "number or a vector"),
    ],
)
def test_bad_input(call, says: str) -> None:
    with pytest.raises(InputError, match=says):
        call(torch.ones(3))
