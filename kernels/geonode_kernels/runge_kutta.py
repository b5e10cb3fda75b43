"""Explicit Runge–Kutta methods as plain loops: the integrator of geodesics on the torch path, kernels' specification.

They run under vmap, jvp, export and double backward.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

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
