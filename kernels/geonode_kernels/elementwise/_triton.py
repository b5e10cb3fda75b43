"""Elementwise kernels, memory-bound: each value is read once and written once."""

from __future__ import annotations

import triton
import triton.language as tl

from .._device import LN2, LOG2E


@triton.jit
def softplus_forward(x, bias, out, size, N, F, floor, BLOCK: tl.constexpr):
    """``x``, ``out`` [M, N, F] flat; ``bias`` [M, F]."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < size
    z = tl.load(x + i, mask=inside, other=0.0).to(tl.float32)
    z += tl.load(bias + i // (N * F) * F + i % F, mask=inside, other=0.0)
    decay = tl.exp2(-tl.abs(z) * LOG2E)
    grown = 1.0 + decay
    # ln(1 + d), exact where 1 + d has lost d's digits: ln(grown)·d/(grown − 1), and d itself where nothing is left
    small = tl.where(grown == 1.0, decay, LN2 * tl.log2(grown) * decay / tl.maximum(grown - 1.0, 1e-30))
    value = tl.maximum(z, 0.0) + small
    tl.store(out + i, value + floor, mask=inside)


@triton.jit
def softplus_backward(x, bias, grad, to_x, partial, N, F, rows, BLOCK_N: tl.constexpr, BLOCK_F: tl.constexpr):
    """σ(x + bias)·grad, and this program's ``rows`` rows of its sum over N: ``partial`` [chunks, M, F]."""
    m = tl.program_id(2).to(tl.int64)
    j = tl.program_id(0) * BLOCK_F + tl.arange(0, BLOCK_F)
    b = tl.load(bias + m * F + j, mask=j < F, other=0.0)
    total = tl.zeros([BLOCK_N, BLOCK_F], tl.float32)
    first = tl.program_id(1) * rows
    for begin in range(first, tl.minimum(first + rows, N), BLOCK_N):
        n = begin + tl.arange(0, BLOCK_N)
        inside = (n < N)[:, None] & (j < F)[None, :]
        at = (m * N + n)[:, None] * F + j[None, :]
        z = tl.load(x + at, mask=inside, other=0.0).to(tl.float32) + b[None, :]
        decay = tl.exp2(-tl.abs(z) * LOG2E)
        sigma = tl.where(z >= 0.0, 1.0, decay) / (1.0 + decay)
        g = sigma * tl.load(grad + at, mask=inside, other=0.0)
        tl.store(to_x + at, g, mask=inside)
        total += g
    at = (tl.program_id(1).to(tl.int64) * tl.num_programs(2) + m) * F + j
    tl.store(partial + at, tl.sum(total, 0), mask=j < F)


@triton.jit
def difference_forward(below, centre, above, out, size, factor, BLOCK: tl.constexpr):
    """(above − below)·factor/centre."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < size
    low = tl.load(below + i, mask=inside, other=0.0).to(tl.float32)
    high = tl.load(above + i, mask=inside, other=0.0).to(tl.float32)
    g = tl.load(centre + i, mask=inside, other=1.0).to(tl.float32)
    tl.store(out + i, (high - low) * factor / g, mask=inside)


@triton.jit
def difference_backward(grad, centre, gamma, to_below, to_centre, to_above, size, factor, BLOCK: tl.constexpr):
    """Gradients to g(c − ε), g(c), g(c + ε), from Γ itself."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < size
    g = tl.load(grad + i, mask=inside, other=0.0) / tl.load(centre + i, mask=inside, other=1.0).to(tl.float32)
    tl.store(to_centre + i, -g * tl.load(gamma + i, mask=inside, other=0.0), mask=inside)
    tl.store(to_above + i, g * factor, mask=inside)
    tl.store(to_below + i, -g * factor, mask=inside)


@triton.jit
def locate(x, low, per_unit, cells):
    """Cell, fraction within it, and whether ``x`` is on the axis."""
    place = (x - low) * per_unit
    inside = (place >= -1e-6) & (place <= cells + 1e-6)
    place = tl.where(inside, place, 0.0)
    cell = tl.minimum(tl.maximum(tl.floor(place), 0.0), cells - 1.0)
    return cell.to(tl.int32), place - cell, inside


@triton.jit
def corners(table, m, row, column, rows, columns, inside):
    """The four corners of a cell of model ``m``."""
    at = table + m * rows * columns + row.to(tl.int64) * columns + column
    a = tl.load(at, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(at + 1, mask=inside, other=0.0).to(tl.float32)
    c = tl.load(at + columns, mask=inside, other=0.0).to(tl.float32)
    d = tl.load(at + columns + 1, mask=inside, other=0.0).to(tl.float32)
    return a, b, c, d


@triton.jit
def grid_forward(table, c, wavelength, out, N, rows, columns, c_low, c_rate, l_low, l_rate, BLOCK: tl.constexpr):
    """Bilinear look-up; NaN outside the table."""
    m = tl.program_id(1).to(tl.int64)
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = n < N
    row, x, on_c = locate(tl.load(c + m * N + n, mask=inside, other=0.0).to(tl.float32), c_low, c_rate, rows - 1.0)
    lam = tl.load(wavelength + m * N + n, mask=inside, other=0.0).to(tl.float32)
    column, y, on_l = locate(lam, l_low, l_rate, columns - 1.0)
    p, q, r, s = corners(table, m, row, column, rows, columns, inside)
    low, high = p + y * (q - p), r + y * (s - r)
    tl.store(out + m * N + n, tl.where(on_c & on_l, low + x * (high - low), float("nan")), mask=inside)


@triton.jit
def grid_backward(
    table, c, wavelength, grad, to_c, to_l, N, rows, columns, c_low, c_rate, l_low, l_rate, BLOCK: tl.constexpr
):
    """Slopes of the cell times the upstream gradient; zero outside, where the value is NaN."""
    m = tl.program_id(1).to(tl.int64)
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = n < N
    row, x, on_c = locate(tl.load(c + m * N + n, mask=inside, other=0.0).to(tl.float32), c_low, c_rate, rows - 1.0)
    lam = tl.load(wavelength + m * N + n, mask=inside, other=0.0).to(tl.float32)
    column, y, on_l = locate(lam, l_low, l_rate, columns - 1.0)
    p, q, r, s = corners(table, m, row, column, rows, columns, inside)
    up = tl.where(on_c & on_l, tl.load(grad + m * N + n, mask=inside, other=0.0), 0.0)
    tl.store(to_c + m * N + n, up * c_rate * ((r - p) + y * ((s - r) - (q - p))), mask=inside)
    tl.store(to_l + m * N + n, up * l_rate * ((q - p) + x * ((s - r) - (q - p))), mask=inside)
