"""The metric network on a list of points: one launch forward, one backward, weight gradients reduced on chip.

Forward tiles are [rows, hidden]: both operands of a layer then come for free, A from registers and W2 from shared
memory. Backward tiles are [hidden, rows]: the six dots of a point read W2, W2ᵀ or a tile already in shared memory, a
weight gradient is a sum along a thread's own registers, and the constants of a hidden unit cost two registers.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .._device import LOG2E, SCALE, TWO_LOG2E, dot, logistic_pair, narrow, reciprocal, remainder, scale_for
from .._network import (
    gamma_from,
    load_first,
    load_network,
    load_second,
    load_third,
    upstream,
    value_and_derivatives,
)


@triton.jit
def forward_kernel(
    c_in,
    wavelength,
    w1,
    b1,
    w2,
    b2,
    w3,
    b3,
    y_out,
    g_out,
    dg_out,
    gamma_out,
    N,
    H1,
    H2,
    K1: tl.constexpr,
    K2: tl.constexpr,
    BLOCK: tl.constexpr,
    PRECISION: tl.constexpr,
    OUTPUT: tl.constexpr,
    ORDER: tl.constexpr,
):
    """ORDER 0 writes the network's value y (OUTPUT 1: e^{y/2}, 2: √(softplus + 0.1)); ORDER 1 writes g, ∂g/∂c and Γ.

    Programs stride over tiles of rows.
    """
    m = tl.program_id(1).to(tl.int64)
    wck, wlk, bk1, w2_high, w2_low, w2_scale, bk2, wo, y0, wc = load_network(
        w1, b1, w2, b2, w3, b3, m, H1, H2, K1, K2, PRECISION
    )
    for tile in range(tl.program_id(0), tl.cdiv(N, BLOCK), tl.num_programs(0)):
        n = tile * BLOCK + tl.arange(0, BLOCK)
        inside = n < N
        row = m * N + n
        c = tl.load(c_in + row, mask=inside, other=0.0).to(tl.float32)
        lam = tl.load(wavelength + row, mask=inside, other=0.0).to(tl.float32)
        zl = lam[:, None] * wlk[None, :] + bk1[None, :]
        y, dy, ddy = value_and_derivatives(c, zl, wck, w2_high, w2_low, w2_scale, bk2, wo, y0, wc, PRECISION, ORDER)
        if ORDER == 0:
            if OUTPUT == 1:
                y = tl.exp2(y * (0.5 * LOG2E))
            elif OUTPUT == 2:
                y = tl.sqrt(gamma_from(y, dy, ddy, 0)[0])
            tl.store(y_out + row, y, mask=inside)
        else:
            g, dg, gamma, _ = gamma_from(y, dy, ddy, OUTPUT)
            tl.store(g_out + row, g, mask=inside)
            tl.store(dg_out + row, dg, mask=inside)
            tl.store(gamma_out + row, gamma, mask=inside)


@triton.jit
def fold(tile, K: tl.constexpr, BLOCK: tl.constexpr):
    """[K, BLOCK] → [K, 8]: adds what one thread holds of a row, so that no lane speaks to another inside the loop."""
    return tl.sum(tl.reshape(tile, (K, BLOCK // 8, 8)), 1)


@triton.jit
def backward_kernel(
    c_in,
    wavelength,
    w1,
    b1,
    w2,
    b2,
    w3,
    b3,
    grad_y,
    grad_g,
    grad_dg,
    grad_gamma,
    grad_c,
    grad_wavelength,
    partial,
    ranges,
    N,
    stages,
    H1,
    H2,
    K1: tl.constexpr,
    K2: tl.constexpr,
    BLOCK: tl.constexpr,
    PRECISION: tl.constexpr,
    OUTPUT: tl.constexpr,
    ORDER: tl.constexpr,
    GAMMA_ONLY: tl.constexpr,
    POINTS: tl.constexpr,
    ROWS: tl.constexpr,
    NODES: tl.constexpr,
):
    """Gradients of one launch's points: [stages, N] of them, ``wavelength`` [N] shared by the stages.

    Weight gradients go to ``partial`` [M, programs, W1 | b1 | W2 | b2 | W3 | b3] in a fixed order. POINTS: also
    write ∂/∂c per point. ROWS: also ∂/∂λ, summed over the stages of a row. GAMMA_ONLY: the upstream gradient is that
    of Γ alone. NODES: only that many stages of a tile whose ``ranges`` [M, N] are all other than 0.
    """
    m = tl.program_id(1).to(tl.int64)
    wc, wl, bias1 = load_first(w1, b1, m, H1, K1)
    w2t = load_second(w2, m, H1, H2, K1, K2)
    bias2, wo, bo = load_third(b2, w3, b3, m, H2, K2)
    peak2 = tl.max(tl.abs(w2t))
    w2_scale = scale_for(peak2)
    w2_high = narrow(tl.trans(w2t) * w2_scale, PRECISION)
    w2_low = remainder(tl.trans(w2t) * w2_scale, w2_high)
    peak1 = tl.max(tl.abs(wc), 0)
    peak3 = tl.max(tl.abs(wo), 0)
    d_scale = scale_for(peak1)
    # |∂y₂/∂c before its tanh| ≤ Σ|W2| max|W1c|: with it, |upstream of a layer| is bounded before it is computed
    widest = tl.max(tl.sum(tl.abs(w2t), 0), 0) * peak1
    d_unit = 1.0 / (d_scale * w2_scale)
    lift = SCALE / d_scale
    y0 = tl.sum(wo, 0) + bo
    unit_z: tl.constexpr = TWO_LOG2E if PRECISION == 0 else 1.0
    wck, wlk, bk1, bk2 = wc * unit_z, wl * unit_z, bias1 * unit_z, bias2 * unit_z
    wd, wc2, wo4 = wc * (4.0 * d_scale), wc * (2.0 / lift), wo * 4.0
    unit1 = 4.0 / w2_scale

    grad_w2 = tl.zeros([K2, K1], tl.float32)
    grad_wc = tl.zeros([K1, 8], tl.float32)
    grad_wl = tl.zeros([K1, 8], tl.float32)
    grad_b1 = tl.zeros([K1, 8], tl.float32)
    grad_b2 = tl.zeros([K2, 8], tl.float32)
    grad_wo = tl.zeros([K2, 8], tl.float32)
    grad_bo = tl.zeros([BLOCK], tl.float32)
    zero1 = tl.zeros([K1, BLOCK], tl.float32)
    zero_w2 = tl.zeros([K2, K1], tl.float32)
    zero2 = tl.zeros([K2, BLOCK], tl.float32)
    running = 1.2676506002282294e30  # the scale of every sum above: only ever falls, so a quiet tile costs no digits
    for tile in range(tl.program_id(0), tl.cdiv(N, BLOCK), tl.num_programs(0)):
        n = tile * BLOCK + tl.arange(0, BLOCK)
        inside = n < N
        row = m * N + n
        lam = tl.load(wavelength + row, mask=inside, other=0.0).to(tl.float32)
        row_grad = tl.zeros([BLOCK], tl.float32)
        listed = stages
        if NODES > 0:
            interpolated = tl.min(tl.abs(tl.load(ranges + row, mask=inside, other=1.0)), 0) > 0.0
            listed = tl.where(interpolated, NODES, stages)
        for stage in range(listed):
            at = (m * stages + stage) * N + n
            c = tl.load(c_in + at, mask=inside, other=0.0).to(tl.float32)
            # layer 1 and its derivative
            r1 = logistic_pair((wlk[:, None] * lam[None, :] + bk1[:, None]) + wck[:, None] * c[None, :], PRECISION)
            h = SCALE - (2.0 * SCALE) * r1
            h_high = narrow(h, PRECISION)
            h_low = remainder(h, h_high)
            z2 = dot(w2_high, w2_low, h_high, h_low, zero2, PRECISION)
            r2 = logistic_pair(z2 * (unit_z / (SCALE * w2_scale)) + bk2[:, None], PRECISION)
            q2 = r2 - r2 * r2
            if ORDER == 0:
                up = tl.load(grad_y + at, mask=inside, other=0.0).to(tl.float32)
                if OUTPUT == 1:  # the result was ρ = e^{y/2}, kept where the gradient to g would be
                    up *= 0.5 * tl.load(grad_g + at, mask=inside, other=0.0)
                elif OUTPUT == 2:  # dρ/dy = σ(y)/2ρ
                    y = y0 - 2.0 * tl.sum(r2 * wo[:, None], 0)
                    decay = tl.exp2(-tl.abs(y) * LOG2E)
                    inverse = reciprocal(1.0 + decay)
                    up *= 0.5 * tl.where(y >= 0.0, inverse, decay * inverse)
                    up /= tl.load(grad_g + at, mask=inside, other=1.0)
                up_d = tl.zeros_like(up)
            else:
                d = (r1 - r1 * r1) * wd[:, None]
                d_high = narrow(d, PRECISION)
                d_low = remainder(d, d_high)
                zd = dot(w2_high, w2_low, d_high, d_low, zero2, PRECISION)
                qz = q2 * zd
                y = y0 - 2.0 * tl.sum(r2 * wo[:, None], 0)
                dy = tl.sum(qz * wo4[:, None], 0) * d_unit
                up, up_d = upstream(grad_g, grad_dg, grad_gamma, at, inside, y, dy, OUTPUT, GAMMA_ONLY)
            # scales: upstream gradients may be of any size, fp16 operands may not
            bound = peak3 * tl.max(tl.abs(up) + tl.abs(up_d) * (0.77 * widest + peak1), 0)
            new = tl.minimum(running, scale_for(bound))
            ratio = new / running
            running = new
            up = up * running
            up_d = up_d * running
            # back through layer 2; gz2 and gzd are the gradients to its sum and to the derivative of its sum
            t2 = 1.0 - 2.0 * r2
            slope2 = q2 * wo4[:, None]
            if ORDER == 0:
                gz2 = slope2 * up[None, :]
                grad_wo = grad_wo * ratio + fold(t2 * up[None, :], K2, BLOCK)
            else:
                gz2 = slope2 * (up[None, :] - (t2 * zd) * (up_d * (2.0 * d_unit))[None, :])
                gzd = slope2 * (up_d * lift)[None, :]
                grad_wo = grad_wo * ratio + fold(t2 * up[None, :] + qz * (up_d * (4.0 * d_unit))[None, :], K2, BLOCK)
            grad_b2 = grad_b2 * ratio + fold(gz2, K2, BLOCK)
            grad_bo = grad_bo * ratio + up
            g_high = narrow(gz2, PRECISION)
            g_low = remainder(gz2, g_high)
            gh = dot(tl.trans(w2_high), tl.trans(w2_low), g_high, g_low, zero1, PRECISION)
            # back through layer 1, in units of 4/w2_scale
            q1 = r1 - r1 * r1
            if ORDER == 0:
                gz1 = q1 * gh
                grad_wc = grad_wc * ratio + fold(gz1 * c[None, :], K1, BLOCK)
            else:
                gd_high = narrow(gzd, PRECISION)
                gd_low = remainder(gzd, gd_high)
                gd = dot(tl.trans(w2_high), tl.trans(w2_low), gd_high, gd_low, zero1, PRECISION)
                gdq = gd * q1
                gz1 = q1 * gh - (1.0 - 2.0 * r1) * (gdq * wc2[:, None])
                grad_wc = grad_wc * ratio + fold(gdq * (1.0 / lift) + gz1 * c[None, :], K1, BLOCK)
            grad_b1 = grad_b1 * ratio + fold(gz1, K1, BLOCK)
            grad_wl = grad_wl * ratio + fold(gz1 * lam[None, :], K1, BLOCK)
            # Matrix units cut sums off towards zero: thousands of tiles added in their accumulators would drift by
            # 1e-3. So each tile has its own, and joins the total by an ordinary, rounded addition.
            share = dot(g_high, g_low, tl.trans(h_high), tl.trans(h_low), zero_w2, PRECISION)
            if ORDER == 1:
                share = dot(gd_high, gd_low, tl.trans(d_high), tl.trans(d_low), share, PRECISION)
            grad_w2 = grad_w2 * ratio + share * (1.0 / SCALE)  # the factor keeps the compiler from joining them again
            if POINTS:
                tl.store(grad_c + at, tl.sum(gz1 * wc[:, None], 0) * (unit1 / running), mask=inside)
            if ROWS:
                row_grad += tl.sum(gz1 * wl[:, None], 0) * (unit1 / running)
        if ROWS:
            tl.store(grad_wavelength + row, row_grad, mask=inside)

    unit = 1.0 / running
    size = H1 * H2 + 3 * H1 + 2 * H2 + 1
    base = partial + (m * tl.num_programs(0) + tl.program_id(0)) * size
    i1 = tl.arange(0, K1)
    i2 = tl.arange(0, K2)
    inside1 = i1 < H1
    inside2 = i2 < H2
    tl.store(base + 2 * i1, tl.sum(grad_wc, 1) * (unit * unit1), mask=inside1)
    tl.store(base + 2 * i1 + 1, tl.sum(grad_wl, 1) * (unit * unit1), mask=inside1)
    tl.store(base + 2 * H1 + i1, tl.sum(grad_b1, 1) * (unit * unit1), mask=inside1)
    base += 3 * H1
    at = i2[:, None] * H1 + i1[None, :]
    tl.store(base + at, grad_w2 * unit, mask=inside2[:, None] & inside1[None, :])
    base += H1 * H2
    tl.store(base + i2, tl.sum(grad_b2, 1) * unit, mask=inside2)
    tl.store(base + H2 + i2, tl.sum(grad_wo, 1) * unit, mask=inside2)
    tl.store(base + 2 * H2, tl.sum(grad_bo, 0) * unit)
