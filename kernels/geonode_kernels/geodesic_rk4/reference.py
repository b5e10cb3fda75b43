"""Geodesics of one concentration by classical Runge–Kutta in plain torch: specification and CPU path."""

import torch
from torch import Tensor
from torch.nn import functional as F

from ..metric_christoffel.reference import FLOOR, metric_christoffel


def geodesic_rk4(
    c: Tensor, v: Tensor, wavelength: Tensor, *weights: Tensor, steps: int = 20, output: str = "softplus"
) -> tuple[Tensor, Tensor]:
    """(c, v) [M, N] at path time 1 from (c, v) at 0:  dc/dt = v,  dv/dt = −Γ(c, λ) v².  Differentiable to any order."""
    dt = 1.0 / steps

    def slope(c: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        gamma = metric_christoffel(c, wavelength, *weights, output=output)[2]
        return v, -gamma * v * v

    for _ in range(steps):
        k1, l1 = slope(c, v)
        k2, l2 = slope(c + 0.5 * dt * k1, v + 0.5 * dt * l1)
        k3, l3 = slope(c + 0.5 * dt * k2, v + 0.5 * dt * l2)
        k4, l4 = slope(c + dt * k3, v + dt * l3)
        c = c + dt / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)
        v = v + dt / 6.0 * (l1 + 2.0 * (l2 + l3) + l4)
    return c, v


def christoffel_and_slope(
    c: Tensor, wavelength: Tensor, *weights: Tensor, output: str = "softplus"
) -> tuple[Tensor, Tensor]:
    """Γ and ∂Γ/∂c, from the network's first and second derivatives carried forward with its value."""
    w1, b1, w2, b2, w3, b3 = weights
    wc = w1[:, None, :, 0]
    h = torch.tanh(c[..., None] * wc + (wavelength[..., None] * w1[:, None, :, 1] + b1[:, None]))
    d = (1.0 - h * h) * wc
    e = -2.0 * h * d * wc
    h2 = torch.tanh(torch.baddbmm(b2[:, None], h, w2.mT))
    zd, ze = torch.bmm(d, w2.mT), torch.bmm(e, w2.mT)
    s2 = 1.0 - h2 * h2
    y = torch.baddbmm(b3[:, None], h2, w3.mT)[..., 0]
    dy = torch.bmm(s2 * zd, w3.mT)[..., 0]
    ddy = torch.bmm(s2 * ze - 2.0 * h2 * s2 * zd * zd, w3.mT)[..., 0]
    if output == "exp":
        return 0.5 * dy, 0.5 * ddy
    g, sigma = F.softplus(y) + FLOOR, torch.sigmoid(y)
    ratio = sigma * dy / g
    return 0.5 * ratio, 0.5 * ((sigma * ddy + sigma * (1.0 - sigma) * dy * dy) / g - ratio * ratio)


def geodesic_rk4_jacobi(
    c: Tensor, v: Tensor, wavelength: Tensor, *weights: Tensor, steps: int = 20, output: str = "softplus"
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(c, v) at path time 1 and the Jacobi field ∂(c, v)/∂v(0): the variational equation under the same Runge–Kutta."""
    dt = 1.0 / steps
    j, p = torch.zeros_like(c), torch.ones_like(c)

    def slope(c: Tensor, v: Tensor, j: Tensor, p: Tensor) -> tuple[Tensor, ...]:
        gamma, rate = christoffel_and_slope(c, wavelength, *weights, output=output)
        return v, -gamma * v * v, p, -rate * v * v * j - 2.0 * gamma * v * p

    for _ in range(steps):
        state = (c, v, j, p)
        k1 = slope(*state)
        k2 = slope(*(x + 0.5 * dt * k for x, k in zip(state, k1, strict=True)))
        k3 = slope(*(x + 0.5 * dt * k for x, k in zip(state, k2, strict=True)))
        k4 = slope(*(x + dt * k for x, k in zip(state, k3, strict=True)))
        c, v, j, p = (
            x + dt / 6.0 * (a + 2.0 * (b + e) + f) for x, a, b, e, f in zip(state, k1, k2, k3, k4, strict=True)
        )
    return c, v, j, p
