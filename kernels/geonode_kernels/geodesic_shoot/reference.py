"""Two-point geodesics by shooting in plain torch, for any metric and any D: the torch path, and the kernel's
specification.

The derivative ∂c(1)/∂ċ(0) comes from Jacobi fields (D ≥ 2) or energy conservation (D = 1), never from differences of
trajectories. Newton starts from the chord's length over √g(a) and follows the end point outwards in a fixed number of
stages; a step that makes the residual worse is shortened, so that one bad step does not lose a problem. All counts are
fixed and all choices are ``where``: nothing synchronises, and no problem influences another.

Derivatives are implicit: Newton steps are attached to the graph from the detached root. With F(v, θ) = 0 at the root
and J = ∂F/∂v, one step v − J⁻¹F has the right first derivative −J⁻¹∂F/∂θ; the second step makes every second derivative
right. For D = 1 J is that of the exact geodesic, off by some e ≪ 1 from the discrete path's: then n steps leave eⁿ of
the first derivative out. e is what the discretisation errs by (5e-3 for three steps across a warp), so two steps would
leave 3e-5 out there, and there are three.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ..geodesic_rk4.reference import NetworkPaths
from ..paths import (
    CONVERGED,
    Paths,
    allowed_residual,
    choose,
    halving_change,
    norm,
    per_problem,
    relative_drift,
    sound,
    status_of,
)

STAGE_STEPS = 3  # Newton steps at every stage before the last: enough to stay in the basin of the next
CHORD_NODES = 17
ATTACHED = (2, 3)  # Newton steps in the graph: by Jacobi fields, which are exact, and by conservation of energy


class Shot(NamedTuple):
    """Per problem [...]: dc/dt at 0, ``status`` (int64), residual |c(1) − end|, Newton iterations until the tolerance
    (int64), and the relative change of the energy g(v, v)."""

    velocity: Tensor
    status: Tensor
    residual: Tensor
    iterations: Tensor
    drift: Tensor


def geodesic_shoot(
    start: Tensor,
    end: Tensor,
    wavelength: Tensor,
    *weights: Tensor,
    steps: int = 20,
    newton: int = 10,
    stages: int = 4,
    tolerance: float = 1e-4,
    drift_tolerance: float = 0.05,
    output: str = "softplus",
) -> Shot:
    """Geodesics from ``start`` to ``end`` [M, N] of a network's metric; weights as in `metric_christoffel`."""
    paths = NetworkPaths(weights, output, steps)
    return shoot(paths, start, end, wavelength, newton, stages, tolerance, drift_tolerance)


def shoot(
    paths: Paths,
    start: Tensor,
    end: Tensor,
    wavelength: Tensor | None,
    newton: int,
    stages: int,
    tolerance: float,
    drift_tolerance: float,
) -> Shot:
    """Geodesics from ``start`` to ``end`` [...] or [..., D]; the velocity is differentiable to second order.

    Problems that did not converge keep their best iterate, without gradient. A problem converged if its residual is at
    most ``tolerance`` of the distance asked for (some rounding errors are always allowed), and neither its energy nor,
    when the steps are halved, its end changes by more than ``drift_tolerance``, relatively.
    """
    found = search(paths, start, end, wavelength, newton, stages, tolerance, drift_tolerance)
    velocity = attach(paths, start, end, wavelength, found.velocity, found.status)
    return found._replace(velocity=velocity)


@torch.no_grad()
def search(
    paths: Paths,
    start: Tensor,
    end: Tensor,
    wavelength: Tensor | None,
    newton: int,
    stages: int,
    tolerance: float,
    drift_tolerance: float,
) -> Shot:
    """The roots without a graph, and what became of each problem; arguments as for `shoot`."""
    finite, _ = sound(paths, wavelength, start, end)
    valid = paths.in_domain(start) & paths.in_domain(end)
    a, b, wl = replaced(paths, finite & valid, start, end, wavelength)
    for point in (a, b):
        finite = finite & torch.isfinite(paths.energy(point, torch.ones_like(point), wl))
    found = _continuation(paths, a.detach(), b.detach(), None if wl is None else wl.detach(), newton, stages, tolerance)
    allowed = allowed_residual(paths.dim, start, end, tolerance)
    change = halving_change(paths, a, found.velocity, wl, b)
    status = status_of(
        finite,
        valid & found.inside,
        torch.isfinite(found.residual),
        (found.residual <= allowed) & (found.drift <= drift_tolerance) & (change <= drift_tolerance),
    )
    return Shot(found.velocity, status, found.residual, found.iterations, found.drift)


def attach(
    paths: Paths, start: Tensor, end: Tensor, wavelength: Tensor | None, velocity: Tensor, status: Tensor
) -> Tensor:
    """``velocity`` with its derivatives by the ends, the wavelength and the metric, for the problems that converged.

    The others are replaced at their input, because masking their output would leave NaN in the gradient of every
    weight.
    """
    good = status == CONVERGED
    a, b, wl = replaced(paths, good, start, end, wavelength)
    root = choose(paths.dim, good, velocity, torch.zeros_like(velocity))
    for _ in range(ATTACHED[paths.dim == 1]):
        reached, _, _, jacobian = paths.with_jacobian(a, root, wl)
        root = root - paths.solve(jacobian, reached - b)
    return choose(paths.dim, good, root, velocity)


def replaced(
    paths: Paths, good: Tensor, start: Tensor, end: Tensor, wavelength: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The problems, with a harmless one that does not move in place of each that is not good."""
    harmless = paths.reference(start)
    wl = None if wavelength is None else torch.where(good, wavelength, torch.zeros_like(wavelength))
    return choose(paths.dim, good, start, harmless), choose(paths.dim, good, end, harmless), wl


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


def _continuation(
    paths: Paths, a: Tensor, b: Tensor, wavelength: Tensor | None, newton: int, stages: int, tolerance: float
) -> _Newton:
    """Continuation in the target: every stage starts from the last one's velocity, stretched to the next target."""
    first, fractions = _chord(paths, a, b - a, wavelength, stages)
    zero = torch.zeros_like(norm(paths.dim, a))
    state = _Newton(torch.zeros_like(a), first, zero, zero, zero, zero.bool(), zero.long())
    for k in range(1, stages + 1):
        last = k == stages
        target = b if last else a + (b - a) * per_problem(paths.dim, fractions[k - 1])
        if k > 1:
            state.step = state.velocity / (k - 1)
        state.residual = torch.full_like(zero, torch.inf)
        state.damping = torch.ones_like(zero)
        state.inside = torch.zeros_like(zero, dtype=torch.bool)
        allowed = allowed_residual(paths.dim, a, target, tolerance)
        for _ in range(newton if last else STAGE_STEPS):
            _newton_step(paths, state, a, target, wavelength, allowed)
    return state


def _newton_step(
    paths: Paths, state: _Newton, a: Tensor, target: Tensor, wavelength: Tensor | None, allowed: Tensor
) -> None:
    """Try the step; keep it where the residual fell, shorten it elsewhere."""
    dim = paths.dim
    trial = state.velocity + per_problem(dim, state.damping) * state.step
    reached, end_velocity, inside, jacobian = paths.with_jacobian(a, trial, wavelength)
    miss = reached - target
    residual = norm(dim, miss)
    step = -paths.solve(jacobian, miss)
    better = (residual < state.residual) & torch.isfinite(norm(dim, step)) & inside
    drift = relative_drift(paths, wavelength, (a, trial), [(reached, end_velocity)])
    state.iterations = state.iterations + (state.residual > allowed)
    state.velocity = choose(dim, better, trial, state.velocity)
    state.step = choose(dim, better, step, state.step)
    state.residual = torch.where(better, residual, state.residual)
    state.drift = torch.where(better, drift, state.drift)
    state.inside = state.inside | better
    state.damping = torch.where(better, (2.0 * state.damping).clamp_max(1.0), 0.25 * state.damping)


def chord_places(like: Tensor) -> Tensor:
    """Where along the chord its length is measured, [CHORD_NODES] in [0, 1]: denser towards the ends."""
    return 0.5 - 0.5 * torch.linspace(0.0, torch.pi, CHORD_NODES, dtype=like.dtype, device=like.device).cos()


def _chord(
    paths: Paths, a: Tensor, chord: Tensor, wavelength: Tensor | None, stages: int
) -> tuple[Tensor, list[Tensor]]:
    """First velocity, and the fractions of the chord at which 1/stages, 2/stages, … of its length are covered.

    Equal lengths, not equal coordinates: towards the edge of a half-plane most of the way lies in the last per cent of
    the coordinate. The first velocity has the chord's direction and covers 1/stages of its length in unit time.
    """
    places = chord_places(a)
    speeds, covered = [], [torch.zeros_like(norm(paths.dim, a))]
    for i in range(CHORD_NODES):
        speeds.append(paths.energy(a + places[i] * chord, chord, wavelength).clamp_min(0.0).sqrt())
        if i:
            covered.append(covered[-1] + 0.5 * (places[i] - places[i - 1]) * (speeds[-1] + speeds[-2]))
    length, at_start = covered[-1], speeds[0]
    usable = torch.isfinite(length) & (length > 0) & (at_start > 0)
    ratio = torch.where(usable, length, 1.0) / torch.where(usable, at_start, 1.0)
    table = torch.stack(covered) / torch.where(usable, length, 1.0)
    fractions = []
    for k in range(1, stages):
        cell = (table <= k / stages).sum(0, keepdim=True).clamp(1, CHORD_NODES - 1)
        low, high = table.gather(0, cell - 1)[0], table.gather(0, cell)[0]
        left, right = places[cell[0] - 1], places[cell[0]]
        fraction = left + (right - left) * (k / stages - low) / torch.where(high > low, high - low, 1.0)
        fractions.append(torch.where(usable, fraction, k / stages))
    return chord * per_problem(paths.dim, ratio / stages), fractions
