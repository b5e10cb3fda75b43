"""Shooting in one launch: every Newton iteration of every problem, with the weights on chip throughout."""

from __future__ import annotations

import triton
import triton.language as tl

from .._network import gamma_from, load_network, value_and_derivatives


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
    K1: tl.constexpr,
    K2: tl.constexpr,
    BLOCK: tl.constexpr,
    PRECISION: tl.constexpr,
    OUTPUT: tl.constexpr,
    STAGE_STEPS: tl.constexpr,
    NODES: tl.constexpr,
    ROUNDINGS: tl.constexpr,
):
    """See `reference.search`, line by line; a tile in which every problem rests skips its integration.

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
    g0, root0, length, at_end = zero, zero, zero, zero
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
            # A new target, where stage/stages of the chord's length is covered: first the whole length, once; then,
            # before the last stage, the place, between the nodes where the share covered passes that of the stage.
            share = stage * (1.0 / stages)
            first = tl.where(stage == 1, 0, NODES)
            walks = tl.where(stage == stages, NODES, 2 * NODES)
            covered, root, place = zero, zero, tl.load(places)
            left, low, right, high = zero, zero, zero + 1.0, zero + 1.0
            passed = n < 0
            for q in range(first, walks):
                before, before_root = place, root
                place = tl.load(places + q % NODES)
                y, _, _ = value_and_derivatives(
                    a + place * chord, zl, wck, w2_high, w2_low, w2_scale, bk2, wo, y0, wc, PRECISION, 0
                )
                g, _, _, _ = gamma_from(y, zero, zero, OUTPUT)
                root = tl.sqrt(g)
                covered = tl.where(q % NODES == 0, zero, covered + 0.5 * (place - before) * (root + before_root))
                if q < NODES:
                    g0, root0 = tl.where(q == 0, g, g0), tl.where(q == 0, root, root0)
                    length, at_end = covered, g
                else:
                    told = covered / length
                    under = (told <= share) & (passed == 0)
                    left, low = tl.where(under, place, left), tl.where(under, told, low)
                    turned = (told > share) & (passed == 0)
                    right, high = tl.where(turned, place, right), tl.where(turned, told, high)
                    passed = passed | turned
            usable = (length > 0.0) & (length < infinity) & (root0 > 0.0) & (chord != 0.0)
            fraction = left + (right - left) * (share - low) / tl.where(high > low, high - low, 1.0)
            fraction = tl.where(usable, fraction, share)
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
            # Runge–Kutta on (c, v); see geodesic_rk4
            c, v = a, trial
            cs, vs = c, v
            sum_c, sum_v = zero, zero
            for k in range(4 * here):
                part = k % 4
                last = part == 3
                weight = tl.where((part == 0) | last, dt / 6.0, dt / 3.0)
                ahead = tl.where(part == 2, dt, 0.5 * dt)
                y, dy, ddy = value_and_derivatives(
                    cs, zl, wck, w2_high, w2_low, w2_scale, bk2, wo, y0, wc, PRECISION, 1
                )
                _, _, gamma, _ = gamma_from(y, dy, ddy, OUTPUT)
                kv = -gamma * vs * vs
                sum_c += weight * vs
                sum_v += weight * kv
                next_c, next_v = tl.where(last, c + sum_c, c + ahead * vs), tl.where(last, v + sum_v, v + ahead * kv)
                cs, vs = next_c, next_v
                c, v = tl.where(last, cs, c), tl.where(last, vs, v)
                sum_c, sum_v = tl.where(last, 0.0, sum_c), tl.where(last, 0.0, sum_v)
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
    halved = tl.where(moves, coarse_miss / tl.where(moves, tl.abs(chord), 1.0), 0.0)
    good = (residual <= allowed) & (drift <= drift_tolerance) & (halved <= drift_tolerance)
    status = tl.where(known, tl.where(residual < infinity, tl.where(good, 0, 1), 2), 3)
    tl.store(velocity_out + row, tl.where(status == 0, velocity + step, velocity), mask=inside)
    tl.store(residual_out + row, residual, mask=inside)
    tl.store(drift_out + row, drift, mask=inside)
    tl.store(status_out + row, status.to(tl.int64), mask=inside)
    tl.store(iterations_out + row, iterations.to(tl.int64), mask=inside)
