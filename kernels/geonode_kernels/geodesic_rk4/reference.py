"""Geodesics of a network's metric of one concentration in plain torch: the specification of the kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..metric_christoffel.reference import metric_christoffel
from ..runge_kutta import STEPPERS, State


def geodesic_rk4(
    c: Tensor, v: Tensor, wavelength: Tensor, *weights: Tensor, steps: int = 20, output: str = "softplus"
) -> tuple[Tensor, Tensor]:
    """(c, v) [M, N] at path time 1 from (c, v) at 0:  dc/dt = v,  dv/dt = −Γ(c, λ) v².  Differentiable to any order."""
    states = geodesic_states(c, v, wavelength, *weights, steps=steps, output=output)
    return states[:, -1, 0], states[:, -1, 1]


def geodesic_states(
    c: Tensor, v: Tensor, wavelength: Tensor, *weights: Tensor, steps: int = 20, output: str = "softplus"
) -> Tensor:
    """(c, v) at path times 0, 1/steps, …, 1: [M, steps + 1, 2, N]. Differentiable to any order."""

    def field(state: State) -> State:
        c, v = state
        return v, -metric_christoffel(c, wavelength, *weights, output=output)[2] * v * v

    state: State = (c, v)
    states = [torch.stack(state, 1)]
    for _ in range(steps):
        state = STEPPERS["rk4"].step(field, state, 1.0 / steps)
        states.append(torch.stack(state, 1))
    return torch.stack(states, 1)


@dataclass(frozen=True)
class NetworkPaths:
    """`paths.Paths` of a network's metric (D = 1): what the shooting kernel holds. Points [M, N]."""

    weights: tuple[Tensor, ...]
    output: str
    steps: int
    dim: int = 1

    def with_steps(self, steps: int) -> NetworkPaths:
        return replace(self, steps=steps)

    def in_domain(self, c: Tensor) -> Tensor:
        return torch.isfinite(c)

    def reference(self, like: Tensor) -> Tensor:
        return torch.zeros_like(like)

    def value(self, c: Tensor, wavelength: Tensor) -> Tensor:
        """g [M, N]."""
        return metric_christoffel(c, wavelength, *self.weights, output=self.output)[0]

    def energy(self, c: Tensor, v: Tensor, wavelength: Tensor) -> Tensor:
        return self.value(c, wavelength) * v * v

    def __call__(self, c: Tensor, v: Tensor, wavelength: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        end, end_velocity = geodesic_rk4(c, v, wavelength, *self.weights, steps=self.steps, output=self.output)
        return end, end_velocity, torch.isfinite(end)  # a value that is not finite stays so

    def with_jacobian(self, c: Tensor, v: Tensor, wavelength: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        end, end_velocity, inside = self(c, v, wavelength)
        return end, end_velocity, inside, (self.value(c, wavelength) / self.value(end, wavelength)).sqrt()

    def solve(self, jacobian: Tensor, vector: Tensor) -> Tensor:
        return vector / jacobian
