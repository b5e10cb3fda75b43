"""Γ(·, λ) along a path from its values at Chebyshev nodes: barycentric interpolation, and when it may be trusted.

Interpolation at K nodes errs by about ρ**−K, where ρ belongs to the largest ellipse about the range in which the
function is analytic (Trefethen, Approximation Theory and Approximation Practice, ch. 8). tanh z has its poles at
Im z = ±π/2, and Im z ≈ (dz/dc)·Im c near the axis, so the poles lie about ½π/max|dz/dc| away; those of softplus and of
1/g lie at Im y = ±π. The derivatives are known at the nodes. ``SAFE`` allows for their change between the nodes and
away from the axis.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ._device import constant, reciprocal, rounded_product
from ._network import gamma_from, steepness_too

PI = constant(3.141592653589793)
SAFE = constant(0.7)
# Half of the range looked at, in path lengths at the first velocity: 1.25 of them ahead.
REACH = constant(0.625)
SHORTEST = constant(1e-4)  # of a range: a path that rests has one too
EDGE = constant(1.001)  # the range ends here: a rounding error beyond ±1


@triton.jit
def chebyshev(NODES: tl.constexpr, PADDED: tl.constexpr):
    """Chebyshev nodes in (−1, 1) and their barycentric weights [PADDED]; a padded one weighs nothing."""
    k = tl.arange(0, PADDED)
    angle = (k.to(tl.float32) + 0.5) * PI / NODES
    sign = 1.0 - 2.0 * (k % 2).to(tl.float32)
    return tl.cos(angle), tl.where(k < NODES, sign * tl.sin(angle), 0.0)


@triton.jit
def at_node(tile, k, PADDED: tl.constexpr):
    """Entry k of a vector [PADDED]."""
    return tl.sum(tl.where(tl.arange(0, PADDED) == k, tile, 0.0), 0)


@triton.jit
def put(tile, k, column, PADDED: tl.constexpr):
    """The tile [B, PADDED] with column k replaced."""
    return tl.where((tl.arange(0, PADDED) == k)[None, :], column[:, None], tile)


@triton.jit
def shares(x, nodes, weights):
    """What each node contributes at x [B], as a tile [B, PADDED], and one over their sum [B]."""
    apart = x[:, None] - nodes[None, :]
    share = rounded_product(weights[None, :], reciprocal(tl.where(apart == 0.0, 1e-30, apart)))
    return share, reciprocal(tl.sum(share, 1))


@triton.jit
def weighted(share, per_sum, values):
    """Values at the nodes [B, PADDED], interpolated where `shares` were taken [B]; the same bits in every lane."""
    return tl.sum(rounded_product(share, values), 1) * per_sum


@triton.jit
def range_ahead(v):
    """Half the range that a path of velocity v is looked for in, with the sign of v."""
    half = REACH * v
    return tl.where(tl.abs(half) > SHORTEST, half, SHORTEST)


@triton.jit
def nearest_pole(steep, dy, peak, OUTPUT: tl.constexpr):
    """One over the distance of the nearest pole, from max|dz₂/dc| and ∂y/∂c [B] and the largest |∂z₁/∂c|."""
    per = tl.maximum(steep * (2.0 / (PI * SAFE)), peak * (2.0 / (PI * 0.9)))
    if OUTPUT == 0:
        per = tl.maximum(per, tl.abs(dy) * (1.0 / (PI * SAFE)))
    return per


@triton.jit
def symbols_at_nodes(
    nodes,
    middle,
    half,
    zl,
    wck,
    w2_high,
    w2_low,
    w2_scale,
    b2,
    w3,
    y0,
    wc,
    needed,
    PRECISION: tl.constexpr,
    OUTPUT: tl.constexpr,
    SLOPES: tl.constexpr,
    NODES: tl.constexpr,
    PADDED: tl.constexpr,
):
    """Γ and, with SLOPES, ∂Γ/∂c at every node of each row's range, as tiles [B, PADDED], and which rows' poles lie at
    least ``needed`` half ranges away, so that they may be interpolated [B]."""
    gammas = tl.zeros([middle.shape[0], PADDED], tl.float32)
    slopes = gammas
    per_pole = tl.zeros_like(middle)
    peak = tl.max(tl.abs(wc), 0)
    for k in range(NODES):
        y, dy, ddy, steep = steepness_too(
            middle + half * at_node(nodes, k, PADDED), zl, wck, w2_high, w2_low, w2_scale, b2, w3, y0, wc, PRECISION,
            2 if SLOPES else 1, True,
        )  # fmt: skip
        _, _, gamma, slope = gamma_from(y, dy, ddy, OUTPUT)
        per_pole = tl.maximum(per_pole, nearest_pole(steep, dy, peak, OUTPUT))
        gammas = put(gammas, k, gamma, PADDED)
        if SLOPES:
            slopes = put(slopes, k, slope, PADDED)
    return gammas, slopes, per_pole * tl.abs(half) * needed <= 1.0
