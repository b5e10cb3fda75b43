"""What every geodesic solver measures of a path: lengths of vectors, conserved energy, halved steps, status.

Shapes: points [...] (D = 1) or [..., D]; whatever belongs to a problem [...].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import torch
from torch import Tensor

# the numbers of geonode.geodesic.Status
CONVERGED, MAX_ITERATIONS, LEFT_DOMAIN, NOT_FINITE = 0, 1, 2, 3
ROUNDINGS = 64  # rounding errors of the ends that a residual may always have


class Paths(Protocol):
    """The geodesics of one metric by a fixed number of steps over t ∈ [0, 1]: what shooting asks of a metric."""

    @property
    def dim(self) -> int:
        """D."""
        ...

    @property
    def steps(self) -> int:
        """Steps of a path."""
        ...

    def with_steps(self, steps: int) -> Paths:
        """The same with another number of steps."""
        ...

    def in_domain(self, c: Tensor) -> Tensor:
        """Which points lie on the manifold [...]."""
        ...

    def reference(self, like: Tensor) -> Tensor:
        """A harmless point, shaped like ``like``."""
        ...

    def energy(self, c: Tensor, v: Tensor, wavelength: Tensor | None) -> Tensor:
        """g(v, v) [...]."""
        ...

    def __call__(self, c: Tensor, v: Tensor, wavelength: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """End, end velocity, and whether the path stayed in the domain."""
        ...

    def with_jacobian(self, c: Tensor, v: Tensor, wavelength: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The same, and ∂c(1)/∂v(0) ([...] or [..., D, D])."""
        ...

    def solve(self, jacobian: Tensor, vector: Tensor) -> Tensor:
        """J⁻¹ applied to a vector, shaped like it."""
        ...


def norm(dim: int, x: Tensor) -> Tensor:
    """Length of each problem's vector in ℝᴰ [...]."""
    return x.abs() if dim == 1 else torch.linalg.vector_norm(x, dim=-1)


def choose(dim: int, condition: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    """``where`` per problem, for points that may carry the axis D."""
    return torch.where(condition if dim == 1 else condition.unsqueeze(-1), yes, no)


def per_problem(dim: int, x: Tensor) -> Tensor:
    """``x`` [...] so that it multiplies points."""
    return x if dim == 1 else x.unsqueeze(-1)


def sound(paths: Paths, wavelength: Tensor | None, *points: Tensor) -> tuple[Tensor, Tensor]:
    """Per problem: are all inputs finite, and is the first point one of the manifold."""
    finite = torch.ones((), dtype=torch.bool, device=points[0].device)
    for point in points:
        finite = finite & (torch.isfinite(point) if paths.dim == 1 else torch.isfinite(point).all(-1))
    if wavelength is not None:
        finite = finite & torch.isfinite(wavelength)
    return finite, paths.in_domain(points[0])


@torch.no_grad()
def allowed_residual(
    dim: int, start: Tensor, end: Tensor, tolerance: float, dtype: torch.dtype | None = None
) -> Tensor:
    """``tolerance`` of the distance asked for, and a few rounding errors of the ends in ``dtype`` [...]."""
    rounding = ROUNDINGS * torch.finfo(dtype or start.dtype).eps * (norm(dim, start) + norm(dim, end))
    return tolerance * norm(dim, end - start) + rounding


@torch.no_grad()
def relative_drift(
    paths: Paths, wavelength: Tensor | None, start: tuple[Tensor, Tensor], states: Sequence[tuple[Tensor, Tensor]]
) -> Tensor:
    """Largest relative change of the energy from its value at the start [...]; zero for a path that does not move."""
    return largest_change(paths.energy(*start, wavelength), (paths.energy(c, v, wavelength) for c, v in states))


def largest_change(before: Tensor, energies: Iterable[Tensor]) -> Tensor:
    """Largest |energy − before|/before over some energies [...]; the change itself where ``before`` is zero."""
    size = torch.where(before > 0, before, 1.0)
    drift = torch.zeros_like(before)
    for energy in energies:
        drift = torch.maximum(drift, (energy - before).abs() / size)
    return drift


@torch.no_grad()
def halving_change(paths: Paths, start: Tensor, velocity: Tensor, wavelength: Tensor | None, end: Tensor) -> Tensor:
    """How far the end point moves when the steps are halved (doubled from one), relative to |end − start| [...].

    Energy alone does not show every error: along the half-plane's vertical geodesics, c̈ = ċ²/c with ċ/c constant, any
    Runge–Kutta method conserves it exactly, however far from the end it lands. Infinite where the coarser path fails.
    Rounding errors of the ends are no change: of a path as short as they are, they would be the whole of it.
    """
    other, _, inside = paths.with_steps(coarser(paths.steps))(start, velocity, wavelength)
    distance = norm(paths.dim, end - start)
    moving = distance > 0
    rounding = allowed_residual(paths.dim, start, end, 0.0)
    change = (norm(paths.dim, other - end) - rounding).clamp_min(0.0) / torch.where(moving, distance, 1.0)
    change = torch.where(inside & torch.isfinite(change), change, torch.inf)
    return torch.where(moving, change, torch.zeros_like(change))


def coarser(steps: int) -> int:
    """The number of steps that `halving_change` compares ``steps`` with."""
    return steps // 2 if steps > 1 else 2


def status_of(finite: Tensor, inside: Tensor, solved: Tensor, reached: Tensor | None = None) -> Tensor:
    """Status (int64) from flags: inputs finite, path inside the domain, result finite, tolerance reached."""
    status = torch.zeros_like(finite & inside & solved, dtype=torch.int64)
    if reached is not None:
        status = torch.where(reached, status, MAX_ITERATIONS)
    status = torch.where(solved, status, NOT_FINITE)
    status = torch.where(inside, status, LEFT_DOMAIN)
    return torch.where(finite, status, NOT_FINITE)
