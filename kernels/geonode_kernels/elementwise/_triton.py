"""Elementwise kernels, memory-bound: each value is read once and written once."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def parabola(below, centre, above, shift, i, inside, inverse):
    """The shift, and value, slope and curvature of the parabola there, in units of the step (``inverse`` = 1/step)."""
    low = tl.load(below + i, mask=inside, other=1.0).to(tl.float32)
    middle = tl.load(centre + i, mask=inside, other=1.0).to(tl.float32)
    high = tl.load(above + i, mask=inside, other=1.0).to(tl.float32)
    x = tl.load(shift + i, mask=inside, other=0.0).to(tl.float32) * inverse
    slope, curvature = 0.5 * (high - low), high - 2.0 * middle + low
    return x, middle + x * (slope + 0.5 * x * curvature), slope + x * curvature, curvature


@triton.jit
def difference_forward(below, centre, above, shift, out, size, inverse, BLOCK: tl.constexpr):
    """½ slope/value of the parabola at ``shift``."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < size
    _, g, dg, _ = parabola(below, centre, above, shift, i, inside, inverse)
    tl.store(out + i, (0.5 * inverse) * dg / g, mask=inside)


@triton.jit
def difference_backward(
    grad, below, centre, above, shift, to_below, to_centre, to_above, to_shift, size, inverse, BLOCK: tl.constexpr
):
    """Gradients to the three values and to the shift."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < size
    x, g, dg, curvature = parabola(below, centre, above, shift, i, inside, inverse)
    to_dg = tl.load(grad + i, mask=inside, other=0.0) * (0.5 * inverse) / g
    to_g = -to_dg * dg / g
    tl.store(to_below + i, to_g * x * (0.5 * x - 0.5) + to_dg * (x - 0.5), mask=inside)
    tl.store(to_centre + i, to_g * (1.0 - x * x) - to_dg * 2.0 * x, mask=inside)
    tl.store(to_above + i, to_g * x * (0.5 * x + 0.5) + to_dg * (x + 0.5), mask=inside)
    tl.store(to_shift + i, (to_g * dg + to_dg * curvature) * inverse, mask=inside)


@triton.jit
def locate(x, low, per_unit, cells):
    """Cell, fraction within it, and whether ``x`` is on the axis."""
    place = (x - low) * per_unit
    inside = (place >= -1e-6) & (place <= cells + 1e-6)
    place = tl.where(inside, place, 0.0)
    cell = tl.minimum(tl.maximum(tl.floor(place), 0.0), cells - 1.0)
    return cell.to(tl.int32), place - cell, inside


@triton.jit
def corners(table, m, row, column, rows, columns, inside, PACKED: tl.constexpr, BLOCK: tl.constexpr):
    """The four corners of a cell of model ``m``: from the table, or from its cells [M, rows − 1, columns − 1, 4]."""
    if PACKED:
        cell = (m * (rows - 1) + row) * (columns - 1) + column
        each = tl.load(table + cell[:, None] * 4 + tl.arange(0, 4)[None, :], mask=inside[:, None], other=0.0)
        left, right = tl.split(tl.reshape(each.to(tl.float32), (BLOCK, 2, 2)))
        a, c = tl.split(left)
        b, d = tl.split(right)
        return a, b, c, d
    else:
        at = table + m * rows * columns + row.to(tl.int64) * columns + column
        a = tl.load(at, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(at + 1, mask=inside, other=0.0).to(tl.float32)
        c = tl.load(at + columns, mask=inside, other=0.0).to(tl.float32)
        d = tl.load(at + columns + 1, mask=inside, other=0.0).to(tl.float32)
        return a, b, c, d


@triton.jit
def grid_forward(
    table, c, wavelength, out, N, rows, columns, c_low, c_rate, l_low, l_rate, BLOCK: tl.constexpr, PACKED: tl.constexpr
):
    """Bilinear look-up; NaN outside the table."""
    m = tl.program_id(1).to(tl.int64)
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = n < N
    row, x, on_c = locate(tl.load(c + m * N + n, mask=inside, other=0.0).to(tl.float32), c_low, c_rate, rows - 1.0)
    lam = tl.load(wavelength + m * N + n, mask=inside, other=0.0).to(tl.float32)
    column, y, on_l = locate(lam, l_low, l_rate, columns - 1.0)
    p, q, r, s = corners(table, m, row, column, rows, columns, inside, PACKED, BLOCK)
    low, high = p + y * (q - p), r + y * (s - r)
    tl.store(out + m * N + n, tl.where(on_c & on_l, low + x * (high - low), float("nan")), mask=inside)


@triton.jit
def grid_backward(
    table, c, wavelength, grad, to_c, to_l, N, rows, columns, c_low, c_rate, l_low, l_rate, BLOCK: tl.constexpr,
    PACKED: tl.constexpr,
):  # fmt: skip
    """Slopes of the cell times the upstream gradient; zero outside, where the value is NaN."""
    m = tl.program_id(1).to(tl.int64)
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = n < N
    row, x, on_c = locate(tl.load(c + m * N + n, mask=inside, other=0.0).to(tl.float32), c_low, c_rate, rows - 1.0)
    lam = tl.load(wavelength + m * N + n, mask=inside, other=0.0).to(tl.float32)
    column, y, on_l = locate(lam, l_low, l_rate, columns - 1.0)
    p, q, r, s = corners(table, m, row, column, rows, columns, inside, PACKED, BLOCK)
    up = tl.where(on_c & on_l, tl.load(grad + m * N + n, mask=inside, other=0.0), 0.0)
    tl.store(to_c + m * N + n, up * c_rate * ((r - p) + y * ((s - r) - (q - p))), mask=inside)
    tl.store(to_l + m * N + n, up * l_rate * ((q - p) + x * ((s - r) - (q - p))), mask=inside)
