"""Shooting in one launch: every Newton iteration of every problem, with the weights on chip throughout."""

from __future__ import annotations

import triton
import triton.language as tl

from .._along import EDGE, SHORTEST, chebyshev, put, symbols_at_nodes
from .._device import constant
from .._network import gamma_from, load_network, value_and_derivatives
from ..geodesic_rk4._triton import integrate

# Half of the range of a problem, in chords: an eighth of one beyond either end.
AROUND = constant(0.625)


@triton.jit
def chord_lengths(
    a, chord, places, zl, wck, w2_high, w2_low, w2_scale, b2, w3, y0, wc,
    PRECISION: tl.constexpr, OUTPUT: tl.constexpr, PLACES: tl.constexpr, PADDED: tl.constexpr,
):  # fmt: skip
    """Length covered at each of the chord's places, as a tile [B, PADDED] (infinite where padded), its whole length,
    and g at both ends."""
    zero = tl.zeros_like(a)
    covered, root, place, g, g0 = zero, zero, tl.load(places), zero, zero
    table = tl.zeros([a.shape[0], PADDED], tl.float32) + float("inf")
    for q in range(PLACES):
        before, before_root = place, root
        place = tl.load(places + q)
        y, _, _ = value_and_derivatives(
            a + place * chord, zl, wck, w2_high, w2_low, w2_scale, b2, w3, y0, wc, PRECISION, 0
        )
        g, _, _, _ = gamma_from(y, zero, zero, OUTPUT)
        root = tl.sqrt(g)
        g0 = tl.where(q == 0, g, g0)
        covered = tl.where(q == 0, zero, covered + 0.5 * (place - before) * (root + before_root))
        table = put(table, q, covered, PADDED)
    return table, covered, g0, g


@triton.jit
def place_of(share, table, length, places, PLACES: tl.constexpr, PADDED: tl.constexpr):
    """Where along the chord this share of its length is covered, linearly between the places [B]."""
    k = tl.arange(0, PADDED)
    along = tl.load(places + k, mask=k < PLACES, other=0.0)
    told = table / length[:, None]
    cell = tl.minimum(tl.maximum(tl.sum((told <= share).to(tl.int32), 1), 1), PLACES - 1)
    here, before = k[None, :] == cell[:, None], k[None, :] == cell[:, None] - 1
    low, high = tl.sum(tl.where(before, told, 0.0), 1), tl.sum(tl.where(here, told, 0.0), 1)
    left = tl.sum(tl.where(before, along[None, :], 0.0), 1)
    right = tl.sum(tl.where(here, along[None, :], 0.0), 1)
    return left + (right - left) * (share - low) / tl.where(high > low, high - low, 1.0)


@triton.jit
def shoot_kernel(
    start,
    end,
    wavelength,
    w1,
    b1,
    w2,
    b2,
    w3,
    b3,
    places,
    velocity_out,
    residual_out,
    drift_out,
    status_out,
    iterations_out,
    N,
    H1,
    H2,
    steps,
    coarse_steps,
    newton,
    stages,
    tolerance,
    drift_tolerance,
    needed,
    K1: tl.constexpr,
    K2: tl.constexpr,
    BLOCK: tl.constexpr,
    PRECISION: tl.constexpr,
    OUTPUT: tl.constexpr,
    STAGE_STEPS: tl.constexpr,
    PLACES: tl.constexpr,
    PADDED_PLACES: tl.constexpr,
    ROUNDINGS: tl.constexpr,
    NODES: tl.constexpr,
    PADDED: tl.constexpr,
):
    """See `reference.search`, line by line; a tile in which every problem rests skips its integration.

    With NODES, Γ between and a little beyond a problem's ends is interpolated from that many points, under the
    conditions of `geodesic_rk4`'s kernel; a path that strays further is integrated by the network.

    One iteration more than Newton's integrates the best velocity in ``coarse_steps``. What is left of the miss is
    added to the result as one more Newton step, which costs no integration.
    """
    m = tl.program_id(1).to(tl.int64)
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = n < N
    row = m * N + n
    a = tl.load(start + row, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(end + row, mask=inside, other=0.0).to(tl.float32)
    lam = tl.load(wavelength + row, mask=inside, other=0.0).to(tl.float32)
    infinity = float("inf")
    finite = (tl.abs(a) < infinity) & (tl.abs(b) < infinity) & (tl.abs(lam) < infinity)
    a, b, lam = tl.where(finite, a, 0.0), tl.where(finite, b, 0.0), tl.where(finite, lam, 0.0)
    wck, wlk, bk1, w2_high, w2_low, w2_scale, bk2, wo, y0, wc = load_network(
        w1, b1, w2, b2, w3, b3, m, H1, H2, K1, K2, PRECISION
    )
    zl = lam[:, None] * wlk[None, :] + bk1[None, :]
    zero = tl.zeros_like(a)
    rounding_unit = 1.1920928955078125e-07

    chord = b - a
    table, length, g0, at_end = chord_lengths(
        a, chord, places, zl, wck, w2_high, w2_low, w2_scale, bk2, wo, y0, wc, PRECISION, OUTPUT, PLACES, PADDED_PLACES
    )
    root0 = tl.sqrt(g0)
    usable = (length > 0.0) & (length < infinity) & (root0 > 0.0) & (chord != 0.0)
    half = tl.where(tl.abs(chord) * AROUND > SHORTEST, chord * AROUND, SHORTEST)
    middle, per_half = a + 0.5 * chord, 1.0 / half
    nodes, weights = chebyshev(NODES if NODES > 0 else PADDED, PADDED)
    gammas = tl.zeros([BLOCK, PADDED], tl.float32)
    slopes = gammas  # nobody asks for them
    near = n < 0
    if NODES > 0:
        gammas, slopes, near = symbols_at_nodes(
            nodes, middle, half, zl, wck, w2_high, w2_low, w2_scale, bk2, wo, y0, wc, needed, PRECISION, OUTPUT, False,
            NODES, PADDED,
        )  # fmt: skip
    velocity, step, drift = zero, zero, zero
    residual, damping = zero + infinity, zero + 1.0
    target, allowed, rounding = zero, zero, zero
    coarse_miss = zero + infinity
    iterations = tl.zeros_like(n)
    rests = n < 0
    searches = STAGE_STEPS * (stages - 1) + newton
    for i in range(searches + 1):
        stage = tl.minimum(i // STAGE_STEPS + 1, stages)
        check = i == searches
        if (i % STAGE_STEPS == 0) & (i <= STAGE_STEPS * (stages - 1)) & (check == 0):
            # a new target, where stage/stages of the chord's length is covered
            share = stage * (1.0 / stages)
            fraction = tl.where(usable, place_of(share, table, length, places, PLACES, PADDED_PLACES), share)
            stretch = tl.where(usable, length, 1.0) / tl.where(usable, root0, 1.0) * (1.0 / stages)
            step = tl.where(stage == 1, chord * stretch, velocity * (1.0 / tl.maximum(stage - 1, 1)))
            target = tl.where(stage == stages, b, a + chord * fraction)
            rounding = rounding_unit * (tl.abs(a) + tl.abs(target))
            allowed = tolerance * tl.abs(target - a) + ROUNDINGS * rounding
            residual, damping = zero + infinity, zero + 1.0
            rests = n < 0
        if check | (tl.max((inside & finite & (rests == 0)).to(tl.int32), 0) > 0):
            trial = tl.where(check, velocity, velocity + damping * step)
            here = tl.where(check, coarse_steps, steps)
            dt = 1.0 / here
            # what rests is integrated along with the others, and not looked at
            asked = inside & finite & (check | (rests == 0))
            c, v, inner = a, trial, near
            if tl.max((asked & near).to(tl.int32), 0) > 0:
                c, v, furthest = integrate(
                    a, trial, zl, wck, w2_high, w2_low, w2_scale, bk2, wo, y0, wc, nodes, weights, gammas, slopes,
                    middle, per_half, places, places, places, m, n, N, asked, here, dt, PRECISION, OUTPUT, 0, False,
                    True,
                )  # fmt: skip
                inner = near & (furthest <= EDGE)
            if tl.max((asked & (inner == 0)).to(tl.int32), 0) > 0:
                own_c, own_v, _ = integrate(
                    a, trial, zl, wck, w2_high, w2_low, w2_scale, bk2, wo, y0, wc, nodes, weights, gammas, slopes,
                    middle, per_half, places, places, places, m, n, N, asked, here, dt, PRECISION, OUTPUT, 0, False,
                    False,
                )  # fmt: skip
                c, v = tl.where(inner, c, own_c), tl.where(inner, v, own_v)
            miss = c - target
            if check:
                coarse_miss = tl.abs(miss)
            else:
                y, _, _ = value_and_derivatives(c, zl, wck, w2_high, w2_low, w2_scale, bk2, wo, y0, wc, PRECISION, 0)
                g1, _, _, _ = gamma_from(y, zero, zero, OUTPUT)
                change = -miss / tl.sqrt(g0 / g1)
                better = (tl.abs(miss) < residual) & (tl.abs(change) < infinity) & (rests == 0)
                energy = g0 * trial * trial
                moved = tl.abs(g1 * v * v - energy) / tl.where(energy > 0.0, energy, 1.0)
                iterations += ((residual > allowed) & (rests == 0)).to(tl.int32)
                velocity, step = tl.where(better, trial, velocity), tl.where(better, change, step)
                residual, drift = tl.where(better, tl.abs(miss), residual), tl.where(better, moved, drift)
                damping = tl.where(better, tl.minimum(2.0 * damping, 1.0), 0.25 * damping)
                # what is left at the end the last Newton step removes; before the last stage nothing more is needed
                enough = tl.where(stage == stages, ROUNDINGS * rounding, allowed)
                rests = rests | (residual <= enough) | ((better == 0) & (residual <= allowed))
    known = finite & (g0 < infinity) & (at_end < infinity)
    moves = tl.abs(chord) > 0.0
    few = ROUNDINGS * rounding
    coarse_miss = tl.where(coarse_miss <= few, 0.0, coarse_miss - few)  # NaN stays NaN, which `maximum` would lose
    halved = tl.where(moves, coarse_miss / tl.where(moves, tl.abs(chord), 1.0), 0.0)
    good = (residual <= allowed) & (drift <= drift_tolerance) & (halved <= drift_tolerance)
    status = tl.where(known, tl.where(residual < infinity, tl.where(good, 0, 1), 2), 3)
    tl.store(velocity_out + row, tl.where(status == 0, velocity + step, velocity), mask=inside)
    tl.store(residual_out + row, residual, mask=inside)
    tl.store(drift_out + row, drift, mask=inside)
    tl.store(status_out + row, status.to(tl.int64), mask=inside)
    tl.store(iterations_out + row, iterations.to(tl.int64), mask=inside)
