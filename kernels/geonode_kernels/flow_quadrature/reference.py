"""The path-independent flow as a quadrature, in plain torch: the specification of the kernel and the CPU path."""

from __future__ import annotations

import torch
from torch import Tensor

from .._gauss import gauss_legendre


def flow_quadrature(
    s_start: Tensor, s_end: Tensor, omega: Tensor, beta: Tensor, a: Tensor, a0: Tensor, nodes: int = 16
) -> Tensor:
    """∫ h dŝ from ``s_start`` to ``s_end`` by Gauss–Legendre in scaled arc length; M models at once.

        h(ŝ, w) = Σ_j a[w, j] tanh(ω_j ŝ + β[w, j]) + a0[w]
        result  = ½ L Σ_q w_q h(½ (s_start + s_end) + ½ L x_q),   L = s_end − s_start

    ``s_start``, ``s_end`` [M, B, W]; ``omega`` [M, H]; ``beta``, ``a`` [M, W, H]; ``a0`` [M, W] → [M, B, W].
    Differentiable to any order; zero (with a zero value, not a zero gradient) where both ends coincide. The sum over
    nodes runs before the product with ``a``, so the largest tensor is [M, B, W, H], once per node under autograd.
    """
    points, weights = gauss_legendre(nodes)
    half = 0.5 * (s_end - s_start)
    middle = 0.5 * (s_end + s_start)
    rate = omega[:, None, None, :]
    shift = beta[:, None]
    hidden = (
        torch.tanh(torch.addcmul(shift, (middle + half * x)[..., None], rate)) * weight
        for x, weight in zip(points, weights, strict=True)
    )
    mean_flow = (sum(hidden, start=torch.zeros_like(shift)) * a[:, None]).sum(-1) + 2.0 * a0[:, None]
    return half * mean_flow


def flow_loss(
    s_start: Tensor,
    s_end: Tensor,
    omega: Tensor,
    beta: Tensor,
    a: Tensor,
    a0: Tensor,
    target: Tensor,
    weight: Tensor,
    nodes: int = 16,
) -> Tensor:
    """Σ_{b, w} weight[b] (flow_quadrature − target)², [M]; ``target`` [M, B, W] and ``weight`` [M, B] as constants."""
    error = flow_quadrature(s_start, s_end, omega, beta, a, a0, nodes) - target.detach()
    return (error.square() * weight.detach()[..., None]).sum((1, 2))
