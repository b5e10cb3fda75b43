"""A flow along geodesics whose Γ are known: absorbance, its derivative along the shot, and the way back.

The network is not here: `geodesic_rk4` has left Γ and ∂Γ/∂c of every stage, so a stage is a few dozen operations on the
state and one layer of tanh units. Tiles are [hidden, rows] with a thread to a row, so that a sum over hidden units
never leaves the thread.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .._device import TWO_LOG2E, reciprocal, rounded_product
from ..geodesic_rk4._triton import step_states


@triton.jit
def load_flow(place, pace, gain, m, H, K: tl.constexpr):
    """place, pace and gain [K], zero where padded."""
    j = tl.arange(0, K)
    at = m * H + j
    p = tl.load(place + at, mask=j < H, other=0.0)
    q = tl.load(pace + at, mask=j < H, other=0.0)
    return p, q, tl.load(gain + at, mask=j < H, other=0.0)


@triton.jit
def load_shift(shift, m, w, inside, W, H, K: tl.constexpr):
    """shift of the rows' wavelengths ``w`` as [K, BLOCK], in units of `logistic`."""
    j = tl.arange(0, K)
    at = (m * H + j[:, None]) * W + w[None, :]
    return tl.load(shift + at, mask=(j < H)[:, None] & inside[None, :], other=0.0) * TWO_LOG2E


@triton.jit
def logistic(c, v, pk, qk, shift):
    """r = 1/(1 + exp 2z) of every unit [K, BLOCK], so that tanh z = 1 − 2r and its derivative is 4 (r − r²).

    ``pk``, ``qk`` and ``shift`` are times TWO_LOG2E.
    """
    return reciprocal(1.0 + tl.exp2(pk[:, None] * c[None, :] + qk[:, None] * v[None, :] + shift))


@triton.jit
def forward_kernel(
    c_in,
    v_in,
    stage_gamma,
    stage_slope,
    place,
    pace,
    shift,
    gain,
    level,
    change_out,
    ratio_out,
    N,
    W,
    H,
    steps,
    dt,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    SHOT: tl.constexpr,
):
    """∫ F dt of BLOCK rows. SHOT: also (∂A/∂v₀)/(∂c₁/∂v₀), both the exact derivatives of the discrete path.

    That is ∂A/∂b for a path that must end at b, and with it the gradient of a shot needs one walk back and not two.
    """
    m = tl.program_id(1).to(tl.int64)
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = n < N
    row = m * N + n
    c = tl.load(c_in + row, mask=inside, other=0.0)
    v = tl.load(v_in + row, mask=inside, other=0.0)
    p, q, a = load_flow(place, pace, gain, m, H, K)
    fixed = load_shift(shift, m, n % W, inside, W, H, K)
    top = tl.sum(a, 0) + tl.load(level + m)
    pk, qk = p * TWO_LOG2E, q * TWO_LOG2E
    along, across = 4.0 * a * p, 4.0 * a * q
    zero = tl.zeros_like(c)
    # the stage's input and the sums of the step so far, of the state and of its derivative by v₀
    cs, vs = c, v
    sum_c, sum_v, change = zero, zero, zero
    dc, dv, dcs, dvs = zero, zero + 1.0, zero, zero + 1.0
    sum_dc, sum_dv, by_v = zero, zero, zero
    for i in range(4 * steps):
        stage = i % 4
        last = stage == 3
        weight = tl.where((stage == 0) | last, dt / 6.0, dt / 3.0)
        ahead = tl.where(stage == 2, dt, 0.5 * dt)
        at = (m * 4 * steps + i) * N + n
        gamma = tl.load(stage_gamma + at, mask=inside, other=0.0)
        r = logistic(cs, vs, pk, qk, fixed)
        change += weight * (top - 2.0 * tl.sum(rounded_product(r, a[:, None]), 0))
        if SHOT:
            slope = tl.load(stage_slope + at, mask=inside, other=0.0)
            s = r - r * r
            by_c = tl.sum(rounded_product(s, along[:, None]), 0)
            by_pace = tl.sum(rounded_product(s, across[:, None]), 0)
            by_v += weight * (by_c * dcs + by_pace * dvs)
            kdv = -vs * (slope * vs * dcs + 2.0 * gamma * dvs)
            sum_dc += weight * dvs
            sum_dv += weight * kdv
            next_dc = tl.where(last, dc + sum_dc, dc + ahead * dvs)
            dvs = tl.where(last, dv + sum_dv, dv + ahead * kdv)
            dcs = next_dc
            dc, dv = tl.where(last, dcs, dc), tl.where(last, dvs, dv)
            sum_dc, sum_dv = tl.where(last, 0.0, sum_dc), tl.where(last, 0.0, sum_dv)
        kv = -gamma * vs * vs
        sum_c += weight * vs
        sum_v += weight * kv
        next_c = tl.where(last, c + sum_c, c + ahead * vs)
        vs = tl.where(last, v + sum_v, v + ahead * kv)
        cs = next_c
        c, v = tl.where(last, cs, c), tl.where(last, vs, v)
        sum_c, sum_v = tl.where(last, 0.0, sum_c), tl.where(last, 0.0, sum_v)
    tl.store(change_out + row, change, mask=inside)
    if SHOT:
        tl.store(ratio_out + row, by_v / dc, mask=inside)


@triton.jit
def stage_back(
    c, v, gamma, to_kc, to_kv, up, pk, qk, fixed, along, across, stage_slope, points, to_gamma, at, inside,
    sum_shift, sum_place, sum_pace, sum_gain,
):  # fmt: skip
    """Back through one stage: the gradient to its input, the sums so far, and the point with the gradient to its Γ.

    ``up`` is the gradient to the stage's F.
    """
    r = logistic(c, v, pk, qk, fixed)
    s = r - r * r
    slope = tl.load(stage_slope + at, mask=inside, other=0.0)
    by_gamma = -v * v * to_kv
    tl.store(points + at, c, mask=inside)
    tl.store(to_gamma + at, by_gamma, mask=inside)
    to_c = by_gamma * slope + up * tl.sum(rounded_product(s, along[:, None]), 0)
    to_v = to_kc - 2.0 * gamma * v * to_kv + up * tl.sum(rounded_product(s, across[:, None]), 0)
    share = s * up[None, :]
    sum_shift += share
    sum_place += share * c[None, :]
    sum_pace += share * v[None, :]
    sum_gain += up[None, :] - (2.0 * up)[None, :] * r
    return to_c, to_v, sum_shift, sum_place, sum_pace, sum_gain


@triton.jit
def backward_kernel(
    grad,
    ratio,
    stage_gamma,
    stage_slope,
    states,
    place,
    pace,
    shift,
    gain,
    points,
    to_gamma,
    to_c,
    to_v,
    to_shift,
    to_place,
    to_pace,
    to_gain,
    B,
    W,
    H,
    steps,
    dt,
    chunk,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    SHOT: tl.constexpr,
):
    """The adjoint recurrence of BLOCK wavelengths and a chunk of the pairs, one pair after the other.

    SHOT: the path must end where it ended, so the multiplier of that condition, −(∂L/∂A)·``ratio``, is where c's
    adjoint begins; the gradient to v₀ then is zero. Leaves a list of points and the gradients to their Γ
    [M, 4·steps, N], and sums over this program's pairs: ``to_shift`` [chunks, M, H, W], the others
    [chunks, M, blocks, H].
    """
    m = tl.program_id(2).to(tl.int64)
    w = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = w < W
    N = B * W
    p, q, a = load_flow(place, pace, gain, m, H, K)
    fixed = load_shift(shift, m, w, inside, W, H, K)
    pk, qk = p * TWO_LOG2E, q * TWO_LOG2E
    along, across = 4.0 * a * p, 4.0 * a * q
    sum_shift = tl.zeros([K, BLOCK], tl.float32)
    sum_place = tl.zeros([K, BLOCK], tl.float32)
    sum_pace = tl.zeros([K, BLOCK], tl.float32)
    sum_gain = tl.zeros([K, BLOCK], tl.float32)
    sixth, third, half = dt / 6.0, dt / 3.0, 0.5 * dt
    first = tl.program_id(1) * chunk
    for pair in range(first, tl.minimum(first + chunk, B)):
        n = pair * W + w
        row = m * N + n
        up = tl.load(grad + row, mask=inside, other=0.0)
        gc, gv = tl.zeros_like(up), tl.zeros_like(up)
        if SHOT:
            gc = -up * tl.load(ratio + row, mask=inside, other=0.0)
        for back in range(steps):
            step = steps - 1 - back
            state = (m * ((steps + 1) // 2) + step // 2) * 2 * N + n
            c = tl.load(states + state, mask=inside, other=0.0)
            v = tl.load(states + state + N, mask=inside, other=0.0)
            at = (m * steps + step) * 4 * N + n
            if step % 2 == 1:
                _, _, _, _, _, _, _, _, _, _, c, v = step_states(c, v, stage_gamma, at - 4 * N, N, dt, inside)
            g0, g1, g2, g3, c1, v1, c2, v2, c3, v3, _, _ = step_states(c, v, stage_gamma, at, N, dt, inside)
            xc, xv, sum_shift, sum_place, sum_pace, sum_gain = stage_back(
                c3, v3, g3, sixth * gc, sixth * gv, sixth * up, pk, qk, fixed, along, across, stage_slope, points,
                to_gamma, at + 3 * N, inside, sum_shift, sum_place, sum_pace, sum_gain,
            )  # fmt: skip
            sum_c, sum_v = xc, xv
            xc, xv, sum_shift, sum_place, sum_pace, sum_gain = stage_back(
                c2, v2, g2, third * gc + dt * xc, third * gv + dt * xv, third * up, pk, qk, fixed, along, across,
                stage_slope, points, to_gamma, at + 2 * N, inside, sum_shift, sum_place, sum_pace, sum_gain,
            )  # fmt: skip
            sum_c, sum_v = sum_c + xc, sum_v + xv
            xc, xv, sum_shift, sum_place, sum_pace, sum_gain = stage_back(
                c1, v1, g1, third * gc + half * xc, third * gv + half * xv, third * up, pk, qk, fixed, along, across,
                stage_slope, points, to_gamma, at + N, inside, sum_shift, sum_place, sum_pace, sum_gain,
            )  # fmt: skip
            sum_c, sum_v = sum_c + xc, sum_v + xv
            xc, xv, sum_shift, sum_place, sum_pace, sum_gain = stage_back(
                c, v, g0, sixth * gc + half * xc, sixth * gv + half * xv, sixth * up, pk, qk, fixed, along, across,
                stage_slope, points, to_gamma, at, inside, sum_shift, sum_place, sum_pace, sum_gain,
            )  # fmt: skip
            gc, gv = gc + (sum_c + xc), gv + (sum_v + xv)
        tl.store(to_c + row, gc, mask=inside)
        tl.store(to_v + row, gv, mask=inside)
    j = tl.arange(0, K)
    split = tl.program_id(1).to(tl.int64) * tl.num_programs(2) + m
    unit = 4.0 * a
    at = (split * H + j[:, None]) * W + w[None, :]
    tl.store(to_shift + at, sum_shift * unit[:, None], mask=(j < H)[:, None] & inside[None, :])
    at = (split * tl.num_programs(0) + tl.program_id(0)) * H + j
    tl.store(to_place + at, unit * tl.sum(sum_place, 1), mask=j < H)
    tl.store(to_pace + at, unit * tl.sum(sum_pace, 1), mask=j < H)
    tl.store(to_gain + at, tl.sum(sum_gain, 1), mask=j < H)
