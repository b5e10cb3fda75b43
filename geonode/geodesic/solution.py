"""What a geodesic solver returns: values, and per problem whether to believe them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import torch
from torch import Tensor

from geonode.errors import InputError, SolverError
from geonode_kernels import paths


class Status(IntEnum):
    """Outcome of one problem.

    MAX_ITERATIONS: the budget (Newton steps, time steps or quadrature nodes) did not reach the tolerance.
    LEFT_DOMAIN: an end or the path lies outside the manifold. NOT_FINITE: an input or the metric is not finite.
    """

    CONVERGED = paths.CONVERGED
    MAX_ITERATIONS = paths.MAX_ITERATIONS
    LEFT_DOMAIN = paths.LEFT_DOMAIN
    NOT_FINITE = paths.NOT_FINITE


_REASONS = {
    Status.MAX_ITERATIONS: "did not reach the tolerance; give more steps, stages or nodes",
    Status.LEFT_DOMAIN: "left the domain of the metric; choose ends that it joins",
    Status.NOT_FINITE: "met a value that is not finite; check the inputs and the metric there",
}


@dataclass(eq=False)
class GeodesicSolution:
    """Geodesics from ``start`` to ``end``, one per element of the batch shape [...].

    Attributes:
        start, end: [...] (D = 1) or [..., D]; for an initial-value problem ``end`` is where the path arrives.
        initial_velocity: dc/dt at t = 0, shaped like ``start``; differentiable. For a problem that failed it is the
            best iterate (NaN where there was none) and carries no gradient.
        status: int64 [...] of ``Status``.
        residual: distance between c(1) and the end asked for [...], user units; zero for initial-value problems.
        iterations: int64 [...], Newton iterations until the tolerance (zero for closed forms), or time steps.
        energy_drift: relative change of the conserved energy g(ċ, ċ) along the path [...].
        wavelength: the parameter the geodesics belong to, or None.
        end_velocity: dc/dt at t = 1, where the solver has it.
        jacobian: ∂c(1)/∂ċ(0) [...] or [..., D, D], where it was asked for.
        position: t [P] → c(t) [P, ...]; use ``at``.
    """

    start: Tensor
    end: Tensor
    initial_velocity: Tensor
    status: Tensor
    residual: Tensor
    iterations: Tensor
    energy_drift: Tensor
    position: Callable[[Tensor], Tensor]
    wavelength: Tensor | None = None
    end_velocity: Tensor | None = None
    jacobian: Tensor | None = None

    @property
    def converged(self) -> Tensor:
        """True where the status is CONVERGED [...]."""
        return self.status == Status.CONVERGED

    def at(self, t: Tensor | float) -> Tensor:
        """The path at time ``t`` ∈ [0, 1]: a number → [...], a tensor [P] → [P, ...] (then the axis D for D ≥ 2).

        Raises:
            InputError: a time outside [0, 1], or times of more than one axis.
        """
        times = torch.as_tensor(t, dtype=self.initial_velocity.dtype, device=self.initial_velocity.device)
        if times.ndim > 1:
            raise InputError(f"Give times as a number or a vector, not an array of shape {tuple(times.shape)}.")
        if not bool(((times >= 0) & (times <= 1)).all()):
            raise InputError("A geodesic runs over t from 0 to 1; give times in that range.")
        path = self.position(times.reshape(-1))
        return path[0] if times.ndim == 0 else path

    def throw(self) -> GeodesicSolution:
        """This solution, if every problem converged.

        Raises:
            SolverError: naming the first failed pair, its wavelength and the reason.
        """
        failed = (self.status != Status.CONVERGED).reshape(-1)
        if not bool(failed.any()):
            return self
        index = int(failed.nonzero()[0])
        where = f"from {_describe(self.start, self.status, index)} to {_describe(self.end, self.status, index)}"
        if self.wavelength is not None:
            where += f" at wavelength {_describe(self.wavelength, self.status, index)}"
        reason = _REASONS[Status(int(self.status.reshape(-1)[index]))]
        others = int(failed.sum()) - 1
        tail = f" ({others} more of {failed.numel()} problems failed)" if others else ""
        raise SolverError(f"The geodesic {where} {reason}{tail}.")


def _describe(values: Tensor, status: Tensor, index: int) -> str:
    """One problem's entry of a [...] or [..., D] tensor that broadcasts against the batch shape."""
    batch = status.shape
    coordinates = values.detach()
    if values.ndim > len(batch):
        row = coordinates.expand(*batch, values.shape[-1]).reshape(-1, values.shape[-1])[index].tolist()
        return "(" + ", ".join(f"{x:g}" for x in row) + ")" if len(row) > 1 else f"{row[0]:g}"
    return f"{coordinates.expand(batch).reshape(-1)[index].item():g}"


class HermitePath:
    """Cubic Hermite interpolation of positions and velocities at equally spaced times: O(h⁴), like the RK4 under it."""

    def __init__(self, positions: Tensor, velocities: Tensor) -> None:
        """``positions`` and ``velocities`` [S + 1, ...] at t = 0, 1/S, …, 1."""
        self.positions, self.velocities = positions, velocities

    def __call__(self, t: Tensor) -> Tensor:
        """c(t) [P, ...] for ``t`` [P] in [0, 1]."""
        steps = self.positions.shape[0] - 1
        cell = (t.detach() * steps).floor().clamp(0, steps - 1).long()
        shape = (-1, *([1] * (self.positions.ndim - 1)))
        x = (t * steps - cell).reshape(shape)
        c0, c1 = self.positions[cell], self.positions[cell + 1]
        v0, v1 = self.velocities[cell] / steps, self.velocities[cell + 1] / steps
        jump = c1 - c0
        return c0 + x * (v0 + x * (3 * jump - 2 * v0 - v1 + x * (v0 + v1 - 2 * jump)))
