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
    velocity_out,
    residual_out,
    drift_out,
    jacobian_out,
    status_out,
    iterations_out,
    N,
    H1,
    H2,
    steps,
    dt,
    iterations_in_all,
    stages,
    tolerance,
    drift_tolerance,
    K1: tl.constexpr,
    K2: tl.constexpr,
    BLOCK: tl.constexpr,
    PRECISION: tl.constexpr,
    OUTPUT: tl.constexpr,
):
    """See `reference.geodesic_shoot`, line by line; a tile in which every problem rests skips its integration."""
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

    y, _, _ = value_and_derivatives(a, zl, wck, w2_high, w2_low, w2_scale, bk2, wo, y0, wc, PRECISION, 0)
    g0, _, _, _ = gamma_from(y, zero, zero, OUTPUT)
    velocity, step, guess, drift = zero, zero, zero, zero
    residual, damping, jacobian = zero + infinity, zero + 1.0, zero + 1.0
    target, allowed, rounding = zero, zero, zero
    iterations = tl.zeros_like(n)
    rests = n < 0
    for i in range(iterations_in_all):
        stage = tl.minimum(i // 2 + 1, stages)  # two iterations a stage before the last
        if (i % 2 == 0) & (i <= 2 * (stages - 1)):
            # a new target: the chord's velocity, four Gauss points of √g along it
            chord = (b - a) * (stage * (1.0 / stages))
            length = zero
            for q in range(4):
                x = tl.where(q % 2 == 0, 0.0694318442, 0.3300094782)
                x = tl.where(q >= 2, 1.0 - x, x)
                share = tl.where(q % 2 == 0, 0.1739274226, 0.3260725774)
                y, _, _ = value_and_derivatives(
                    a + x * chord, zl, wck, w2_high, w2_low, w2_scale, bk2, wo, y0, wc, PRECISION, 0
                )
                g, _, _, _ = gamma_from(y, zero, zero, OUTPUT)
                length += share * tl.sqrt(g)
            ratio = length / tl.sqrt(g0)
            before = guess
            guess = chord * tl.where(ratio < infinity, ratio, 1.0)
            step = velocity * (guess / tl.where(before == 0.0, 1.0, before) - 1.0)
            velocity = tl.where(stage == 1, guess, velocity)
            step = tl.where(stage == 1, 0.0, step)
            target = tl.where(stage == stages, b, a + chord)
            rounding = 4.76837158203125e-07 * (tl.abs(a) + tl.abs(target))
            allowed = tolerance * tl.abs(target - a) + 16.0 * rounding
            residual, damping = zero + infinity, zero + 1.0
            rests = n < 0
        if tl.max((inside & finite & (rests == 0)).to(tl.int32), 0) > 0:
            trial = velocity + damping * step
            # Runge–Kutta on (c, v) and its Jacobi field; see geodesic_rk4
            c, v, j, p = a, trial, zero, zero + 1.0
            cs, vs, js, ps = c, v, j, p
            sum_c, sum_v, sum_j, sum_p = zero, zero, zero, zero
            for k in range(4 * steps):
                part = k % 4
                last = part == 3
                weight = tl.where((part == 0) | last, dt / 6.0, dt / 3.0)
                ahead = tl.where(part == 2, dt, 0.5 * dt)
                y, dy, ddy = value_and_derivatives(
                    cs, zl, wck, w2_high, w2_low, w2_scale, bk2, wo, y0, wc, PRECISION, 2
                )
                _, _, gamma, slope = gamma_from(y, dy, ddy, OUTPUT)
                kv = -gamma * vs * vs
                kp = -slope * vs * vs * js - 2.0 * gamma * vs * ps
                sum_c += weight * vs
                sum_v += weight * kv
                sum_j += weight * ps
                sum_p += weight * kp
                next_c, next_v = tl.where(last, c + sum_c, c + ahead * vs), tl.where(last, v + sum_v, v + ahead * kv)
                next_j, next_p = tl.where(last, j + sum_j, j + ahead * ps), tl.where(last, p + sum_p, p + ahead * kp)
                cs, vs, js, ps = next_c, next_v, next_j, next_p
                c, v, j, p = tl.where(last, cs, c), tl.where(last, vs, v), tl.where(last, js, j), tl.where(last, ps, p)
                sum_c, sum_v = tl.where(last, 0.0, sum_c), tl.where(last, 0.0, sum_v)
                sum_j, sum_p = tl.where(last, 0.0, sum_j), tl.where(last, 0.0, sum_p)
            y, _, _ = value_and_derivatives(c, zl, wck, w2_high, w2_low, w2_scale, bk2, wo, y0, wc, PRECISION, 0)
            g1, _, _, _ = gamma_from(y, zero, zero, OUTPUT)
            miss = target - c
            change = miss / j
            better = (tl.abs(miss) < residual) & (tl.abs(change) < infinity) & (rests == 0)
            energy = g0 * trial * trial
            moved = tl.abs(g1 * v * v - energy) / tl.where(energy > 0.0, energy, 1.0)
            iterations += ((residual > allowed) & (rests == 0)).to(tl.int32)
            velocity, step = tl.where(better, trial, velocity), tl.where(better, change, step)
            residual, drift = tl.where(better, tl.abs(miss), residual), tl.where(better, moved, drift)
            jacobian = tl.where(better, j, jacobian)
            damping = tl.where(better, tl.minimum(2.0 * damping, 1.0), 0.25 * damping)
            rests = rests | (residual <= rounding) | ((better == 0) & (residual <= allowed))
    solved = finite & (residual < infinity)
    good = (residual <= allowed) & (drift <= drift_tolerance)
    status = tl.where(solved, tl.where(good, 0, 1), 3)
    tl.store(velocity_out + row, tl.where(solved, velocity, float("nan")), mask=inside)
    tl.store(residual_out + row, residual, mask=inside)
    tl.store(drift_out + row, drift, mask=inside)
    tl.store(jacobian_out + row, jacobian, mask=inside)
    tl.store(status_out + row, status, mask=inside)
    tl.store(iterations_out + row, iterations, mask=inside)
