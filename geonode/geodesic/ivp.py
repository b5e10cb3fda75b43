"""The exponential map: follow the geodesic that leaves a point with a given velocity.

c̈ᵏ = −Γᵏᵢⱼ ċⁱ ċʲ as a first-order system in (c, ċ) over t ∈ [0, 1], by fixed-step explicit Runge–Kutta methods written
as plain loops: they run under vmap, jvp, export and double backward. torchdiffeq's adaptive methods serve as a check.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

from geonode.christoffel import ChristoffelRule, make_rule, matmul
from geonode.errors import InputError, SolverError
from geonode.geodesic.solution import GeodesicSolution, HermitePath, Status
from geonode.metric.base import Metric, drop_unit_axis

State = tuple[Tensor, ...]
Field = Callable[[State], State]


@dataclass(frozen=True)
class RungeKutta:
    """An explicit Runge–Kutta method: strictly lower triangular ``a`` (a row per stage), weights ``b``, ``order``."""

    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    order: int

    def step(self, field: Field, state: State, h: float) -> State:
        """The state at t + h for d(state)/dt = field(state)."""
        slopes = [field(state)]
        for row in self.a[1:]:
            slopes.append(field(_advance(state, row, slopes, h)))
        return _advance(state, self.b, slopes, h)


def _advance(state: State, weights: tuple[float, ...], slopes: list[State], h: float) -> State:
    """state + h Σ weights·slopes, skipping zero weights."""
    for weight, slope in zip(weights, slopes, strict=True):
        if weight:
            state = tuple(torch.add(x, dx, alpha=h * weight) for x, dx in zip(state, slope, strict=True))
    return state


# Anything with ``order`` and ``step`` may be added here; its name is then a ``method`` of every solver.
STEPPERS: dict[str, RungeKutta] = {
    "euler": RungeKutta(((),), (1.0,), 1),
    "midpoint": RungeKutta(((), (0.5,)), (0.0, 1.0), 2),
    "heun": RungeKutta(((), (1.0,)), (0.5, 0.5), 2),
    "kutta3": RungeKutta(((), (0.5,), (-1.0, 2.0)), (1 / 6, 2 / 3, 1 / 6), 3),
    "rk4": RungeKutta(((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)), (1 / 6, 1 / 3, 1 / 3, 1 / 6), 4),
}
ADAPTIVE = ("dopri5", "dopri8", "bosh3", "tsit5")

# Above this many evaluations of the metric the graph of a loop is rebuilt in the backward pass instead of stored:
# a stored evaluation of a 64-wide network takes about 3 kB in float64.
_CHECKPOINT_ABOVE = 2**19
_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}


def stepper(method: str) -> RungeKutta:
    """The fixed-step method named ``method``.

    Raises:
        InputError: an unknown name.
    """
    if method not in STEPPERS:
        raise InputError(f"Unknown stepper {method!r}; choose one of {', '.join(STEPPERS)}.")
    return STEPPERS[method]


@dataclass(frozen=True)
class Flow:
    """The geodesic flow of one metric at fixed step count: (c, v) at t = 0 → (c, v) at t = 1."""

    metric: Metric
    rule: ChristoffelRule
    method: RungeKutta
    steps: int

    def __call__(
        self, c: Tensor, v: Tensor, wavelength: Tensor | None, path: list[tuple[Tensor, Tensor]] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """End point, end velocity, and whether every step stayed in the domain; ``path`` collects the states."""

        def field(state: State) -> State:
            c, v = state
            return v, self.rule.acceleration(self.metric, c, v, wavelength)

        (c, v), inside = self._run(field, (c, v), path)
        return c, v, inside

    def with_jacobian(self, c: Tensor, v: Tensor, wavelength: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """End point, end velocity, in-domain flag and ∂c(1)/∂v(0) [..., D, D] ([...] for D = 1).

        D ≥ 2: the Jacobi fields X, Ẋ of the D unit velocities are columns of matrices that the same Runge–Kutta steps
        carry beside the path, Ẍ = (∂c̈/∂c) X + (∂c̈/∂ċ) Ẋ: the exact derivative of the discrete flow. D = 1:
        √(g(a)/g(c(1))), from conservation of energy.
        """
        metric = self.metric
        if metric.dim == 1:
            end, end_velocity, inside = self(c, v, wavelength)
            return end, end_velocity, inside, (metric(c, wavelength) / metric(end, wavelength)).sqrt()

        def field(state: State) -> State:
            c, v, x, dx = state
            acceleration, by_c, by_v = self.rule.linearised(metric, c, v, wavelength)
            return v, acceleration, dx, matmul(by_c, x) + matmul(by_v, dx)

        still = torch.zeros_like(v).unsqueeze(-1).expand(*v.shape, metric.dim)
        unit = still + torch.eye(metric.dim, dtype=v.dtype, device=v.device)
        (end, end_velocity, jacobian, _), inside = self._run(field, (c, v, still, unit))
        return end, end_velocity, inside, jacobian

    def _run(self, field: Field, state: State, path: list[tuple[Tensor, Tensor]] | None = None) -> tuple[State, Tensor]:
        """All steps; the flag says whether c stayed in the domain."""
        inside = self.metric.in_domain(state[0])
        if path is not None:
            path.append((state[0], state[1]))
        rebuild = self._too_large_to_store(state[1])
        h = 1.0 / self.steps
        for _ in range(self.steps):
            if rebuild:
                state = checkpoint(self.method.step, field, state, h, use_reentrant=False)
            else:
                state = self.method.step(field, state, h)
            inside = inside & self.metric.in_domain(state[0])
            if path is not None:
                path.append((state[0], state[1]))
        return state, inside

    def _too_large_to_store(self, v: Tensor) -> bool:
        if not torch.is_grad_enabled() or torch.compiler.is_compiling():
            return False
        if inside_transform(v):
            return False  # torch.func transforms do not take part in rebuilding
        evaluations = v.numel() // self.metric.dim * self.steps * len(self.method.b)
        return evaluations > _CHECKPOINT_ABOVE


def check_problem(metric: Metric, wavelength: Tensor | None, **points: Tensor) -> tuple[bool, tuple[Tensor, ...]]:
    """Whether D = 1 points came as [..., 1], and the points as the solvers want them (see ``drop_unit_axis``).

    Raises:
        InputError: arguments that are no floating-point tensors, do not fit the metric or do not broadcast together.
    """
    for name, point in points.items():
        if not isinstance(point, Tensor) or not point.dtype.is_floating_point:
            raise InputError(f"{name} must be a floating-point tensor, got {_kind(point)}.")
        if metric.dim > 1 and (point.ndim == 0 or point.shape[-1] != metric.dim):
            raise InputError(
                f"{name} has shape {tuple(point.shape)} but the metric has {metric.dim} coordinates; "
                f"give an array whose last axis is {metric.dim}."
            )
    if wavelength is not None and not isinstance(wavelength, Tensor):
        raise InputError(f"wavelength must be a tensor or None, got {_kind(wavelength)}.")
    unit, dropped = drop_unit_axis(metric, wavelength, *points.values())
    shapes = [p.shape if metric.dim == 1 else p.shape[:-1] for p in dropped]
    shapes += [] if wavelength is None else [wavelength.shape]
    dtypes = {p.dtype for p in points.values()}
    if len(dtypes) > 1:
        raise InputError(f"{' and '.join(points)} must have the same dtype, got {sorted(map(str, dtypes))}.")
    try:
        torch.broadcast_shapes(*shapes)
    except RuntimeError:
        names = [*points, *(["wavelength"] if wavelength is not None else [])]
        listed = ", ".join(f"{name} {tuple(shape)}" for name, shape in zip(names, shapes, strict=True))
        raise InputError(f"The problems' shapes do not broadcast together: {listed}.") from None
    return unit, dropped


def _kind(value: object) -> str:
    return str(value.dtype) if isinstance(value, Tensor) else type(value).__name__


def inside_transform(x: Tensor) -> bool:
    """True under vmap, jvp or grad of torch.func, or where ``x`` carries a forward-mode tangent."""
    from torch._C import _functorch  # pyright: ignore[reportAttributeAccessIssue]

    return _functorch.peek_interpreter_stack() is not None or forward_ad.unpack_dual(x).tangent is not None


def fewest_rebuilt(steps: int, method: str = "rk4") -> int:
    """Problems (D = 1) from which on a loop of ``steps`` is rebuilt in the backward pass instead of stored."""
    return _CHECKPOINT_ABOVE // (steps * len(stepper(method).b)) + 1


def default_tolerance(metric: Metric, dtype: torch.dtype, device: str) -> float:
    """Relative residual that counts as converged: 1e-9 in float64, 1e-4 in float32, 5e-2 under autocast.

    The coarser of ``dtype`` and the metric's own parameters decides: a float32 network asked in float64 rounds alike.
    """
    if torch.is_autocast_enabled(device):
        return 5e-2
    dtypes = [dtype, *(p.dtype for p in metric.parameters() if p.dtype.is_floating_point)]
    return max(_TOLERANCE.get(d, 1e-2) for d in dtypes)


@torch.no_grad()
def allowed_residual(
    metric: Metric, start: Tensor, end: Tensor, tolerance: float, dtype: torch.dtype | None = None
) -> Tensor:
    """``tolerance`` of the distance asked for, and a few rounding errors of the ends in ``dtype`` [...]."""
    rounding = 64 * torch.finfo(dtype or start.dtype).eps * (norm(metric, start) + norm(metric, end))
    return tolerance * norm(metric, end - start) + rounding


def norm(metric: Metric, x: Tensor) -> Tensor:
    """Length of each problem's vector in ℝᴰ [...]."""
    return x.abs() if metric.dim == 1 else torch.linalg.vector_norm(x, dim=-1)


def sound(metric: Metric, wavelength: Tensor | None, *points: Tensor) -> tuple[Tensor, Tensor]:
    """Per problem: are all inputs finite, and are the points of the manifold."""
    finite = torch.ones((), dtype=torch.bool, device=points[0].device)
    for point in points:
        finite = finite & (torch.isfinite(point) if metric.dim == 1 else torch.isfinite(point).all(-1))
    if wavelength is not None:
        finite = finite & torch.isfinite(wavelength)
    return finite, metric.in_domain(points[0])


def choose(metric: Metric, condition: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    """``where`` per problem, for points that may carry the axis D."""
    return torch.where(condition if metric.dim == 1 else condition.unsqueeze(-1), yes, no)


@torch.no_grad()
def relative_drift(metric: Metric, wavelength: Tensor | None, start: tuple, states: list[tuple]) -> Tensor:
    """Largest relative change of the energy from its value at the start [...]; zero for a path that does not move."""
    before = metric.energy(start[0], start[1], wavelength)
    moving = before > 0
    drift = torch.zeros_like(before)
    for c, v in states:
        change = (metric.energy(c, v, wavelength) - before).abs() / torch.where(moving, before, torch.ones_like(before))
        drift = torch.maximum(drift, change)
    return drift


@torch.no_grad()
def halving_change(flow: Flow, start: Tensor, velocity: Tensor, wavelength: Tensor | None, end: Tensor) -> Tensor:
    """How far the end point moves when the steps are halved (doubled from one), relative to |end − start| [...].

    Energy alone does not show every error: along the half-plane's vertical geodesics, c̈ = ċ²/c with ċ/c constant, any
    Runge–Kutta method conserves it exactly, however far from the end it lands. Infinite where the coarser path fails.
    """
    coarser = replace(flow, steps=flow.steps // 2 if flow.steps > 1 else 2)
    other, _, inside = coarser(start, velocity, wavelength)
    distance = norm(flow.metric, end - start)
    moving = distance > 0
    change = norm(flow.metric, other - end) / torch.where(moving, distance, torch.ones_like(distance))
    change = torch.where(inside & torch.isfinite(change), change, torch.inf)
    return torch.where(moving, change, torch.zeros_like(change))


def exponential_map(
    metric: Metric,
    start: Tensor,
    velocity: Tensor,
    wavelength: Tensor | None = None,
    steps: int = 20,
    method: str = "rk4",
    christoffel: str | ChristoffelRule = "exact",
    jacobian: bool = False,
    drift_tolerance: float = 0.05,
    rtol: float = 1e-10,
    atol: float = 1e-12,
    throw: bool = False,
) -> GeodesicSolution:
    """Follow geodesics from ``start`` with ``velocity`` over t ∈ [0, 1].

    Args:
        metric: a ``Metric``.
        start, velocity: [...] (D = 1; [..., 1] also accepted beside a wavelength [...]) or [..., D]; user units.
        wavelength: [...], broadcast; None for metrics that use none.
        steps: number of fixed steps.
        method: a key of STEPPERS ("rk4" has order 4), or "dopri5", "dopri8", "bosh3", "tsit5" of torchdiffeq with
            ``rtol`` and ``atol`` (a check: not differentiable under torch.func).
        christoffel: a rule or its name, see ``geonode.christoffel``.
        jacobian: also return ∂c(1)/∂ċ(0), the Jacobi fields at t = 1 (fixed-step methods).
        drift_tolerance: a path along which g(ċ, ċ) changes by more, relatively, or whose end moves by more of its
            distance from the start when the steps are halved (fixed steps), is reported as MAX_ITERATIONS.
        throw: raise SolverError instead of returning a failure.

    Returns:
        A solution whose ``end`` and ``end_velocity`` are c(1) and ċ(1). A path that leaves the domain or stops being
        finite has NaN there, says so in ``status``, and gives no gradient; the others are what they would be alone.

    Raises:
        InputError: arguments that do not fit together, an unknown method, or fewer than one step.
        SolverError: a path failed and ``throw`` is set, or an adaptive method cannot meet ``rtol`` and ``atol``.
    """
    unit, (start, velocity) = check_problem(metric, wavelength, start=start, velocity=velocity)
    if steps < 1:
        raise InputError(f"steps must be at least 1, got {steps}.")
    flow = Flow(metric, make_rule(christoffel, metric), stepper("rk4" if method in ADAPTIVE else method), steps)
    batch = torch.broadcast_shapes(
        *((start.shape, velocity.shape) if metric.dim == 1 else (start.shape[:-1], velocity.shape[:-1])),
        *([] if wavelength is None else [wavelength.shape]),
    )
    full = batch if metric.dim == 1 else (*batch, metric.dim)
    start, velocity = start.expand(full), velocity.expand(full)

    status = _outcome(flow, start, velocity, wavelength)
    good = status == Status.CONVERGED
    # Failed problems are replaced at their input: masking their output would leave NaN in every weight's gradient.
    c, v, wl = _replaced(metric, good, start, velocity, wavelength)
    if method in ADAPTIVE:
        positions, velocities = _adaptive(flow, c, v, wl, method, rtol, atol)
    else:
        path: list[tuple[Tensor, Tensor]] = []
        flow(c, v, wl, path)
        positions, velocities = torch.stack([c for c, _ in path]), torch.stack([v for _, v in path])
    drift = relative_drift(metric, wl, (c, v), list(zip(positions[1:], velocities[1:], strict=True)))
    resolved = drift <= drift_tolerance
    if method not in ADAPTIVE:
        resolved = resolved & (halving_change(flow, c, v, wl, positions[-1]) <= drift_tolerance)
    status = torch.where(good & ~resolved, int(Status.MAX_ITERATIONS), status)
    tensor = flow.with_jacobian(c, v, wl)[3] if jacobian else None
    nan = torch.full((), torch.nan, dtype=start.dtype, device=start.device)
    positions, velocities = choose(metric, good, positions, nan), choose(metric, good, velocities, nan)
    if unit:
        positions, velocities = positions.unsqueeze(-1), velocities.unsqueeze(-1)
        start, velocity = start.unsqueeze(-1), velocity.unsqueeze(-1)
        tensor = None if tensor is None else tensor[..., None, None]
    solution = GeodesicSolution(
        start=start,
        end=positions[-1],
        initial_velocity=velocity,
        status=status,
        residual=torch.zeros_like(drift),
        iterations=torch.full_like(status, steps),
        energy_drift=drift.detach(),
        position=HermitePath(positions, velocities),
        wavelength=wavelength,
        end_velocity=velocities[-1],
        jacobian=tensor,
    )
    return solution.throw() if throw else solution


def _replaced(
    metric: Metric, good: Tensor, start: Tensor, velocity: Tensor, wavelength: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The problems, with one that rests at a harmless point in place of each that is not good."""
    wl = None if wavelength is None else torch.where(good, wavelength, torch.zeros_like(wavelength))
    still = choose(metric, good, velocity, torch.zeros_like(velocity))
    return choose(metric, good, start, metric.reference(start)), still, wl


@torch.no_grad()
def _outcome(flow: Flow, start: Tensor, velocity: Tensor, wavelength: Tensor | None) -> Tensor:
    """Status of every problem from a first pass in fixed steps, without a graph."""
    finite, inside = sound(flow.metric, wavelength, start, velocity)
    c, v, wl = _replaced(flow.metric, finite & inside, start, velocity, wavelength)
    end, end_velocity, stayed = flow(c, v, wl)
    last = torch.isfinite(end) & torch.isfinite(end_velocity)
    return status_of(finite, inside & stayed, last if flow.metric.dim == 1 else last.all(-1))


def status_of(finite: Tensor, inside: Tensor, solved: Tensor, reached: Tensor | None = None) -> Tensor:
    """Status from flags: inputs finite, path inside the domain, result finite, tolerance reached."""
    status = torch.zeros_like(finite & inside & solved, dtype=torch.int64)
    if reached is not None:
        status = torch.where(reached, status, int(Status.MAX_ITERATIONS))
    status = torch.where(solved, status, int(Status.NOT_FINITE))
    status = torch.where(inside, status, int(Status.LEFT_DOMAIN))
    return torch.where(finite, status, int(Status.NOT_FINITE))


def _adaptive(
    flow: Flow, c: Tensor, v: Tensor, wavelength: Tensor | None, method: str, rtol: float, atol: float
) -> tuple[Tensor, Tensor]:
    """States at the fixed-step times from torchdiffeq's adaptive solver; one step size for the whole batch."""
    from torchdiffeq import odeint

    def field(_t: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return state[1], flow.rule.acceleration(flow.metric, state[0], state[1], wavelength)

    times = torch.linspace(0.0, 1.0, flow.steps + 1, dtype=c.dtype, device=c.device)
    ends = {"step_t": times[[0, -1]]}  # no step goes past the end, where the metric may have no value
    try:
        states: Any = odeint(field, (c, v), times, rtol=rtol, atol=atol, method=method, options=ends)
    except AssertionError as error:  # its step size underflowed
        raise SolverError(f"{method} cannot meet rtol={rtol:g}, atol={atol:g} here; use rk4 ({error}).") from None
    return states[0], states[1]
