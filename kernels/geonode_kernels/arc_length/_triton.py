"""The elementwise half of the arc length: division by the whole range's length, and its gradient."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def forward_kernel(s, out, P, W, BLOCK_P: tl.constexpr, BLOCK_W: tl.constexpr):
    """``s`` [M, P + 1, W] → ``out`` [M, P, W]."""
    m = tl.program_id(2).to(tl.int64)
    w = tl.program_id(0) * BLOCK_W + tl.arange(0, BLOCK_W)
    p = tl.program_id(1) * BLOCK_P + tl.arange(0, BLOCK_P)
    inside = (p < P)[:, None] & (w < W)[None, :]
    whole = tl.load(s + (m * (P + 1) + P) * W + w, mask=w < W, other=1.0)
    at = p.to(tl.int64)[:, None] * W + w[None, :]
    value = tl.load(s + m * (P + 1) * W + at, mask=inside, other=0.0)
    tl.store(out + m * P * W + at, value * (2.0 / whole)[None, :] - 1.0, mask=inside)


@triton.jit
def backward_kernel(s, grad, to_s, partial, P, W, BLOCK_P: tl.constexpr, BLOCK_W: tl.constexpr):
    """∂/∂S of each point, and this block's share of ∂/∂S(1) [blocks, M, W]."""
    m = tl.program_id(2).to(tl.int64)
    w = tl.program_id(0) * BLOCK_W + tl.arange(0, BLOCK_W)
    p = tl.program_id(1) * BLOCK_P + tl.arange(0, BLOCK_P)
    inside = (p < P)[:, None] & (w < W)[None, :]
    whole = tl.load(s + (m * (P + 1) + P) * W + w, mask=w < W, other=1.0)
    at = p.to(tl.int64)[:, None] * W + w[None, :]
    value = tl.load(s + m * (P + 1) * W + at, mask=inside, other=0.0)
    scaled = tl.load(grad + m * P * W + at, mask=inside, other=0.0) * (2.0 / whole)[None, :]
    tl.store(to_s + m * (P + 1) * W + at, scaled, mask=inside)
    block = tl.program_id(1).to(tl.int64)
    share = -tl.sum(scaled * value, 0) / whole
    tl.store(partial + (block * tl.num_programs(2) + m) * W + w, share, mask=w < W)
