"""Two-point geodesics by shooting: Newton on the initial velocity, batched over every problem.

The method is `geonode_kernels.geodesic_shoot.reference`'s, for any metric and any D; for a network's metric of one
analyte a kernel does it in one launch on a CUDA device, with the same statuses.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.christoffel import ChristoffelRule, make_rule
from geonode.errors import InputError
from geonode.geodesic.ivp import Flow, check_problem, default_tolerance, reached, stepper
from geonode.geodesic.solution import GeodesicSolution, HermitePath, Status
from geonode.metric.base import Metric
from geonode_kernels import Shot, geodesic_shoot
from geonode_kernels.geodesic_shoot import reference
from geonode_kernels.paths import choose


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
    flow = Flow(metric, make_rule(christoffel, metric, *reached(wavelength, start, end)), stepper(method), ode_steps)
    tolerance = default_tolerance(metric, start.dtype, start.device.type) if tolerance is None else tolerance
    start, end = _expand(metric, wavelength, start, end)
    shot = _shoot(flow, start, end, wavelength, newton_steps, stages, tolerance, drift_tolerance)
    return _finish(flow, start, end, wavelength, shot, unit, throw)


def _shoot(
    flow: Flow,
    start: Tensor,
    end: Tensor,
    wavelength: Tensor | None,
    newton: int,
    stages: int,
    tolerance: float,
    drift_tolerance: float,
) -> Shot:
    """By the kernel where it holds this flow, by torch elsewhere."""
    network = flow.on_kernels("geodesic_shoot", start, end, wavelength)
    if network is None or wavelength is None:
        return reference.shoot(flow, start, end, wavelength, newton, stages, tolerance, drift_tolerance)
    shot = geodesic_shoot(
        *network.flat(start, end, wavelength), *network.weights.tensors, steps=flow.steps, newton=newton,
        stages=stages, tolerance=tolerance, drift_tolerance=drift_tolerance, **network.settings,
    )  # type: ignore[arg-type]  # fmt: skip
    return Shot(*map(network.back, shot))


def _expand(metric: Metric, wavelength: Tensor | None, *points: Tensor) -> tuple[Tensor, ...]:
    """Points expanded to the common batch shape."""
    shapes = [p.shape if metric.dim == 1 else p.shape[:-1] for p in points]
    batch = torch.broadcast_shapes(*shapes, *([] if wavelength is None else [wavelength.shape]))
    full = batch if metric.dim == 1 else (*batch, metric.dim)
    return tuple(p.expand(full) for p in points)


def _finish(
    flow: Flow, start: Tensor, end: Tensor, wavelength: Tensor | None, shot: Shot, unit: bool, throw: bool
) -> GeodesicSolution:
    velocity, good = shot.velocity, shot.status == Status.CONVERGED

    def position(t: Tensor) -> Tensor:
        """Integrated when first asked for: most callers want the velocity alone."""
        a, _, wl = reference.replaced(flow, good, start, end, wavelength)
        states: list[tuple[Tensor, Tensor]] = []
        flow(a, choose(flow.dim, good, velocity, torch.zeros_like(velocity)), wl, states)
        path = HermitePath(torch.stack([c for c, _ in states]), torch.stack([v for _, v in states]))(t)
        path = choose(flow.dim, good, path, torch.full_like(path, torch.nan))
        return path.unsqueeze(-1) if unit else path

    solution = GeodesicSolution(
        start=start.unsqueeze(-1) if unit else start,
        end=end.unsqueeze(-1) if unit else end,
        initial_velocity=velocity.unsqueeze(-1) if unit else velocity,
        status=shot.status,
        residual=shot.residual,
        iterations=shot.iterations,
        energy_drift=shot.drift,
        position=position,
        wavelength=wavelength,
    )
    return solution.throw() if throw else solution
