"""The exponential map: follow the geodesic that leaves a point with a given velocity.

c̈ᵏ = −Γᵏᵢⱼ ċⁱ ċʲ as a first-order system in (c, ċ) over t ∈ [0, 1], by fixed-step explicit Runge–Kutta methods written
as plain loops, or by the kernel that holds RK4 for a network's metric. torchdiffeq's adaptive methods serve as a check.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

from geonode.christoffel import ChristoffelRule, make_rule, matmul
from geonode.errors import InputError, SolverError
from geonode.geodesic.solution import GeodesicSolution, HermitePath, Status
from geonode.metric.base import Metric, drop_unit_axis, small_inverse
from geonode.metric.on_kernels import KernelMetric, on_kernels
from geonode_kernels import geodesic_rk4, geodesic_states, metric_density
from geonode_kernels.paths import choose, halving_change, largest_change, relative_drift, sound, status_of
from geonode_kernels.runge_kutta import STEPPERS, Field, RungeKutta, State

__all__ = ["ADAPTIVE", "STEPPERS", "Flow", "RungeKutta", "exponential_map", "fewest_rebuilt"]

ADAPTIVE = ("dopri5", "dopri8", "bosh3", "fehlberg2", "adaptive_heun")

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
    """The geodesic flow of one metric at fixed step count, (c, v) at t = 0 → (c, v) at t = 1: a `Paths` of the kernels.

    On a CUDA device, classical Runge–Kutta with the exact symbols of a network takes one launch.
    """

    metric: Metric
    rule: ChristoffelRule
    method: RungeKutta
    steps: int

    @property
    def dim(self) -> int:
        """D."""
        return self.metric.dim

    def with_steps(self, steps: int) -> Flow:
        """The same flow in another number of steps."""
        return replace(self, steps=steps)

    def in_domain(self, c: Tensor) -> Tensor:
        """See `Metric.in_domain`."""
        return self.metric.in_domain(c)

    def reference(self, like: Tensor) -> Tensor:
        """See `Metric.reference`."""
        return self.metric.reference(like)

    def energy(self, c: Tensor, v: Tensor, wavelength: Tensor | None) -> Tensor:
        """g(v, v) [...]; see `Metric.energy`."""
        network = on_kernels("metric_density", self.metric, wavelength, c)
        if network is None or wavelength is None:
            return self.metric.energy(c, v, wavelength)
        density = metric_density(*network.flat(c, wavelength), *network.weights.tensors, **network.settings)  # type: ignore[arg-type]
        return (network.back(density) * v).square()

    def solve(self, jacobian: Tensor, vector: Tensor) -> Tensor:
        """J⁻¹ applied to a vector."""
        return vector / jacobian if self.dim == 1 else (small_inverse(jacobian) * vector.unsqueeze(-2)).sum(-1)

    def __call__(
        self, c: Tensor, v: Tensor, wavelength: Tensor | None, path: list[tuple[Tensor, Tensor]] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """End point, end velocity, and whether every step stayed in the domain; ``path`` collects the states."""
        network = self.on_kernels("geodesic_rk4", c, v, wavelength)
        if network is not None and wavelength is not None:
            return self._fused(network, c, v, wavelength, path)

        def field(state: State) -> State:
            c, v = state
            return v, self.rule.acceleration(self.metric, c, v, wavelength)

        (c, v), inside = self._run(field, (c, v), path)
        return c, v, inside

    def on_kernels(self, op: str, c: Tensor, v: Tensor, wavelength: Tensor | None) -> KernelMetric | None:
        """The problems as kernels that hold this method and rule take them, or None."""
        refusal = None if self.rule.exact else "the kernels hold the exact symbols, and another rule was asked for"
        if self.method != STEPPERS["rk4"]:
            refusal = refusal or f"the kernels hold classical Runge–Kutta, not a method of order {self.method.order}"
        return on_kernels(op, self.metric, wavelength, c, v, refusal=refusal)

    def _fused(
        self,
        network: KernelMetric,
        c: Tensor,
        v: Tensor,
        wavelength: Tensor,
        path: list[tuple[Tensor, Tensor]] | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        arguments = (*network.flat(c, v, wavelength), *network.weights.tensors)
        if path is None:
            end, end_velocity = map(network.back, geodesic_rk4(*arguments, steps=self.steps, **network.settings))  # type: ignore[arg-type]
            return end, end_velocity, torch.isfinite(end)  # a position that is not finite stays so
        states = network.back(geodesic_states(*arguments, steps=self.steps, **network.settings))  # type: ignore[arg-type]
        path += [(position, velocity) for position, velocity in states]
        return *path[-1], torch.isfinite(states[-1, 0])

    def with_jacobian(self, c: Tensor, v: Tensor, wavelength: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """End point, end velocity, in-domain flag and ∂c(1)/∂v(0) [..., D, D] ([...] for D = 1).

        D ≥ 2: the Jacobi fields X, Ẋ of the D unit velocities are columns of matrices that the same Runge–Kutta steps
        carry beside the path, Ẍ = (∂c̈/∂c) X + (∂c̈/∂ċ) Ẋ: the exact derivative of the discrete flow. D = 1:
        √(g(a)/g(c(1))), from conservation of energy.
        """
        metric = self.metric
        if metric.dim == 1:
            end, end_velocity, inside = self(c, v, wavelength)
            one = torch.ones((), dtype=c.dtype, device=c.device)
            ratio = self.energy(c, one, wavelength) / self.energy(end, one, wavelength)
            return end, end_velocity, inside, ratio.sqrt()

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
                # nothing is drawn in it, and a generator's state cannot be read where a CUDA graph is recorded
                state = checkpoint(self.method.step, field, state, h, use_reentrant=False, preserve_rng_state=False)
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


def reached(wavelength: Tensor | None, *points: Tensor) -> tuple[Tensor, ...]:
    """Where a rule will be asked for Γ, as `make_rule` takes it: a straight line's ends, and the wavelength."""
    return *points, torch.empty(0) if wavelength is None else wavelength


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
        method: a key of STEPPERS ("rk4" has order 4), or one of ADAPTIVE, torchdiffeq's methods with ``rtol`` and
            ``atol`` ("dopri5" has order 5; a check: not differentiable under torch.func).
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
    rule = make_rule(christoffel, metric, *reached(wavelength, start, start + velocity))
    flow = Flow(metric, rule, stepper("rk4" if method in ADAPTIVE else method), steps)
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
    drift = _drift(flow, positions, velocities, wl)
    resolved = drift <= drift_tolerance
    if method not in ADAPTIVE:
        resolved = resolved & (halving_change(flow, c, v, wl, positions[-1]) <= drift_tolerance)
    status = torch.where(good & ~resolved, int(Status.MAX_ITERATIONS), status)
    tensor = flow.with_jacobian(c, v, wl)[3] if jacobian else None
    nan = torch.full((), torch.nan, dtype=start.dtype, device=start.device)
    positions, velocities = choose(metric.dim, good, positions, nan), choose(metric.dim, good, velocities, nan)
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


@torch.no_grad()
def _drift(flow: Flow, positions: Tensor, velocities: Tensor, wavelength: Tensor | None) -> Tensor:
    """Largest relative change of the energy along paths [S + 1, ...]."""
    c, v = positions[0], velocities[0]
    if on_kernels("metric_density", flow.metric, wavelength, c) is None or wavelength is None:
        return relative_drift(flow, wavelength, (c, v), list(zip(positions[1:], velocities[1:], strict=True)))
    # All states at once: the kernel keeps nothing of the network. A stack's models stay in front.
    first = 0 if flow.metric.models is None else 1
    states = positions.movedim(0, first), velocities.movedim(0, first)
    energies = flow.energy(*states, wavelength.expand(c.shape).unsqueeze(first)).movedim(first, 0)
    return largest_change(energies[0], energies[1:])


def _replaced(
    metric: Metric, good: Tensor, start: Tensor, velocity: Tensor, wavelength: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The problems, with one that rests at a harmless point in place of each that is not good."""
    wl = None if wavelength is None else torch.where(good, wavelength, torch.zeros_like(wavelength))
    still = choose(metric.dim, good, velocity, torch.zeros_like(velocity))
    return choose(metric.dim, good, start, metric.reference(start)), still, wl


@torch.no_grad()
def _outcome(flow: Flow, start: Tensor, velocity: Tensor, wavelength: Tensor | None) -> Tensor:
    """Status of every problem from a first pass in fixed steps, without a graph."""
    finite, inside = sound(flow, wavelength, start, velocity)
    c, v, wl = _replaced(flow.metric, finite & inside, start, velocity, wavelength)
    end, end_velocity, stayed = flow(c, v, wl)
    last = torch.isfinite(end) & torch.isfinite(end_velocity)
    return status_of(finite, inside & stayed, last if flow.metric.dim == 1 else last.all(-1))


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
