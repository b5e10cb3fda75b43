"""Two-point geodesics by shooting: Newton on the initial velocity, batched over every problem.

The derivative ∂c(1)/∂ċ(0) comes from Jacobi fields (D ≥ 2) or energy conservation (D = 1), never from differences of
trajectories. Newton starts from the chord's length over √g(a) and follows the end point outwards in a fixed number of
stages; a step that makes the residual worse is shortened, so that one bad step does not lose a problem. All counts are
fixed and all choices are ``where``: nothing synchronises, and no problem influences another.

Derivatives are implicit: two Newton steps are attached to the graph from the detached root. With F(v, θ) = 0 at the
root, one step v − J⁻¹F has the right first derivative −J⁻¹∂F/∂θ; the second step makes every second derivative right.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from geonode.christoffel import ChristoffelRule, make_rule
from geonode.errors import InputError
from geonode.geodesic.ivp import (
    Flow,
    allowed_residual,
    check_problem,
    choose,
    default_tolerance,
    halving_change,
    norm,
    relative_drift,
    sound,
    status_of,
    stepper,
)
from geonode.geodesic.solution import GeodesicSolution, HermitePath, Status
from geonode.metric.base import Metric, small_inverse

_STAGE_STEPS = 3  # Newton steps at every stage before the last: enough to stay in the basin of the next
_CHORD_NODES = 17


@dataclass
class _Newton:
    """State of the damped Newton iteration: the best velocity so far and the step to try from it."""

    velocity: Tensor
    step: Tensor
    residual: Tensor  # |c(1) − target| at ``velocity``; infinite before the first success
    drift: Tensor
    damping: Tensor
    inside: Tensor
    iterations: Tensor


def shoot(
    metric: Metric,
    start: Tensor,
    end: Tensor,
    wavelength: Tensor | None = None,
    newton_steps: int = 10,
    ode_steps: int = 20,
    stages: int = 4,
    tolerance: float | None = None,
    drift_tolerance: float = 0.05,
    method: str = "rk4",
    christoffel: str | ChristoffelRule = "exact",
    throw: bool = False,
) -> GeodesicSolution:
    """Geodesics from ``start`` to ``end`` by shooting, for any number of analytes.

    Args:
        metric: a ``Metric``.
        start, end: [...] (D = 1; [..., 1] also accepted beside a wavelength [...]) or [..., D]; user units.
        wavelength: [...], broadcast; None for metrics that use none.
        newton_steps: Newton iterations on the full target; earlier stages take three each.
        ode_steps: steps of the integrator over t ∈ [0, 1]; RK4 errs by O(ode_steps⁻⁴).
        stages: targets on the chord from start to end, the last being the end itself; 8–16 for far targets.
        tolerance: largest residual, relative to |end − start|, that counts as converged; None for 1e-9 in float64
            and 1e-4 in float32. A few rounding errors of the end points are always allowed.
        drift_tolerance: largest relative change of g(ċ, ċ), and of the end point under halving of the steps, that
            counts as converged: a root of too coarse a discretisation is no geodesic.
        method: a key of STEPPERS.
        christoffel: a rule or its name, see ``geonode.christoffel``.
        throw: raise SolverError instead of returning a failure.

    Returns:
        ``initial_velocity`` is differentiable to second order in start, end, wavelength and every parameter of the
        metric. Problems that fail keep their best iterate, without gradient, and say why in ``status``.

    Raises:
        InputError: arguments that do not fit together, unknown names, or counts below one.
        SolverError: a problem failed and ``throw`` is set.
    """
    unit, (start, end) = check_problem(metric, wavelength, start=start, end=end)
    for name, count in (("newton_steps", newton_steps), ("ode_steps", ode_steps), ("stages", stages)):
        if count < 1:
            raise InputError(f"{name} must be at least 1, got {count}.")
    flow = Flow(metric, make_rule(christoffel, metric), stepper(method), ode_steps)
    tolerance = default_tolerance(metric, start.dtype, start.device.type) if tolerance is None else tolerance
    start, end = _expand(metric, wavelength, start, end)

    finite, _ = sound(metric, wavelength, start, end)
    valid = metric.in_domain(start) & metric.in_domain(end)
    first = _problem(metric, finite & valid, start, end, wavelength)
    finite = finite & _metric_is_finite(metric, *first)
    found = _solve(flow, *first, newton_steps, stages, tolerance)
    allowed = allowed_residual(metric, start, end, tolerance)
    change = halving_change(flow, first[0], found.velocity, first[2], first[1])
    status = status_of(
        finite,
        valid & found.inside,
        torch.isfinite(found.residual),
        (found.residual <= allowed) & (found.drift <= drift_tolerance) & (change <= drift_tolerance),
    )
    good = status == Status.CONVERGED

    # Attached steps run on good problems only; the others are replaced at their input, because masking their output
    # would leave NaN in the gradient of every weight.
    a, b, wl = _problem(metric, good, start, end, wavelength)
    velocity = choose(metric, good, found.velocity, torch.zeros_like(found.velocity))
    for _ in range(2):
        reached, _, _, jacobian = flow.with_jacobian(a, velocity, wl)
        velocity = velocity - _apply_inverse(metric, jacobian, reached - b)
    velocity = choose(metric, good, velocity, found.velocity)
    return _finish(flow, start, end, wavelength, velocity, status, found, unit, throw)


def _expand(metric: Metric, wavelength: Tensor | None, *points: Tensor) -> tuple[Tensor, ...]:
    """Points expanded to the common batch shape."""
    shapes = [p.shape if metric.dim == 1 else p.shape[:-1] for p in points]
    batch = torch.broadcast_shapes(*shapes, *([] if wavelength is None else [wavelength.shape]))
    full = batch if metric.dim == 1 else (*batch, metric.dim)
    return tuple(p.expand(full) for p in points)


def _problem(
    metric: Metric, good: Tensor, start: Tensor, end: Tensor, wavelength: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The problems, with a harmless one that does not move in place of each that is not good."""
    harmless = metric.reference(start)
    wl = None if wavelength is None else torch.where(good, wavelength, torch.zeros_like(wavelength))
    return choose(metric, good, start, harmless), choose(metric, good, end, harmless), wl


@torch.no_grad()
def _metric_is_finite(metric: Metric, start: Tensor, end: Tensor, wavelength: Tensor | None) -> Tensor:
    energies = [metric.energy(point, torch.ones_like(point), wavelength) for point in (start, end)]
    return torch.isfinite(energies[0]) & torch.isfinite(energies[1])


def _per_problem(metric: Metric, x: Tensor) -> Tensor:
    return x if metric.dim == 1 else x.unsqueeze(-1)


def _apply_inverse(metric: Metric, jacobian: Tensor, residual: Tensor) -> Tensor:
    if metric.dim == 1:
        return residual / jacobian
    return (small_inverse(jacobian) * residual.unsqueeze(-2)).sum(-1)


@torch.no_grad()
def _solve(
    flow: Flow, a: Tensor, b: Tensor, wavelength: Tensor | None, newton_steps: int, stages: int, tolerance: float
) -> _Newton:
    """Continuation in the target: every stage starts from the last one's velocity, stretched to the next target."""
    metric = flow.metric
    a, b = a.detach(), b.detach()
    wavelength = None if wavelength is None else wavelength.detach()
    first, fractions = _chord(metric, a, b - a, wavelength, stages)
    zero = torch.zeros_like(norm(metric, a))
    state = _Newton(torch.zeros_like(a), first, zero, zero, zero, zero.bool(), zero.long())
    for k in range(1, stages + 1):
        last = k == stages
        target = b if last else a + (b - a) * _per_problem(metric, fractions[k - 1])
        if k > 1:
            state.step = state.velocity / (k - 1)
        state.residual = torch.full_like(zero, torch.inf)
        state.damping = torch.ones_like(zero)
        state.inside = torch.zeros_like(zero, dtype=torch.bool)
        allowed = allowed_residual(metric, a, target, tolerance)
        for _ in range(newton_steps if last else _STAGE_STEPS):
            _newton_step(flow, state, a, target, wavelength, allowed)
    return state


def _newton_step(
    flow: Flow, state: _Newton, a: Tensor, target: Tensor, wavelength: Tensor | None, allowed: Tensor
) -> None:
    """Try the step; keep it where the residual fell, shorten it elsewhere."""
    metric = flow.metric
    trial = state.velocity + _per_problem(metric, state.damping) * state.step
    reached, end_velocity, inside, jacobian = flow.with_jacobian(a, trial, wavelength)
    miss = reached - target
    residual = norm(metric, miss)
    step = -_apply_inverse(metric, jacobian, miss)
    better = (residual < state.residual) & torch.isfinite(norm(metric, step)) & inside
    drift = relative_drift(metric, wavelength, (a, trial), [(reached, end_velocity)])
    state.iterations = state.iterations + (state.residual > allowed)
    state.velocity = choose(metric, better, trial, state.velocity)
    state.step = choose(metric, better, step, state.step)
    state.residual = torch.where(better, residual, state.residual)
    state.drift = torch.where(better, drift, state.drift)
    state.inside = state.inside | better
    state.damping = torch.where(better, (2.0 * state.damping).clamp_max(1.0), 0.25 * state.damping)


def _chord(
    metric: Metric, a: Tensor, chord: Tensor, wavelength: Tensor | None, stages: int
) -> tuple[Tensor, list[Tensor]]:
    """First velocity, and the fractions of the chord at which 1/stages, 2/stages, … of its length are covered.

    Equal lengths, not equal coordinates: towards the edge of a half-plane most of the way lies in the last per cent of
    the coordinate. The first velocity has the chord's direction and covers 1/stages of its length in unit time.
    """
    places = 0.5 - 0.5 * torch.linspace(0.0, torch.pi, _CHORD_NODES, dtype=a.dtype, device=a.device).cos()
    speeds, covered = [], [torch.zeros_like(norm(metric, a))]
    for i in range(_CHORD_NODES):
        speeds.append(metric.energy(a + places[i] * chord, chord, wavelength).clamp_min(0.0).sqrt())
        if i:
            covered.append(covered[-1] + 0.5 * (places[i] - places[i - 1]) * (speeds[-1] + speeds[-2]))
    length, at_start = covered[-1], speeds[0]
    usable = torch.isfinite(length) & (length > 0) & (at_start > 0)
    ratio = torch.where(usable, length, 1.0) / torch.where(usable, at_start, 1.0)
    table = torch.stack(covered) / torch.where(usable, length, 1.0)
    fractions = []
    for k in range(1, stages):
        cell = (table <= k / stages).sum(0, keepdim=True).clamp(1, _CHORD_NODES - 1)
        low, high = table.gather(0, cell - 1)[0], table.gather(0, cell)[0]
        left, right = places[cell[0] - 1], places[cell[0]]
        fraction = left + (right - left) * (k / stages - low) / torch.where(high > low, high - low, 1.0)
        fractions.append(torch.where(usable, fraction, k / stages))
    return chord * _per_problem(metric, ratio / stages), fractions


def _finish(
    flow: Flow,
    start: Tensor,
    end: Tensor,
    wavelength: Tensor | None,
    velocity: Tensor,
    status: Tensor,
    found: _Newton,
    unit: bool,
    throw: bool,
) -> GeodesicSolution:
    metric, good = flow.metric, status == Status.CONVERGED

    def position(t: Tensor) -> Tensor:
        """Integrated when first asked for: most callers want the velocity alone."""
        a, _, wl = _problem(metric, good, start, end, wavelength)
        states: list[tuple[Tensor, Tensor]] = []
        flow(a, choose(metric, good, velocity, torch.zeros_like(velocity)), wl, states)
        path = HermitePath(torch.stack([c for c, _ in states]), torch.stack([v for _, v in states]))(t)
        path = choose(metric, good, path, torch.full_like(path, torch.nan))
        return path.unsqueeze(-1) if unit else path

    solution = GeodesicSolution(
        start=start.unsqueeze(-1) if unit else start,
        end=end.unsqueeze(-1) if unit else end,
        initial_velocity=velocity.unsqueeze(-1) if unit else velocity,
        status=status,
        residual=found.residual,
        iterations=found.iterations,
        energy_drift=found.drift,
        position=position,
        wavelength=wavelength,
    )
    return solution.throw() if throw else solution
