"""The flow quadrature and its gradient without a tensor over nodes or hidden units in memory.

A program owns one wavelength of one model and a range of pairs; a tile is [pairs, hidden]. Gauss nodes are symmetric:
a pair of nodes ± x shares its weight and one reciprocal, since 1/a and 1/b both come from 1/(ab). Sums over nodes are
kept per (pair, unit) as Σ w r, Σ w r(1 − r) and Σ w x r(1 − r) with tanh = 1 − 2r; value and every gradient follow from
these three, so with the loss at hand (FUSED) one pass does both directions.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .._device import TWO_LOG2E, reciprocal, rounded_product


@triton.jit
def node_sums(middle, half, rate, shift, table, PAIRS: tl.constexpr, GRADIENT: tl.constexpr):
    """Σ w r, Σ w (r − r²), Σ w x (r − r²) over nodes, [P, H] each; ``rate`` and ``shift`` scaled by TWO_LOG2E."""
    centre = middle[:, None] * rate[None, :] + shift[None, :]
    reach = half[:, None] * rate[None, :]
    t0 = tl.zeros_like(centre)
    t1 = tl.zeros_like(centre)
    t2 = tl.zeros_like(centre)
    for q in range(PAIRS):
        x = tl.load(table + 2 * q)
        w = tl.load(table + 2 * q + 1)
        # beyond 2**60 both tanh and its derivative are exact in float32, and the product below stays finite
        a = 1.0 + tl.exp2(tl.minimum(centre + x * reach, 60.0))
        b = 1.0 + tl.exp2(tl.minimum(centre - x * reach, 60.0))
        inverse = reciprocal(a * b)
        right, left = inverse * b, inverse * a
        t0 += w * (right + left)
        if GRADIENT:
            right -= right * right
            left -= left * left
            t1 += w * (right + left)
            t2 += (w * x) * (right - left)
    return t0, t1, t2


@triton.jit
def forward_kernel(
    s_start,
    s_end,
    omega,
    beta,
    a,
    a0,
    table,
    out,
    B,
    W,
    H,
    stride_s,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    PAIRS: tl.constexpr,
):
    """``s_*`` [M, B, W] with model stride ``stride_s``; everything else contiguous."""
    w = tl.program_id(0)
    m = tl.program_id(2).to(tl.int64)
    j = tl.arange(0, K)
    inside_j = j < H
    at = (m * W + w) * H + j
    rate = tl.load(omega + m * H + j, mask=inside_j, other=0.0) * TWO_LOG2E
    shift = tl.load(beta + at, mask=inside_j, other=0.0) * TWO_LOG2E
    gain = tl.load(a + at, mask=inside_j, other=0.0)
    level = tl.load(a0 + m * W + w)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = n < B
    place = n.to(tl.int64) * W + w
    start = tl.load(s_start + m * stride_s + place, mask=inside, other=0.0)
    end = tl.load(s_end + m * stride_s + place, mask=inside, other=0.0)
    half = 0.5 * (end - start)
    t0, _, _ = node_sums(0.5 * (end + start), half, rate, shift, table, PAIRS, False)
    mean = tl.sum(rounded_product(2.0 - 2.0 * t0, gain[None, :]), 1) + 2.0 * level
    tl.store(out + m * B * W + place, half * mean, mask=inside)


@triton.jit
def backward_kernel(
    s_start,
    s_end,
    omega,
    beta,
    a,
    a0,
    table,
    grad_out,
    target,
    weight,
    grad_start,
    grad_end,
    grad_omega,
    grad_beta,
    grad_a,
    grad_a0,
    loss,
    B,
    W,
    H,
    stride_s,
    stride_g,
    chunk,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    PAIRS: tl.constexpr,
    FUSED: tl.constexpr,
):
    """Gradients, summed over this program's pairs; splits of the pairs lead: [splits, M, W, H] (or [splits, M, W]).

    FUSED: the upstream gradient is that of Σ weight (result − target)², weight [M, B], and ``loss`` gets that sum.
    """
    w = tl.program_id(0)
    m = tl.program_id(2).to(tl.int64)
    models = tl.num_programs(2)
    j = tl.arange(0, K)
    inside_j = j < H
    at = (m * W + w) * H + j
    frequency = tl.load(omega + m * H + j, mask=inside_j, other=0.0)
    rate = frequency * TWO_LOG2E
    shift = tl.load(beta + at, mask=inside_j, other=0.0) * TWO_LOG2E
    gain = tl.load(a + at, mask=inside_j, other=0.0)
    level = tl.load(a0 + m * W + w)
    slope = 4.0 * gain * frequency
    sum_a = tl.zeros([BLOCK, K], tl.float32)
    sum_beta = tl.zeros([BLOCK, K], tl.float32)
    sum_omega = tl.zeros([BLOCK, K], tl.float32)
    sum_a0 = tl.zeros([BLOCK], tl.float32)
    sum_loss = tl.zeros([BLOCK], tl.float32)
    first = tl.program_id(1) * chunk
    for begin in range(first, tl.minimum(first + chunk, B), BLOCK):
        n = begin + tl.arange(0, BLOCK)
        inside = n < B
        place = n.to(tl.int64) * W + w
        start = tl.load(s_start + m * stride_s + place, mask=inside, other=0.0)
        end = tl.load(s_end + m * stride_s + place, mask=inside, other=0.0)
        half = 0.5 * (end - start)
        middle = 0.5 * (end + start)
        t0, t1, t2 = node_sums(middle, half, rate, shift, table, PAIRS, True)
        value = 2.0 - 2.0 * t0
        mean = tl.sum(rounded_product(value, gain[None, :]), 1) + 2.0 * level
        if FUSED:
            share = tl.load(weight + m * B + n, mask=inside, other=0.0)
            error = half * mean - tl.load(target + m * B * W + place, mask=inside, other=0.0)
            up = 2.0 * share * error
            sum_loss += share * error * error
        else:
            up = tl.load(grad_out + m * B * W + place, mask=inside, other=0.0)
        scaled = up * half
        sum_a += scaled[:, None] * value
        sum_beta += scaled[:, None] * t1
        sum_omega += (scaled * middle)[:, None] * t1 + (scaled * half)[:, None] * t2
        sum_a0 += scaled
        to_middle = scaled * tl.sum(rounded_product(t1, slope[None, :]), 1)
        to_half = up * mean + scaled * tl.sum(rounded_product(t2, slope[None, :]), 1)
        tl.store(grad_start + m * stride_g + place, 0.5 * (to_middle - to_half), mask=inside)
        tl.store(grad_end + m * stride_g + place, 0.5 * (to_middle + to_half), mask=inside)
    split = tl.program_id(1).to(tl.int64)
    at = ((split * models + m) * W + w) * H + j
    tl.store(grad_a + at, tl.sum(sum_a, 0), mask=inside_j)
    tl.store(grad_beta + at, tl.sum(sum_beta, 0) * 4.0 * gain, mask=inside_j)
    tl.store(grad_omega + at, tl.sum(sum_omega, 0) * 4.0 * gain, mask=inside_j)
    at = (split * models + m) * W + w
    tl.store(grad_a0 + at, 2.0 * tl.sum(sum_a0, 0))
    if FUSED:
        tl.store(loss + at, tl.sum(sum_loss, 0))


@triton.jit
def reduce_kernel(partial, losses, out, loss, S, W, H, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    """ω's gradient [S, M, W, H] → [M, H] and the loss [S, M, W] → [M], always added in the same order."""
    m = tl.program_id(1)
    models = tl.num_programs(1)
    j = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    sum_loss = tl.zeros([ROWS], tl.float32)
    for split in range(S):
        base = (split * models + m).to(tl.int64) * W
        for first in range(0, W, ROWS):
            w = first + tl.arange(0, ROWS)
            inside = (w < W)[:, None] & (j < H)[None, :]
            total += tl.load(partial + (base + w)[:, None] * H + j[None, :], mask=inside, other=0.0)
            if tl.program_id(0) == 0:
                sum_loss += tl.load(losses + base + w, mask=w < W, other=0.0)
    tl.store(out + m * H + j, tl.sum(total, 0), mask=j < H)
    if tl.program_id(0) == 0:
        tl.store(loss + m, tl.sum(sum_loss, 0))
