"""The whole fixed-step integration of a geodesic in one launch: state, stages and weights never leave the chip."""

from __future__ import annotations

import triton
import triton.language as tl

from .._along import EDGE, chebyshev, range_ahead, shares, symbols_at_nodes, weighted
from .._network import gamma_from, load_network, value_and_derivatives


@triton.jit
def integrate(
    c,
    v,
    zl,
    wck,
    w2_high,
    w2_low,
    w2_scale,
    b2,
    w3,
    y0,
    wc,
    nodes,
    weights,
    gammas,
    slopes,
    middle,
    per_half,
    stage_gamma,
    stage_slope,
    states,
    m,
    n,
    N,
    wanted,
    steps,
    dt,
    PRECISION: tl.constexpr,
    OUTPUT: tl.constexpr,
    EVERY: tl.constexpr,
    SAVE: tl.constexpr,
    FROM_NODES: tl.constexpr,
):
    """One rolled loop over the 4·steps stages: (c, v) at the end, and how far c went from ``middle`` in half ranges.

    Γ comes from the network, or, FROM_NODES, from its values there. What is kept is written for the rows ``wanted``.
    """
    # s: the stage's input; k: its slope; total: Σ b_i k_i of the step so far
    cs, vs = c, v
    total_c, total_v = tl.zeros_like(c), tl.zeros_like(c)
    furthest = tl.zeros_like(c)
    for i in range(4 * steps):
        stage = i % 4
        last = stage == 3
        weight = tl.where((stage == 0) | last, dt / 6.0, dt / 3.0)
        ahead = tl.where(stage == 2, dt, 0.5 * dt)
        if EVERY > 0:  # noqa: SIM102 – decided when compiling, the next one at run time
            if i % (4 * EVERY) == 0:
                kept = steps + 1 if EVERY == 1 else (steps + 1) // 2
                at = (m * kept + i // (4 * EVERY)) * 2 * N + n
                tl.store(states + at, cs, mask=wanted)
                tl.store(states + at + N, vs, mask=wanted)
        if FROM_NODES:
            x = (cs - middle) * per_half
            furthest = tl.where(tl.abs(x) <= furthest, furthest, tl.abs(x))  # and NaN stays NaN
            share, per_sum = shares(x, nodes, weights)
            gamma = weighted(share, per_sum, gammas)
            dgamma = gamma
            if SAVE:
                dgamma = weighted(share, per_sum, slopes)
        else:
            y, dy, ddy = value_and_derivatives(
                cs, zl, wck, w2_high, w2_low, w2_scale, b2, w3, y0, wc, PRECISION, 2 if SAVE else 1
            )
            _, _, gamma, dgamma = gamma_from(y, dy, ddy, OUTPUT)
        if SAVE:
            at = (m * 4 * steps + i) * N + n
            tl.store(stage_gamma + at, gamma, mask=wanted)
            tl.store(stage_slope + at, dgamma, mask=wanted)
        kc, kv = vs, -gamma * vs * vs
        total_c += weight * kc
        total_v += weight * kv
        cs = tl.where(last, c + total_c, c + ahead * kc)
        vs = tl.where(last, v + total_v, v + ahead * kv)
        c, v = tl.where(last, cs, c), tl.where(last, vs, v)
        total_c, total_v = tl.where(last, 0.0, total_c), tl.where(last, 0.0, total_v)
    if EVERY == 1:
        at = (m * (steps + 1) + steps) * 2 * N + n
        tl.store(states + at, c, mask=wanted)
        tl.store(states + at + N, v, mask=wanted)
    return c, v, furthest


@triton.jit
def forward_kernel(
    c_in,
    v_in,
    wavelength,
    w1,
    b1,
    w2,
    b2,
    w3,
    b3,
    c_out,
    v_out,
    stage_gamma,
    stage_slope,
    states,
    ranges,
    N,
    H1,
    H2,
    steps,
    dt,
    needed,
    K1: tl.constexpr,
    K2: tl.constexpr,
    BLOCK: tl.constexpr,
    PRECISION: tl.constexpr,
    OUTPUT: tl.constexpr,
    EVERY: tl.constexpr,
    SAVE: tl.constexpr,
    NODES: tl.constexpr,
    PADDED: tl.constexpr,
):
    """One program integrates BLOCK problems of one model.

    With NODES, Γ is interpolated from that many points of the range ahead. A problem whose poles are nearer than
    ``needed`` half ranges, or that leaves its range, is integrated by the network itself, and so are all where NODES
    is 0. What becomes of a problem depends on no other one.

    EVERY keeps (c, v) in ``states``: 1 at the beginning of every step and at the end [M, steps + 1, 2, N], 2 at the
    beginning of every second step [M, (steps + 1)//2, 2, N], 0 never. SAVE keeps what the way back needs besides: Γ
    and ∂Γ/∂c of every stage [M, 4·steps, N], and half the range of each problem, 0 where the network was asked [M, N].
    """
    m = tl.program_id(1).to(tl.int64)
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = n < N
    row = m * N + n
    c = tl.load(c_in + row, mask=inside, other=0.0).to(tl.float32)
    v = tl.load(v_in + row, mask=inside, other=0.0).to(tl.float32)
    lam = tl.load(wavelength + row, mask=inside, other=0.0).to(tl.float32)
    wck, wlk, bk1, w2_high, w2_low, w2_scale, bk2, wo, y0, wc = load_network(
        w1, b1, w2, b2, w3, b3, m, H1, H2, K1, K2, PRECISION
    )
    zl = lam[:, None] * wlk[None, :] + bk1[None, :]
    half = range_ahead(v)
    middle, per_half = c + half, 1.0 / half
    nodes, weights = chebyshev(NODES if NODES > 0 else PADDED, PADDED)
    gammas = tl.zeros([BLOCK, PADDED], tl.float32)
    slopes = gammas
    c1, v1 = c, v
    good = n < 0
    if NODES > 0:
        gammas, slopes, good = symbols_at_nodes(
            nodes, middle, half, zl, wck, w2_high, w2_low, w2_scale, bk2, wo, y0, wc, needed, PRECISION, OUTPUT, SAVE,
            NODES, PADDED,
        )  # fmt: skip
        if tl.max((good & inside).to(tl.int32), 0) > 0:
            c1, v1, furthest = integrate(
                c, v, zl, wck, w2_high, w2_low, w2_scale, bk2, wo, y0, wc, nodes, weights, gammas, slopes, middle,
                per_half, stage_gamma, stage_slope, states, m, n, N, inside & good, steps, dt, PRECISION, OUTPUT, EVERY,
                SAVE, True,
            )  # fmt: skip
            good = good & (furthest <= EDGE)
    if tl.max((inside & (good == 0)).to(tl.int32), 0) > 0:
        c2, v2, _ = integrate(
            c, v, zl, wck, w2_high, w2_low, w2_scale, bk2, wo, y0, wc, nodes, weights, gammas, slopes, middle,
            per_half, stage_gamma, stage_slope, states, m, n, N, inside & (good == 0), steps, dt, PRECISION, OUTPUT,
            EVERY, SAVE, False,
        )  # fmt: skip
        c1, v1 = tl.where(good, c1, c2), tl.where(good, v1, v2)
    if SAVE:
        tl.store(ranges + row, tl.where(good, half, 0.0), mask=inside)
    if EVERY != 1:
        tl.store(c_out + row, c1, mask=inside)
        tl.store(v_out + row, v1, mask=inside)


@triton.jit
def step_states(c, v, gamma, at, N, dt, inside):
    """(c, v) of the four stages of a step, from the Γ saved for them, and the step's end."""
    g0 = tl.load(gamma + at, mask=inside, other=0.0)
    g1 = tl.load(gamma + at + N, mask=inside, other=0.0)
    g2 = tl.load(gamma + at + 2 * N, mask=inside, other=0.0)
    g3 = tl.load(gamma + at + 3 * N, mask=inside, other=0.0)
    half = 0.5 * dt
    k0 = -g0 * v * v
    c1, v1 = c + half * v, v + half * k0
    k1 = -g1 * v1 * v1
    c2, v2 = c + half * v1, v + half * k1
    k2 = -g2 * v2 * v2
    c3, v3 = c + dt * v2, v + dt * k2
    k3 = -g3 * v3 * v3
    c_end = c + dt / 6.0 * (v + 2.0 * (v1 + v2) + v3)
    v_end = v + dt / 6.0 * (k0 + 2.0 * (k1 + k2) + k3)
    return g0, g1, g2, g3, c1, v1, c2, v2, c3, v3, c_end, v_end


@triton.jit
def stage_back(
    c, v, gamma, to_kc, to_kv, stage_gamma, stage_slope, at, inside, short, nodes, weights, middle, per_half, share_of
):
    """Back through one stage: the gradient to its input, and what ∂L/∂Γ there adds to the nodes' share.

    Where the program is not ``short``, writes (c, ∂L/∂Γ) over the saved (Γ, ∂Γ/∂c) instead.
    """
    slope = tl.load(stage_slope + at, mask=inside, other=0.0)
    to_gamma = -v * v * to_kv
    if short:
        share, per_sum = shares((c - middle) * per_half, nodes, weights)
        share_of += (to_gamma * per_sum)[:, None] * share
    else:
        tl.store(stage_gamma + at, c, mask=inside)
        tl.store(stage_slope + at, to_gamma, mask=inside)
    return to_gamma * slope, to_kc - 2.0 * gamma * v * to_kv, share_of


@triton.jit
def shorten_kernel(
    points,
    to_gamma,
    start,
    ranges,
    N,
    stages,
    BLOCK: tl.constexpr,
    NODES: tl.constexpr,
    PADDED: tl.constexpr,
):
    """A list of points with the gradients to their Γ, in place: that of their paths' nodes, as `reverse_kernel` leaves
    it, where all BLOCK problems were interpolated."""
    m = tl.program_id(1).to(tl.int64)
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = n < N
    half = tl.load(ranges + m * N + n, mask=inside, other=1.0)
    if tl.min(tl.abs(half), 0) > 0.0:
        middle, per_half = tl.load(start + m * N + n, mask=inside, other=0.0) + half, 1.0 / half
        nodes, weights = chebyshev(NODES, PADDED)
        share_of = tl.zeros([BLOCK, PADDED], tl.float32)
        for stage in range(stages):
            at = (m * stages + stage) * N + n
            x = (tl.load(points + at, mask=inside, other=0.0) - middle) * per_half
            share, per_sum = shares(x, nodes, weights)
            share_of += (tl.load(to_gamma + at, mask=inside, other=0.0) * per_sum)[:, None] * share
        k = tl.arange(0, PADDED)
        at = (m * stages + k[None, :]) * N + n[:, None]
        asked = inside[:, None] & (k < NODES)[None, :]
        tl.debug_barrier()  # every thread has read what others now write over
        tl.store(points + at, middle[:, None] + half[:, None] * nodes[None, :], mask=asked)
        tl.store(to_gamma + at, share_of, mask=asked)


@triton.jit
def reverse_kernel(
    grad_c1,
    grad_v1,
    stage_gamma,
    stage_slope,
    states,
    ranges,
    grad_c0,
    grad_v0,
    N,
    steps,
    dt,
    BLOCK: tl.constexpr,
    EVERY: tl.constexpr,
    NODES: tl.constexpr,
    PADDED: tl.constexpr,
):
    """The adjoint recurrence: no network in it, since Γ and ∂Γ/∂c of every stage were saved on the way out.

    Leaves c in ``stage_gamma`` and ∂L/∂Γ in ``stage_slope``; the weights' gradients are then those of a list of points.
    Where all BLOCK problems were interpolated, the list is that of their nodes: Σ over stages of ∂L/∂Γ·f(c) is, for f
    as for Γ, Σ over nodes of (Σ over stages of ∂L/∂Γ times the node's share there)·f(node).
    EVERY as in `forward_kernel`: with 1, ``grad_c1`` holds the gradient of every state kept, laid out like ``states``,
    and ``grad_v1`` is not read.
    """
    m = tl.program_id(1).to(tl.int64)
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = n < N
    kept = steps + 1 if EVERY == 1 else (steps + 1) // 2
    first = m * kept * 2 * N + n
    half = tl.load(ranges + m * N + n, mask=inside, other=1.0)
    short = tl.min(tl.abs(half), 0) > 0.0
    half = tl.where(half == 0.0, 1.0, half)
    middle, per_half = tl.load(states + first, mask=inside, other=0.0) + half, 1.0 / half
    nodes, weights = chebyshev(NODES if NODES > 0 else PADDED, PADDED)
    share_of = tl.zeros([BLOCK, PADDED], tl.float32)
    if EVERY == 1:
        at = (m * (steps + 1) + steps) * 2 * N + n
        gc = tl.load(grad_c1 + at, mask=inside, other=0.0).to(tl.float32)
        gv = tl.load(grad_c1 + at + N, mask=inside, other=0.0).to(tl.float32)
    else:
        gc = tl.load(grad_c1 + m * N + n, mask=inside, other=0.0).to(tl.float32)
        gv = tl.load(grad_v1 + m * N + n, mask=inside, other=0.0).to(tl.float32)
    for back in range(steps):
        step = steps - 1 - back
        state = first + (step // EVERY) * 2 * N
        c = tl.load(states + state, mask=inside, other=0.0)
        v = tl.load(states + state + N, mask=inside, other=0.0)
        at = (m * steps + step) * 4 * N + n
        if EVERY == 2:  # noqa: SIM102 – decided when compiling, the next one at run time
            if step % 2 == 1:
                _, _, _, _, _, _, _, _, _, _, c, v = step_states(c, v, stage_gamma, at - 4 * N, N, dt, inside)
        g0, g1, g2, g3, c1, v1, c2, v2, c3, v3, _, _ = step_states(c, v, stage_gamma, at, N, dt, inside)
        sixth, third, half_step = dt / 6.0, dt / 3.0, 0.5 * dt
        xc, xv, share_of = stage_back(
            c3, v3, g3, sixth * gc, sixth * gv, stage_gamma, stage_slope, at + 3 * N, inside, short, nodes, weights,
            middle, per_half, share_of,
        )  # fmt: skip
        sum_c, sum_v = xc, xv
        xc, xv, share_of = stage_back(
            c2, v2, g2, third * gc + dt * xc, third * gv + dt * xv, stage_gamma, stage_slope, at + 2 * N, inside, short,
            nodes, weights, middle, per_half, share_of,
        )  # fmt: skip
        sum_c, sum_v = sum_c + xc, sum_v + xv
        xc, xv, share_of = stage_back(
            c1, v1, g1, third * gc + half_step * xc, third * gv + half_step * xv, stage_gamma, stage_slope, at + N,
            inside, short, nodes, weights, middle, per_half, share_of,
        )  # fmt: skip
        sum_c, sum_v = sum_c + xc, sum_v + xv
        xc, xv, share_of = stage_back(
            c, v, g0, sixth * gc + half_step * xc, sixth * gv + half_step * xv, stage_gamma, stage_slope, at, inside,
            short, nodes, weights, middle, per_half, share_of,
        )  # fmt: skip
        gc, gv = gc + (sum_c + xc), gv + (sum_v + xv)
        if EVERY == 1:
            gc += tl.load(grad_c1 + state, mask=inside, other=0.0).to(tl.float32)
            gv += tl.load(grad_c1 + state + N, mask=inside, other=0.0).to(tl.float32)
    tl.store(grad_c0 + m * N + n, gc, mask=inside)
    tl.store(grad_v0 + m * N + n, gv, mask=inside)
    if short & (NODES > 0):
        tl.debug_barrier()  # every thread has read what others now write over
        k = tl.arange(0, PADDED)
        slot = (m * 4 * steps + k[None, :]) * N + n[:, None]
        asked = inside[:, None] & (k < NODES)[None, :]
        tl.store(stage_gamma + slot, middle[:, None] + half[:, None] * nodes[None, :], mask=asked)
        tl.store(stage_slope + slot, share_of, mask=asked)
