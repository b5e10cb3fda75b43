"""Two-point geodesics of one concentration by damped Newton on the initial velocity, in plain torch: the specification.

The target moves along the chord in ``stages``; two Newton steps at each stage before the last, ``newton`` at the end.
The first guess is the chord's length over √g at its start; ∂c(1)/∂v(0) is the Jacobi field. A step that does not lower
the residual is shortened. A problem rests once it is as close as rounding allows, or within tolerance and no longer
improving, so that no problem's result depends on its neighbours.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ..geodesic_rk4.reference import geodesic_rk4_jacobi
from ..metric_christoffel.reference import metric_christoffel

CONVERGED, MAX_ITERATIONS, NOT_FINITE = 0, 1, 3  # the numbers of geonode.geodesic.Status
STAGE_STEPS = 2
CHORD = (
    (0.0694318442, 0.1739274226),
    (0.3300094782, 0.3260725774),
)  # Gauss–Legendre on [0, 1], half of its four points


class Shot(NamedTuple):
    """Per problem [M, N]: ∂c/∂t at 0, ``status`` (int32), residual |c(1) − end|, Newton iterations until the tolerance
    (int32), relative change of the energy g v², and the Jacobi field ∂c(1)/∂v(0)."""

    velocity: Tensor
    status: Tensor
    residual: Tensor
    iterations: Tensor
    drift: Tensor
    jacobian: Tensor


def chord_velocity(
    start: Tensor, chord: Tensor, wavelength: Tensor, weights: tuple[Tensor, ...], output: str
) -> Tensor:
    """``chord`` times ∫√g along it over √g at its start (plain ``chord`` where that is not finite)."""

    def root(c: Tensor) -> Tensor:
        return metric_christoffel(c, wavelength, *weights, output=output)[0].sqrt()

    length = sum(w * (root(start + x * chord) + root(start + (1.0 - x) * chord)) for x, w in CHORD)
    ratio = length / root(start)
    return chord * torch.where(torch.isfinite(ratio), ratio, 1.0)


@torch.no_grad()
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
    """Geodesics from ``start`` to ``end`` [M, N]; weights as in `metric_christoffel`."""
    eps = torch.finfo(start.dtype).eps
    finite = torch.isfinite(start) & torch.isfinite(end) & torch.isfinite(wavelength)
    a, b, lam = (torch.where(finite, x, 0.0) for x in (start, end, wavelength))
    velocity, step, residual = torch.zeros_like(a), torch.zeros_like(a), torch.full_like(a, torch.inf)
    damping, drift, jacobian, guess = torch.ones_like(a), torch.zeros_like(a), torch.ones_like(a), torch.zeros_like(a)
    iterations, rests = torch.zeros_like(a, dtype=torch.int32), torch.zeros_like(finite)
    target = allowed = rounding = a
    for i in range(STAGE_STEPS * (stages - 1) + newton):
        stage = min(i // STAGE_STEPS + 1, stages)
        if i % STAGE_STEPS == 0 and i <= STAGE_STEPS * (stages - 1):
            before, guess = guess, chord_velocity(a, (b - a) * (stage / stages), lam, weights, output)
            step = velocity * (guess / torch.where(before == 0, 1.0, before) - 1.0)
            if stage == 1:
                velocity, step = guess, torch.zeros_like(a)
            target = b if stage == stages else a + (b - a) * (stage / stages)
            rounding = 4.0 * eps * (a.abs() + target.abs())
            allowed = tolerance * (target - a).abs() + 16.0 * rounding
            residual, damping = torch.full_like(a, torch.inf), torch.ones_like(a)
            rests = torch.zeros_like(finite)
        trial = velocity + damping * step
        c1, v1, j1, _ = geodesic_rk4_jacobi(a, trial, lam, *weights, steps=steps, output=output)
        miss = target - c1
        change = miss / j1
        better = (miss.abs() < residual) & torch.isfinite(change) & ~rests
        g0, g1 = (metric_christoffel(c, lam, *weights, output=output)[0] for c in (a, c1))
        energy = g0 * trial * trial
        moved = (g1 * v1 * v1 - energy).abs() / torch.where(energy > 0, energy, 1.0)
        iterations += ((residual > allowed) & ~rests).int()
        velocity, step = torch.where(better, trial, velocity), torch.where(better, change, step)
        residual, drift = torch.where(better, miss.abs(), residual), torch.where(better, moved, drift)
        jacobian = torch.where(better, j1, jacobian)
        damping = torch.where(better, (2.0 * damping).clamp_max(1.0), 0.25 * damping)
        rests = rests | (residual <= rounding) | (~better & (residual <= allowed))
    good = (residual <= allowed) & (drift <= drift_tolerance)
    solved = finite & torch.isfinite(residual)
    status = torch.where(good, CONVERGED, MAX_ITERATIONS)
    status = torch.where(solved, status, NOT_FINITE).int()
    velocity = torch.where(solved, velocity, torch.nan)
    return Shot(velocity, status, residual, iterations, drift, jacobian)
