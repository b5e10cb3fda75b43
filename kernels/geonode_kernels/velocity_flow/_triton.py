"""Points of a path by inverting the arc-length table, and the loss of a flow that sees the velocity.

A program owns one wavelength of one model. Points are tiles [nodes, pairs] in which the series are shared scalars; the
flow's tiles are [pairs, hidden].
"""

from __future__ import annotations

import triton
import triton.language as tl

from .._device import TWO_LOG2E, reciprocal, rounded_product


@triton.jit
def both_series(x, series, slope, T, stride):
    """S and ρ at x: two Clenshaw recurrences side by side."""
    top = tl.load(series + T * stride)
    s_late, s_last = tl.zeros_like(x), tl.zeros_like(x) + top
    d_late, d_last = tl.zeros_like(x), tl.zeros_like(x)
    for back in range(T - 1):
        k = T - 1 - back
        s_late, s_last = s_last, 2.0 * x * s_last - s_late + tl.load(series + k * stride)
        d_late, d_last = d_last, 2.0 * x * d_last - d_late + tl.load(slope + k * stride)
    return x * s_last - s_late + tl.load(series), x * d_last - d_late + tl.load(slope)


@triton.jit
def value_and_slope(x, series, T, stride):
    """A series [T] and its derivative at x: Clenshaw's recurrence, and what differentiating it by x gives."""
    late, last = tl.zeros_like(x), tl.zeros_like(x)
    # own zeros: of two names for one value, swapped in a loop, the compiler takes one for constant
    slope_late, slope_last = tl.zeros_like(x), tl.zeros_like(x)
    for back in range(T - 1):
        slope_late, slope_last = slope_last, 2.0 * (last + x * slope_last) - slope_late
        late, last = last, 2.0 * x * last - late + tl.load(series + (T - 1 - back) * stride)
    return x * last - late + tl.load(series), last + x * slope_last - slope_late


@triton.jit
def path_targets(ends, half, table, m, w, n, B, W, Q, KQ: tl.constexpr):
    """(share of the end, ŝ + 1) as tiles [KQ, pairs], S(1)/2, and which entries are real."""
    q = tl.arange(0, KQ)
    x = tl.load(table + 2 * q, mask=q < Q, other=0.0)
    share = (0.5 * (1.0 + x))[:, None]
    at = (m * 2 * B + n) * W + w
    at_end = ((m * 2 + 1) * B + n) * W + w
    start = tl.load(ends + at, mask=n < B, other=0.0)[None, :]
    end = tl.load(ends + at_end, mask=n < B, other=0.0)[None, :]
    s_hat = start + share * (end - start)
    return share, s_hat + 1.0, tl.load(half + m * W + w), (q < Q)[:, None] & (n < B)[None, :]


@triton.jit
def points_kernel(
    ends,
    half,
    series,
    slope,
    ascending,
    grid,
    low,
    high,
    table,
    u_out,
    density_out,
    B,
    W,
    Q,
    T,
    halvings,
    KQ: tl.constexpr,
    BLOCK: tl.constexpr,
    NEWTON: tl.constexpr,
):
    """``ascending`` [M, T, W], ``grid`` [M, T]; halvings ≥ log₂ T of the bracket, then Newton, its last step free.

    A point whose step is a rounding error rests, and a program whose points all rest is done. Writes u and ρ(u) as
    [M, W, Q, B], so that pairs lie side by side.
    """
    w = tl.program_id(0)
    m = tl.program_id(2).to(tl.int64)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    _, above, scale, inside = path_targets(ends, half, table, m, w, n, B, W, Q, KQ)
    target = above * scale
    bottom = tl.load(low + m)
    top = tl.load(high + m)
    values = ascending + m * T * W + w
    left = tl.zeros([KQ, BLOCK], tl.int32)
    right = left + (T - 1)
    for _ in range(halvings):
        middle = (left + right) // 2
        beyond = tl.load(values + middle * W) < target
        apart = right - left > 1
        left = tl.where(beyond & apart, middle, left)
        right = tl.where(beyond | (apart == 0), right, middle)
    s_left, s_right = tl.load(values + left * W), tl.load(values + right * W)
    u_left, u_right = tl.load(grid + m * T + left), tl.load(grid + m * T + right)
    u = u_left + (target - s_left) / (s_right - s_left) * (u_right - u_left)
    per_u = 2.0 / (top - bottom)
    series += m * (T + 1) * W + w
    slope += m * T * W + w
    density = tl.zeros_like(u)
    rests = inside == 0
    for i in range(NEWTON + 1):
        if tl.min(tl.min(rests.to(tl.int32), 0), 0) == 0:
            s, density = both_series((u - bottom) * per_u - 1.0, series, slope, T, W)
            step = (s - target) / tl.maximum(density, 1e-12)
            new = u - step
            new = tl.where(i == NEWTON, new, tl.minimum(tl.maximum(new, bottom), top))
            u = tl.where(rests, u, new)
            rests = rests | (tl.abs(step) <= 1e-6 * (tl.abs(u) + 0.1))  # the next one would be below 1e-12
    density, _ = value_and_slope((u - bottom) * per_u - 1.0, slope, T, W)
    q = tl.arange(0, KQ).to(tl.int64)
    at = ((m * W + w) * Q + q[:, None]) * B + n[None, :]
    tl.store(u_out + at, u, mask=inside)
    tl.store(density_out + at, density, mask=inside)


@triton.jit
def points_backward_kernel(
    ends,
    half,
    slope,
    low,
    high,
    table,
    u_in,
    grad_u,
    grad_density,
    to_ends,
    to_half,
    to_series,
    to_slope,
    B,
    W,
    Q,
    T,
    KQ: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Gradients to the ends, and this program's share of those to S(1)/2 and to the series of S and of ρ.

    ``to_half`` [blocks, M, W], ``to_series`` [blocks, M, T + 1, W], ``to_slope`` [blocks, M, T, W].
    """
    w = tl.program_id(0)
    m = tl.program_id(2).to(tl.int64)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    share, above, scale, inside = path_targets(ends, half, table, m, w, n, B, W, Q, KQ)
    q = tl.arange(0, KQ).to(tl.int64)
    at = ((m * W + w) * Q + q[:, None]) * B + n[None, :]
    bottom = tl.load(low + m)
    per_u = 2.0 / (tl.load(high + m) - bottom)
    u = tl.load(u_in + at, mask=inside, other=0.0)
    x = tl.where(inside, (u - bottom) * per_u - 1.0, 0.0)
    density, change = value_and_slope(x, slope + m * T * W + w, T, W)
    to_density = tl.load(grad_density + at, mask=inside, other=0.0)
    to_u = tl.load(grad_u + at, mask=inside, other=0.0) + to_density * (change * per_u)
    to_target = to_u / tl.where(inside, density, 1.0)
    at = (m * 2 * B + n) * W + w
    at_end = ((m * 2 + 1) * B + n) * W + w
    late = tl.sum(rounded_product(to_target, share), 0) * scale
    whole = tl.sum(to_target, 0) * scale
    tl.store(to_ends + at, whole - late, mask=n < B)
    tl.store(to_ends + at_end, late, mask=n < B)
    place = tl.program_id(1).to(tl.int64) * tl.num_programs(2) + m
    tl.store(to_half + place * W + w, tl.sum(tl.sum(rounded_product(to_target, above), 0), 0))
    to_series += place * (T + 1) * W + w
    to_slope += place * T * W + w
    before, now = x, tl.zeros_like(x) + 1.0
    for k in range(T):
        tl.store(to_series + k * W, -tl.sum(tl.sum(rounded_product(to_target, now), 0), 0))
        tl.store(to_slope + k * W, tl.sum(tl.sum(rounded_product(to_density, now), 0), 0))
        before, now = now, 2.0 * x * now - before
    tl.store(to_series + T * W, -tl.sum(tl.sum(rounded_product(to_target, now), 0), 0))


@triton.jit
def unit(s_hat, velocity, rate, drift, shift):
    """r = 1/(1 + exp 2z) of every unit [pairs, H]; tanh z = 1 − 2r. Arguments scaled by TWO_LOG2E."""
    z = s_hat[:, None] * rate[None, :] + velocity[:, None] * drift[None, :] + shift[None, :]
    return reciprocal(1.0 + tl.exp2(tl.minimum(z, 120.0)))


@triton.jit
def loss_kernel(
    ends,
    density,
    half,
    omega,
    nu,
    beta,
    a,
    a0,
    table,
    target,
    weight,
    to_ends,
    to_density,
    to_half,
    to_omega,
    to_nu,
    to_beta,
    to_a,
    to_a0,
    loss,
    B,
    W,
    H,
    Q,
    chunk,
    K: tl.constexpr,
    KQ: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Loss and every gradient of this program's pairs; sums over pairs are [splits, M, W, H] or [splits, M, W].

    One pass over the nodes: a pair's gradients are sums over them times its error, which is known afterwards.
    ``density`` and its gradient are [M, W, Q, B].
    """
    w = tl.program_id(0)
    m = tl.program_id(2).to(tl.int64)
    j = tl.arange(0, K)
    mask = j < H
    at = (m * W + w) * H + j
    frequency = tl.load(omega + m * H + j, mask=mask, other=0.0)
    drag = tl.load(nu + m * H + j, mask=mask, other=0.0)
    rate, drift = frequency * TWO_LOG2E, drag * TWO_LOG2E
    shift = tl.load(beta + at, mask=mask, other=0.0) * TWO_LOG2E
    gain = tl.load(a + at, mask=mask, other=0.0)
    level = tl.load(a0 + m * W + w)
    scale = tl.load(half + m * W + w)
    along, across = 4.0 * gain * frequency, 4.0 * gain * drag
    node = tl.arange(0, KQ)
    sum_a = tl.zeros([BLOCK, K], tl.float32)
    sum_beta = tl.zeros([BLOCK, K], tl.float32)
    sum_omega = tl.zeros([BLOCK, K], tl.float32)
    sum_nu = tl.zeros([BLOCK, K], tl.float32)
    sum_a0 = tl.zeros([BLOCK], tl.float32)
    sum_half = tl.zeros([BLOCK], tl.float32)
    sum_loss = tl.zeros([BLOCK], tl.float32)
    first = tl.program_id(1) * chunk
    for begin in range(first, tl.minimum(first + chunk, B), BLOCK):
        n = begin + tl.arange(0, BLOCK)
        inside = n < B
        place = (m * 2 * B + n) * W + w
        place_end = ((m * 2 + 1) * B + n) * W + w
        start = tl.load(ends + place, mask=inside, other=0.0)
        step = tl.load(ends + place_end, mask=inside, other=0.0) - start
        at_node = ((m * W + w) * Q + node[None, :]) * B + n[:, None]
        known = inside[:, None] & (node < Q)[None, :]
        per_rho = 1.0 / tl.load(density + at_node, mask=known, other=1.0)
        velocities = (scale * step)[:, None] * per_rho
        to_velocities = tl.zeros([BLOCK, KQ], tl.float32)
        t0 = tl.zeros([BLOCK, K], tl.float32)
        t1 = tl.zeros([BLOCK, K], tl.float32)
        t2 = tl.zeros([BLOCK, K], tl.float32)
        t3 = tl.zeros([BLOCK, K], tl.float32)
        for q in range(Q):
            part = 0.5 * tl.load(table + 2 * q + 1)
            late = 0.5 * (1.0 + tl.load(table + 2 * q))
            this = (node == q)[None, :]
            velocity = tl.sum(tl.where(this, velocities, 0.0), 1)
            r = unit(start + late * step, velocity, rate, drift, shift)
            slope = part * (r - r * r)
            t0 += part * r
            t1 += slope
            t2 += late * slope
            t3 += velocity[:, None] * slope
            slant = tl.sum(rounded_product(slope, across[None, :]), 1)
            to_velocities = tl.where(this, slant[:, None], to_velocities)
        value = 1.0 - 2.0 * t0
        mean = tl.sum(rounded_product(value, gain[None, :]), 1) + level
        share = tl.load(weight + m * B + n, mask=inside, other=0.0)
        error = step * mean - tl.load(target + (m * B + n) * W + w, mask=inside, other=0.0)
        up = 2.0 * share * error
        sum_loss += share * error * error
        up_mean = up * step
        to_rho = -up_mean[:, None] * to_velocities * velocities * per_rho
        tl.store(to_density + at_node, to_rho, mask=known)
        to_scale = up_mean * tl.sum(rounded_product(to_velocities, per_rho), 1)
        # ŝ = start + late·step, u̇ = scale·step/ρ
        to_s = up_mean * tl.sum(rounded_product(t1, along[None, :]), 1)
        to_step = up * mean + up_mean * tl.sum(rounded_product(t2, along[None, :]), 1) + scale * to_scale
        tl.store(to_ends + place, to_s - to_step, mask=inside)
        tl.store(to_ends + place_end, to_step, mask=inside)
        sum_half += step * to_scale
        sum_a0 += up_mean
        sum_a += up_mean[:, None] * value
        sum_beta += up_mean[:, None] * t1
        sum_omega += (up_mean * start)[:, None] * t1 + (up_mean * step)[:, None] * t2
        sum_nu += up_mean[:, None] * t3
    split = (tl.program_id(1).to(tl.int64) * tl.num_programs(2) + m) * W + w
    at = split * H + j
    tl.store(to_a + at, tl.sum(sum_a, 0), mask=mask)
    tl.store(to_beta + at, 4.0 * gain * tl.sum(sum_beta, 0), mask=mask)
    tl.store(to_omega + at, 4.0 * gain * tl.sum(sum_omega, 0), mask=mask)
    tl.store(to_nu + at, 4.0 * gain * tl.sum(sum_nu, 0), mask=mask)
    tl.store(to_a0 + split, tl.sum(sum_a0, 0))
    tl.store(to_half + split, tl.sum(sum_half, 0))
    tl.store(loss + split, tl.sum(sum_loss, 0))
