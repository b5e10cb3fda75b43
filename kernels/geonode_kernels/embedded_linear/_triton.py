"""A tall, very narrow matrix product: cuBLAS walks the 601 rows of its gradient in one block, this in many."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def forward_kernel(embedding, weight, bias, out, W, E, K, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """One program: ROWS wavelengths × COLUMNS coefficients."""
    m = tl.program_id(2).to(tl.int64)
    w = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    k = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    total += tl.load(bias + m * K + k, mask=k < K, other=0.0)[None, :]
    for e in range(E):
        left = tl.load(embedding + (m * W + w) * E + e, mask=w < W, other=0.0)
        right = tl.load(weight + (m * E + e) * K + k, mask=k < K, other=0.0)
        total += left[:, None] * right[None, :]
    tl.store(out + (m * W + w)[:, None] * K + k[None, :], total, mask=(w < W)[:, None] & (k < K)[None, :])


@triton.jit
def weight_kernel(embedding, grad, to_weight, to_bias, W, E, K, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """One program: one row of the weight (or, past the last, the bias) × COLUMNS; wavelengths added in order."""
    e = tl.program_id(0)
    m = tl.program_id(2).to(tl.int64)
    k = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for first in range(0, W, ROWS):
        w = first + tl.arange(0, ROWS)
        left = tl.load(embedding + (m * W + w) * E + tl.minimum(e, E - 1), mask=w < W, other=0.0)
        left = tl.where(e < E, left, 1.0)
        inside = (w < W)[:, None] & (k < K)[None, :]
        right = tl.load(grad + (m * W + w)[:, None] * K + k[None, :], mask=inside, other=0.0)
        total += left[:, None] * right
    summed = tl.sum(total, 0)
    if e < E:
        tl.store(to_weight + (m * E + e) * K + k, summed, mask=k < K)
    else:
        tl.store(to_bias + m * K + k, summed, mask=k < K)


@triton.jit
def embedding_kernel(grad, weight, to_embedding, W, E, K, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """One program: ROWS wavelengths × one column of the embedding."""
    e = tl.program_id(0)
    m = tl.program_id(2).to(tl.int64)
    w = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for first in range(0, K, COLUMNS):
        k = first + tl.arange(0, COLUMNS)
        inside = (w < W)[:, None] & (k < K)[None, :]
        left = tl.load(grad + (m * W + w)[:, None] * K + k[None, :], mask=inside, other=0.0)
        total += left * tl.load(weight + (m * E + e) * K + k, mask=k < K, other=0.0)[None, :]
    tl.store(to_embedding + (m * W + w) * E + e, tl.sum(total, 1), mask=w < W)
