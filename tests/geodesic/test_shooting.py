"""Shooting: analytic logarithms, laws, hard problems, failures as values, implicit derivatives."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from geonode.errors import InputError, SolverError
from geonode.geodesic import Status, exponential_map, shoot
from geonode.metric import Metric, MetricNetwork, PoincareHalfPlane, PowerLaw, Sphere, WarpMetric
from tests.tolerances import tolerance

DOUBLE = tolerance(torch.float64, "solver")


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CASES = {
    "half-plane": (PoincareHalfPlane(), draw(8, 2) + 0.8, draw(8, 2, seed=1) + 0.8),
    "sphere": (Sphere(), draw(8, 2) + 1.0, draw(8, 2, seed=1) + 1.0),
    "power law": (PowerLaw(), 3.0 * draw(8) + 0.3, 3.0 * draw(8, seed=1) + 0.3),
}


# ------------------------------------------------------------------ exact answers and laws


@pytest.mark.smoke
@pytest.mark.parametrize("name", CASES)
def test_finds_the_analytic_logarithm(name: str) -> None:
    metric, start, end = CASES[name]
    solution = shoot(metric, start, end, ode_steps=100, newton_steps=6, stages=1)
    assert bool(solution.converged.all())
    torch.testing.assert_close(solution.initial_velocity, metric.log(start, end), rtol=0, atol=1e-8)
    torch.testing.assert_close(solution.at(1.0), end, rtol=0, atol=1e-8)
    torch.testing.assert_close(solution.at(0.5), metric.exp(start, 0.5 * metric.log(start, end)), rtol=0, atol=1e-8)
    assert solution.residual.max().item() < 1e-8 and solution.energy_drift.max().item() < 1e-7


@settings(max_examples=5)
@given(st.integers(0, 100))
def test_exponential_map_and_shooting_are_inverse(seed: int) -> None:
    """The two share a discretisation, so they are inverse to rounding however coarse the steps."""
    metric = MetricNetwork(dim=2, hidden=(8,), seed=seed).double()
    start, velocity, wl = draw(4, 2, seed=seed), draw(4, 2, seed=seed + 1) - 0.5, draw(4, seed=seed)
    there = exponential_map(metric, start, velocity, wl, steps=6)
    solution = shoot(metric, start, there.end, wl, ode_steps=6, newton_steps=6, stages=1)
    assert bool(solution.converged.all())
    torch.testing.assert_close(solution.initial_velocity, velocity, **DOUBLE)


@settings(max_examples=4)
@given(st.integers(0, 100), st.integers(1, 2))
def test_reversed_geodesic_is_the_geodesic_back(seed: int, dim: int) -> None:
    metric = MetricNetwork(dim=dim, hidden=(8,), seed=seed).double()
    shape = (3,) if dim == 1 else (3, dim)
    a, b, wl = draw(*shape, seed=seed), draw(*shape, seed=seed + 1), draw(3, seed=seed)
    there, back = (shoot(metric, x, y, wl, ode_steps=12, newton_steps=4, stages=1) for x, y in ((a, b), (b, a)))
    t = torch.linspace(0.0, 1.0, 5, dtype=torch.float64)
    torch.testing.assert_close(there.at(t), back.at(1.0 - t), rtol=0, atol=1e-5)
    lengths = [metric.energy(x.start, x.initial_velocity, wl).sqrt() for x in (there, back)]
    torch.testing.assert_close(*lengths, rtol=1e-5, atol=0)


def test_no_path_is_no_motion() -> None:
    metric, start, _ = CASES["half-plane"]
    solution = shoot(metric, start, start.clone(), ode_steps=4)
    assert torch.equal(solution.initial_velocity, torch.zeros_like(start))
    assert solution.status.tolist() == [0] * 8 and solution.iterations.max().item() <= 4


def test_any_batch_shape() -> None:
    metric = MetricNetwork(hidden=(8,)).double()
    a, b, wl = draw(2, 3, 1), draw(2, 3, 1, seed=1), draw(4)
    together = shoot(metric, a, b, wl, ode_steps=6, newton_steps=4, stages=2)
    assert together.initial_velocity.shape == (2, 3, 4) == together.status.shape
    alone = shoot(metric, a[1, 2, 0], b[1, 2, 0], wl[3], ode_steps=6, newton_steps=4, stages=2)
    torch.testing.assert_close(together.initial_velocity[1, 2, 3], alone.initial_velocity, **DOUBLE)
    full = shoot(
        metric,
        *(x.expand(2, 3, 4)[..., None] for x in (a, b)),
        wl.expand(2, 3, 4),
        ode_steps=6,
        newton_steps=4,
        stages=2,
    )
    assert torch.equal(full.initial_velocity[..., 0], together.initial_velocity)


def test_stacked_models() -> None:
    stack = MetricNetwork(hidden=(8,), models=2, seed=3).double()
    a, b, wl = draw(1, 4), draw(1, 4, seed=1), draw(4)
    together = shoot(stack, a.expand(2, 4), b.expand(2, 4), wl.expand(2, 4), ode_steps=6, stages=1)
    for m in range(2):
        single = MetricNetwork(hidden=(8,), seed=3 + m).double()
        alone = shoot(single, a[0], b[0], wl, ode_steps=6, stages=1)
        torch.testing.assert_close(together.initial_velocity[m], alone.initial_velocity, **DOUBLE)


def test_float32() -> None:
    metric, start, end = CASES["half-plane"]
    solution = shoot(metric, start.float(), end.float(), stages=1, newton_steps=5)
    assert solution.initial_velocity.dtype == torch.float32 and bool(solution.converged.all())
    torch.testing.assert_close(
        solution.initial_velocity.double(), metric.log(start, end), **tolerance(torch.float32, "solver")
    )


# ------------------------------------------------------------------ problems that plain Newton loses


def test_half_plane_at_distance_1_9() -> None:
    metric = PoincareHalfPlane()
    angle = torch.linspace(0.0, 2.0 * math.pi, 13, dtype=torch.float64)[:-1]
    start = torch.tensor([0.0, 1.0], dtype=torch.float64).expand(12, 2)
    velocity = 1.9 * torch.stack([angle.cos(), angle.sin()], -1)
    solution = shoot(metric, start, metric.exp(start, velocity), ode_steps=60)
    assert bool(solution.converged.all())
    torch.testing.assert_close(solution.initial_velocity, velocity, rtol=0, atol=1e-7)


def test_far_ends_need_more_stages() -> None:
    metric = PoincareHalfPlane()
    angle = torch.linspace(0.0, 2.0 * math.pi, 9, dtype=torch.float64)[:-1]
    start = torch.tensor([0.0, 1.0], dtype=torch.float64).expand(8, 2)
    velocity = 6.0 * torch.stack([angle.cos(), angle.sin()], -1)
    end = metric.exp(start, velocity)
    few = shoot(metric, start, end, ode_steps=40, stages=1)
    many = shoot(metric, start, end, ode_steps=40, stages=8)
    assert bool(many.converged.all())
    torch.testing.assert_close(many.initial_velocity, velocity, rtol=0, atol=1e-3)
    assert not bool(few.converged.all()), "one stage loses some of these, and says so"
    torch.testing.assert_close(few.initial_velocity[few.converged], velocity[few.converged], rtol=0, atol=1e-3)


def test_a_warp_of_three_per_mille() -> None:
    """Half of the way lies in the lowest 0.3 % of the range: from v = b − a Newton converges for 24 of 30 pairs."""
    weights = torch.zeros(13, dtype=torch.float64)
    weights[8] = 1.0  # logarithm(0.003)
    metric = WarpMetric.from_weights(weights, c_max=60.0)
    levels = torch.tensor([0.0, 10.0, 20.0, 30.0, 40.0, 60.0], dtype=torch.float64)
    a, b = (x.flatten() for x in torch.meshgrid(levels, levels, indexing="ij"))
    solution = shoot(metric, a, b)
    assert bool(solution.converged.all())
    exact = (metric.arc_length(b) - metric.arc_length(a)) / metric.scaled_derivative(a)
    torch.testing.assert_close(solution.initial_velocity, exact, rtol=1e-3, atol=0)


# ------------------------------------------------------------------ failures


class Wall(Metric):
    """gain times the half-plane for x ≤ 1, NaN beyond; D = 2."""

    def __init__(self) -> None:
        super().__init__(dim=2)
        self.gain = torch.nn.Parameter(torch.tensor(1.5, dtype=torch.float64))
        self.plane = PoincareHalfPlane()

    def _walled(self, c: Tensor, value: Tensor) -> Tensor:
        beyond = (c[..., 0] > 1.0).reshape(*c.shape[:-1], *([1] * (value.ndim - c.ndim + 1)))
        return torch.where(beyond, torch.nan, self.gain * value)

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        return self._walled(c, self.plane(c))

    def value_and_derivative(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        g, dg = self.plane.value_and_derivative(c)
        return self._walled(c, g), self._walled(c, dg)

    def two_derivatives(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        g, dg, d2g = self.plane.two_derivatives(c)
        return self._walled(c, g), self._walled(c, dg), self._walled(c, d2g)

    def reference(self, like: Tensor) -> Tensor:
        return self.plane.reference(like)


def test_one_failure_leaves_neighbours_and_gradients_alone() -> None:
    nan = math.nan
    start = torch.tensor([[0.0, 1.0], [0.0, 1.0], [nan, 1.0], [0.2, 1.1]], dtype=torch.float64, requires_grad=True)
    end = torch.tensor([[0.5, 1.8], [2.0, 1.5], [0.5, 1.5], [0.7, 0.9]], dtype=torch.float64, requires_grad=True)
    metric = Wall()
    settings = {"ode_steps": 3, "newton_steps": 5, "stages": 1}
    solution = shoot(metric, start, end, **settings)
    assert solution.status.tolist() == [0, Status.NOT_FINITE, Status.NOT_FINITE, 0]
    alone = shoot(metric, start[[0, 3]], end[[0, 3]], **settings)
    torch.testing.assert_close(solution.initial_velocity[[0, 3]], alone.initial_velocity, **tolerance(torch.float64))
    path = solution.at(0.5)
    assert torch.isnan(path[[1, 2]]).all() and torch.isfinite(path[[0, 3]]).all()
    (torch.where(solution.converged[:, None], solution.initial_velocity, 0.0).sum() + path[[0, 3]].sum()).backward()
    for tensor in (start, end, metric.gain):
        assert torch.isfinite(tensor.grad).all()


def test_what_cannot_be_reached_is_reported() -> None:
    metric = PoincareHalfPlane()
    start = torch.tensor([[0.0, 1.0]] * 3, dtype=torch.float64)
    end = torch.tensor([[0.5, 1.0], [0.5, -1.0], [4000.0, 1e-3]], dtype=torch.float64)
    solution = shoot(metric, start, end, ode_steps=10, newton_steps=6, stages=1)
    assert solution.status[:2].tolist() == [0, Status.LEFT_DOMAIN]
    assert solution.status[2].item() != Status.CONVERGED
    with pytest.raises(SolverError, match=r"from \(0, 1\) to \(0\.5, -1\) left the domain .* \(1 more of 3"):
        solution.throw()


def test_too_coarse_a_discretisation_is_not_called_converged() -> None:
    metric = PoincareHalfPlane()
    start, far = torch.tensor([[0.0, 1.0]]).double(), torch.tensor([[6.0, 0.3]]).double()
    solution = shoot(metric, start, far, ode_steps=3, stages=8)
    assert solution.status.item() == Status.MAX_ITERATIONS and solution.energy_drift.item() > 0.05
    assert shoot(metric, start, far, ode_steps=40, stages=8).status.item() == Status.CONVERGED


def test_a_vertical_geodesic_conserves_energy_at_any_step_and_is_judged_by_its_end() -> None:
    metric = PoincareHalfPlane()
    start, end = torch.tensor([[0.5, 1.0]]).double(), torch.tensor([[0.5, 60.0]]).double()
    coarse = shoot(metric, start, end, ode_steps=3, stages=8)
    assert coarse.energy_drift.item() < 1e-9 and coarse.status.item() == Status.MAX_ITERATIONS
    fine = shoot(metric, start, end, ode_steps=40, stages=8)
    assert fine.status.item() == Status.CONVERGED
    torch.testing.assert_close(fine.initial_velocity, metric.log(start, end), rtol=1e-4, atol=1e-9)
    velocity = metric.log(start, end)
    assert exponential_map(metric, start, velocity, steps=3).status.item() == Status.MAX_ITERATIONS
    assert exponential_map(metric, start, velocity, steps=40).status.item() == Status.CONVERGED


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: shoot(PowerLaw(), x, x, newton_steps=0), "newton_steps must be at least 1"),
        (lambda x: shoot(PowerLaw(), x, x, ode_steps=0), "ode_steps must be at least 1"),
        (lambda x: shoot(PowerLaw(), x, x, stages=0), "stages must be at least 1"),
        (lambda x: shoot(PowerLaw(), x, x, method="rk45"), "Unknown stepper"),
        (lambda x: shoot(PoincareHalfPlane(), x, x), "last axis is 2"),
        (lambda x: shoot(PowerLaw(), x, x[:1].double()), "same dtype"),
        (lambda x: shoot(PowerLaw(), x, torch.ones(2)), "do not broadcast"),
    ],
)
def test_bad_input(call, says: str) -> None:
    with pytest.raises(InputError, match=says):
        call(torch.ones(3))


# ------------------------------------------------------------------ derivatives


class _Call(torch.nn.Module):
    def __init__(self, metric: Metric) -> None:
        super().__init__()
        self.metric = metric

    def forward(self, start: Tensor, end: Tensor, wavelength: Tensor) -> Tensor:
        return shoot(
            self.metric, start, end, wavelength, newton_steps=3, ode_steps=2, stages=1, drift_tolerance=1.0
        ).initial_velocity


def implicit(dim: int):
    """Velocity as a function of both ends, wavelength and weights; and its inputs.

    The weights are one vector: a check costs by the input, and a direction in all of them tells what one in each does.
    """
    metric = MetricNetwork(dim=dim, hidden=(2,), seed=2).double()
    named = dict(metric.named_parameters())
    together = torch.cat([p.detach().flatten() for p in named.values()])

    def function(start: Tensor, end: Tensor, wavelength: Tensor, together: Tensor) -> Tensor:
        weights = together.split([p.numel() for p in named.values()])
        parameters = {f"metric.{n}": w.view_as(p) for (n, p), w in zip(named.items(), weights, strict=True)}
        return torch.func.functional_call(_Call(metric), parameters, (start, end, wavelength))

    shape = (2,) if dim == 1 else (2, dim)
    start = draw(*shape)
    inputs = [start, start + 0.3 * draw(*shape, seed=1), draw(2, seed=2), together]
    return function, tuple(x.requires_grad_() for x in inputs)


@pytest.mark.parametrize("dim", [1, 2])
def test_gradcheck(dim: int) -> None:
    function, inputs = implicit(dim)
    assert torch.autograd.gradcheck(function, inputs, fast_mode=True, check_forward_ad=True)


@pytest.mark.parametrize("dim", [1, 2])
def test_gradgradcheck(dim: int) -> None:
    function, inputs = implicit(dim)
    assert torch.autograd.gradgradcheck(function, inputs, fast_mode=True)


@pytest.mark.parametrize("dim", [1, 2])
def test_jvp_and_vmap(dim: int) -> None:
    function, (start, end, wavelength, *weights) = implicit(dim)
    start, end, wavelength = (x.detach() for x in (start, end, wavelength))
    solve = lambda a, b, w: function(a, b, w, *weights)  # noqa: E731
    together = solve(start, end, wavelength)
    torch.testing.assert_close(torch.func.vmap(solve)(start, end, wavelength), together, **DOUBLE)
    tangents = (torch.ones_like(start), 2 * torch.ones_like(end), 3 * torch.ones_like(wavelength))
    _, tangent = torch.func.jvp(solve, (start, end, wavelength), tangents)
    h = 1e-6
    plus, minus = (solve(start + s, end + 2 * s, wavelength + 3 * s) for s in (h, -h))
    torch.testing.assert_close(tangent, (plus - minus) / (2 * h), rtol=1e-6, atol=1e-8)
    by_vmap = torch.func.vmap(lambda a, b, w: torch.func.jacrev(solve, 1)(a, b, w))(start, end, wavelength)
    assert torch.isfinite(by_vmap).all()
