"""A flow that sees the velocity: Gauss nodes in path time, the metric's density at each from its table; plain torch.

On a geodesic arc length grows evenly with t, so node x lies at ŝ = ŝ_a + ½(1 + x)(ŝ_b − ŝ_a). Its warp coordinate u
solves S(u) = (ŝ + 1) S(1)/2, its velocity is u̇ = ½ S(1) (ŝ_b − ŝ_a)/ρ(u) with ρ = √g̃ = S′, the series that S
integrates: along one wavelength the table knows ρ to rounding, and 64 evaluations stand for 16 a path.
"""

import torch
from torch import Tensor

from .._gauss import gauss_legendre
from ..arc_length.reference import clenshaw, invert

NEWTON = 5  # steps after bracketing between table nodes


def path_points(
    ends: Tensor,
    half: Tensor,
    series: Tensor,
    slope: Tensor,
    ascending: Tensor,
    grid: Tensor,
    low: Tensor,
    high: Tensor,
    nodes: int,
) -> tuple[Tensor, Tensor]:
    """u and ρ(u) [M, Q, B, W] at the Gauss nodes of paths with ŝ ``ends`` [M, 2, B, W].

    ``half`` [M, W] is S(1)/2, ``series`` [M, T + 1, W] and ``slope`` [M, T, W] the coefficients of S and ρ,
    ``ascending`` [M, T, W] S at the table's nodes ``grid`` [M, T]; ``low``, ``high`` [M] are the table's range.
    The last Newton step is attached, so u has its first derivative, and ρ has its own by ``slope`` and by u.
    """
    x = ends.new_tensor(gauss_legendre(nodes)[0])[None, :, None, None]
    start, end = ends[:, :1], ends[:, 1:]
    target = (start + 0.5 * (1.0 + x) * (end - start) + 1.0) * half[:, None, None]
    low, high = low[:, None, None, None], high[:, None, None, None]
    edges = [x.expand_as(ascending[:, :1, None]) for x in (low, high)]
    ends_s = [evaluate(series, x, low, high)[:, 0] for x in edges]
    places = torch.cat([edges[0][:, 0], grid[..., None].expand_as(ascending), edges[1][:, 0]], 1)
    lengths = torch.cat([ends_s[0], ascending, ends_s[1]], 1)
    u = invert(
        target,
        places.movedim(1, 0)[:, :, None, None],
        lengths.movedim(1, 0)[:, :, None, None],
        lambda u: evaluate(series, u, low, high),
        lambda u: evaluate(slope, u, low, high).clamp_min(1e-12),
        NEWTON,
    )
    with torch.no_grad():
        density = evaluate(slope, u, low, high)
    u = u - (evaluate(series, u, low, high) - target) / density
    return u, evaluate(slope, u, low, high)


def evaluate(coefficients: Tensor, u: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Chebyshev series [M, K, W] at u [M, Q, B, W]; ``low``, ``high`` [M, 1, 1, 1]: the range of the table."""
    return clenshaw(coefficients.movedim(1, 0)[:, :, None, None], (2.0 * u - low - high) / (high - low))


def velocity_loss(
    ends: Tensor,
    density: Tensor,
    half: Tensor,
    omega: Tensor,
    nu: Tensor,
    beta: Tensor,
    a: Tensor,
    a0: Tensor,
    target: Tensor,
    weight: Tensor,
) -> Tensor:
    """Σ weight·(∫ h dŝ − target)², [M], with h = Σⱼ aⱼ tanh(ωⱼ ŝ + νⱼ u̇ + βⱼ) + a₀.

    ends [M, 2, B, W]; density ρ [M, Q, B, W] at the nodes; half [M, W]; ω, ν [M, H]; β, a [M, W, H]; a₀ [M, W]; target
    [M, B, W]; weight [M, B].
    """
    start, step = ends[:, 0], ends[:, 1] - ends[:, 0]
    mean = torch.zeros_like(start)
    for q, (x, share) in enumerate(zip(*gauss_legendre(density.shape[1]), strict=True)):
        s_hat = start + 0.5 * (1.0 + x) * step
        velocity = half[:, None] * step / density[:, q]
        inside = s_hat[..., None] * omega[:, None, None] + velocity[..., None] * nu[:, None, None] + beta[:, None]
        mean = mean + 0.5 * share * ((torch.tanh(inside) * a[:, None]).sum(-1) + a0[:, None])
    return (weight[..., None] * (step * mean - target).square()).sum((1, 2))
