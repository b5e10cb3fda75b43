"""The coupled ODE of one concentration in plain torch: geodesic motion, and absorbance at the rate of a flow.

The flow is one layer of tanh units of position, velocity and wavelength,

    F(c, v, λ) = Σⱼ gainⱼ tanh(placeⱼ c + paceⱼ v + shiftⱼ(λ)) + level,

and rows run through the wavelengths: row n belongs to wavelength n mod W.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..geodesic_rk4.reference import NetworkPaths
from ..geodesic_shoot.reference import attach, search
from ..metric_christoffel.reference import metric_christoffel
from ..paths import CONVERGED
from ..runge_kutta import STEPPERS, State


def rate(c: Tensor, v: Tensor, place: Tensor, pace: Tensor, shift: Tensor, gain: Tensor, level: Tensor) -> Tensor:
    """F [M, N] at c and v [M, N]; the flow as in `coupled_rk4`."""
    fixed = shift.mT.repeat(1, c.shape[1] // shift.shape[2], 1)  # [M, N, H]
    inside = c[..., None] * place[:, None] + v[..., None] * pace[:, None] + fixed
    return (torch.tanh(inside) * gain[:, None]).sum(-1) + level[:, None]


def coupled_rk4(
    c: Tensor, v: Tensor, wavelength: Tensor, *tensors: Tensor, steps: int = 20, output: str = "softplus"
) -> Tensor:
    """∫ F dt [M, N] over t ∈ [0, 1] by classical Runge–Kutta on dc/dt = v, dv/dt = −Γ v², dA/dt = F.

    ``tensors``: the six weights of the metric, then place, pace [M, H], shift [M, H, W], gain [M, H], level [M].
    Differentiable to any order.
    """
    weights, flow = tensors[:6], tensors[6:]

    def field(state: State) -> State:
        c, v, _ = state
        acceleration = -metric_christoffel(c, wavelength, *weights, output=output)[2] * v * v
        return v, acceleration, rate(c, v, *flow)  # type: ignore[arg-type]

    state: State = (c, v, torch.zeros_like(c))
    for _ in range(steps):
        state = STEPPERS["rk4"].step(field, state, 1.0 / steps)
    return state[2]


def coupled_shot(
    start: Tensor,
    end: Tensor,
    wavelength: Tensor,
    *tensors: Tensor,
    steps: int = 20,
    newton: int = 10,
    stages: int = 4,
    tolerance: float = 1e-4,
    drift_tolerance: float = 0.05,
    output: str = "softplus",
) -> tuple[Tensor, Tensor]:
    """The same along the geodesics from ``start`` to ``end`` [M, N], NaN where none was found, and their statuses."""
    paths = NetworkPaths(tensors[:6], output, steps)
    found = search(paths, start, end, wavelength, newton, stages, tolerance, drift_tolerance)
    roots = found.velocity, found.status
    return along(*roots, start, end, wavelength, *tensors, steps=steps, output=output), found.status


def along(
    velocity: Tensor,
    status: Tensor,
    start: Tensor,
    end: Tensor,
    wavelength: Tensor,
    *tensors: Tensor,
    steps: int,
    output: str,
) -> Tensor:
    """∫ F dt [M, N] along geodesics of known initial ``velocity``, which is attached to the graph; NaN by status."""
    paths = NetworkPaths(tensors[:6], output, steps)
    attached = attach(paths, start, end, wavelength, velocity, status)
    good = status == CONVERGED
    a, v, lam = (torch.where(good, t, 0.0) for t in (start, attached, wavelength))
    return torch.where(good, coupled_rk4(a, v, lam, *tensors, steps=steps, output=output), torch.nan)
