"""The metric network 2→H₁→H₂→1 (tanh) on a tile of rows, value and derivatives carried forward together.

Weights stay on chip for the life of a program. In formulas: r = 1/(1 + exp 2z) gives tanh z = 1 − 2r and
tanh′ z = 4 (r − r²), so neither the value nor the derivative loses digits, and the factors −2 and 4 go into weights.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ._device import (
    LN2,
    LOG2E,
    SCALE,
    TWO_LOG2E,
    dot,
    logistic_pair,
    narrow,
    reciprocal,
    remainder,
    scale_for,
    tanh_approx,
)


@triton.jit
def load_first(w1, b1, m, H1, K1: tl.constexpr):
    """Columns of W1 (concentration, wavelength) and b1, zero where padded; all [K1]."""
    j = tl.arange(0, K1)
    inside = j < H1
    wc = tl.load(w1 + m * H1 * 2 + j * 2, mask=inside, other=0.0).to(tl.float32)
    wl = tl.load(w1 + m * H1 * 2 + j * 2 + 1, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(b1 + m * H1 + j, mask=inside, other=0.0).to(tl.float32)
    return wc, wl, b


@triton.jit
def load_second(w2, m, H1, H2, K1: tl.constexpr, K2: tl.constexpr):
    """W2ᵀ as [K1, K2], zero where padded."""
    i = tl.arange(0, K1)[:, None]
    j = tl.arange(0, K2)[None, :]
    return tl.load(w2 + m * H1 * H2 + j * H1 + i, mask=(i < H1) & (j < H2), other=0.0).to(tl.float32)


@triton.jit
def load_third(b2, w3, b3, m, H2, K2: tl.constexpr):
    """b2, W3 [K2], zero where padded, and the scalar b3."""
    j = tl.arange(0, K2)
    inside = j < H2
    b = tl.load(b2 + m * H2 + j, mask=inside, other=0.0).to(tl.float32)
    w = tl.load(w3 + m * H2 + j, mask=inside, other=0.0).to(tl.float32)
    return b, w, tl.load(b3 + m).to(tl.float32)


@triton.jit
def gamma_from(y, dy, ddy, OUTPUT: tl.constexpr):
    """g, ∂g/∂c, Γ and ∂Γ/∂c from the network's value and its derivatives. OUTPUT 0: softplus + 0.1, 1: exp."""
    if OUTPUT == 0:
        decay = tl.exp2(-tl.abs(y) * LOG2E)
        g = tl.maximum(y, 0.0) + LN2 * tl.log2(1.0 + decay) + 0.1
        inverse = reciprocal(1.0 + decay)
        sigma = tl.where(y >= 0.0, inverse, decay * inverse)
        dg = sigma * dy
        ratio = dg / g
        curvature = sigma * ddy + sigma * (1.0 - sigma) * dy * dy
        return g, dg, 0.5 * ratio, 0.5 * (curvature / g - ratio * ratio)
    else:
        g = tl.exp2(y * LOG2E)
        return g, g * dy, 0.5 * dy, 0.5 * ddy


@triton.jit
def load_network(w1, b1, w2, b2, w3, b3, m, H1, H2, K1: tl.constexpr, K2: tl.constexpr, PRECISION: tl.constexpr):
    """One model's weights as `value_and_derivatives` takes them.

    (W1c, W1λ, b1) in units of `logistic_pair` for fp32 and plain otherwise, the W2 operands and their scale, b2 in the
    same unit, W3, the constant of y, and plain W1c.
    """
    wc, wl, bias1 = load_first(w1, b1, m, H1, K1)
    w2t = load_second(w2, m, H1, H2, K1, K2)
    bias2, wo, y0 = load_third(b2, w3, b3, m, H2, K2)
    scale = scale_for(tl.max(tl.abs(w2t)))
    high = narrow(w2t * scale, PRECISION)
    low = remainder(w2t * scale, high)
    if PRECISION == 0:
        y0 += tl.sum(wo, 0)
        return wc * TWO_LOG2E, wl * TWO_LOG2E, bias1 * TWO_LOG2E, high, low, scale, bias2 * TWO_LOG2E, wo, y0, wc
    else:
        return wc, wl, bias1, high, low, scale, bias2, wo, y0, wc


@triton.jit
def value_and_derivatives(
    c, zl, wck, w2_high, w2_low, w2_scale, b2, w3, y0, wc, PRECISION: tl.constexpr, ORDER: tl.constexpr
):
    """y, ∂y/∂c (ORDER ≥ 1) and ∂²y/∂c² (ORDER = 2) for one tile of rows; ``zl`` [B, K1] = W1λ λ + b1."""
    y, dy, ddy, _ = steepness_too(c, zl, wck, w2_high, w2_low, w2_scale, b2, w3, y0, wc, PRECISION, ORDER, False)
    return y, dy, ddy


@triton.jit
def steepness_too(
    c,
    zl,
    wck,
    w2_high,
    w2_low,
    w2_scale,
    b2,
    w3,
    y0,
    wc,
    PRECISION: tl.constexpr,
    ORDER: tl.constexpr,
    STEEP: tl.constexpr,
):
    """As `value_and_derivatives`, and with STEEP (ORDER ≥ 1) the largest |∂z/∂c| of the second layer's sums z [B]."""
    if PRECISION == 0:
        return _accurate(c, zl, wck, w2_high, w2_low, w2_scale, b2, w3, y0, wc, PRECISION, ORDER, STEEP)
    else:
        return _quick(c, zl, wck, w2_high, w2_low, w2_scale, b2, w3, y0, PRECISION, ORDER, STEEP)


@triton.jit
def _accurate(
    c,
    zl,
    wck,
    w2_high,
    w2_low,
    w2_scale,
    b2,
    w3,
    y0,
    wc,
    PRECISION: tl.constexpr,
    ORDER: tl.constexpr,
    STEEP: tl.constexpr,
):
    """Through r = 1/(1 + exp 2z), both parts of every operand."""
    r = logistic_pair(c[:, None] * wck[None, :] + zl, PRECISION)
    h = SCALE - (2.0 * SCALE) * r
    h_high = narrow(h, PRECISION)
    h_low = remainder(h, h_high)
    zero = tl.zeros([c.shape[0], b2.shape[0]], tl.float32)
    z = dot(h_high, h_low, w2_high, w2_low, zero, PRECISION)
    r2 = logistic_pair(z * (TWO_LOG2E / (SCALE * w2_scale)) + b2[None, :], PRECISION)
    y = y0 - tl.sum(r2 * (2.0 * w3)[None, :], 1)
    dy = tl.zeros_like(y)
    ddy = tl.zeros_like(y)
    steep = tl.zeros_like(y)
    if ORDER >= 1:
        d_scale = scale_for(tl.max(tl.abs(wc), 0))
        q = r - r * r
        d = q * (wc * (4.0 * d_scale))[None, :]
        d_high = narrow(d, PRECISION)
        d_low = remainder(d, d_high)
        zd = dot(d_high, d_low, w2_high, w2_low, zero, PRECISION)
        q2 = r2 - r2 * r2
        dy = tl.sum(q2 * zd * w3[None, :], 1) * (4.0 / (d_scale * w2_scale))
        if STEEP:
            steep = tl.max(tl.abs(zd), 1) * (1.0 / (d_scale * w2_scale))
        if ORDER >= 2:
            e_scale = scale_for(tl.max(wc * wc, 0))
            e = q * (2.0 * r - 1.0) * (wc * wc * (8.0 * e_scale))[None, :]
            e_high = narrow(e, PRECISION)
            e_low = remainder(e, e_high)
            ze = dot(e_high, e_low, w2_high, w2_low, zero, PRECISION) * (1.0 / (e_scale * w2_scale))
            slope = zd * (1.0 / (d_scale * w2_scale))
            ddy = 4.0 * tl.sum(q2 * (ze - 2.0 * (1.0 - 2.0 * r2) * slope * slope) * w3[None, :], 1)
    return y, dy, ddy, steep


@triton.jit
def _quick(
    c,
    zl,
    wc,
    w2_high,
    w2_low,
    w2_scale,
    b2,
    w3,
    y0,
    PRECISION: tl.constexpr,
    ORDER: tl.constexpr,
    STEEP: tl.constexpr,
):
    """Through tanh itself, leading parts alone: as few instructions a hidden unit as there can be."""
    t = tanh_approx(c[:, None] * wc[None, :] + zl)
    zero = tl.zeros([c.shape[0], b2.shape[0]], tl.float32)
    high = narrow(t, PRECISION)
    t2 = tanh_approx(dot(high, high, w2_high, w2_low, zero, PRECISION) * (1.0 / w2_scale) + b2[None, :])
    y = y0 + tl.sum(t2 * w3[None, :], 1)
    dy = tl.zeros_like(y)
    ddy = tl.zeros_like(y)
    steep = tl.zeros_like(y)
    if ORDER >= 1:
        d_scale = scale_for(tl.max(tl.abs(wc), 0))
        q = 1.0 - t * t
        high = narrow(q * (wc * d_scale)[None, :], PRECISION)
        zd = dot(high, high, w2_high, w2_low, zero, PRECISION)
        slope_unit = 1.0 / (d_scale * w2_scale)
        q2 = w3[None, :] - (t2 * t2) * w3[None, :]
        dy = tl.sum(q2 * zd, 1) * slope_unit
        if STEEP:
            steep = tl.max(tl.abs(zd), 1) * slope_unit
        if ORDER >= 2:
            e_scale = scale_for(tl.max(wc * wc, 0))
            high = narrow(t * q * (wc * wc * e_scale)[None, :], PRECISION)
            ze = dot(high, high, w2_high, w2_low, zero, PRECISION) * (1.0 / (e_scale * w2_scale))
            ddy = -2.0 * tl.sum(q2 * (ze + t2 * (zd * zd) * (slope_unit * slope_unit)), 1)
    return y, dy, ddy, steep


@triton.jit
def upstream(grad_g, grad_dg, grad_gamma, at, inside, y, dy, OUTPUT: tl.constexpr, GAMMA_ONLY: tl.constexpr):
    """Gradients of the loss to y and ∂y/∂c, from those to Γ (and, unless GAMMA_ONLY, to g and ∂g/∂c).

    softplus: g = softplus(y) + 0.1, ∂g = σ ∂y, Γ = ½ ∂g/g.  exp: g = e^y, ∂g = g ∂y, Γ = ½ ∂y.
    """
    gg = tl.load(grad_gamma + at, mask=inside, other=0.0).to(tl.float32)
    if OUTPUT == 0:
        decay = tl.exp2(-tl.abs(y) * LOG2E)
        inverse = reciprocal(1.0 + decay)
        sigma = tl.where(y >= 0.0, inverse, decay * inverse)
        g = tl.maximum(y, 0.0) + LN2 * tl.log2(1.0 + decay) + 0.1
        per_g = reciprocal(g)
        to_dg = 0.5 * gg * per_g
        to_g = -to_dg * sigma * dy * per_g
        if not GAMMA_ONLY:
            to_dg += tl.load(grad_dg + at, mask=inside, other=0.0).to(tl.float32)
            to_g += tl.load(grad_g + at, mask=inside, other=0.0).to(tl.float32)
        return sigma * (to_g + (1.0 - sigma) * dy * to_dg), sigma * to_dg
    else:
        up = tl.zeros_like(y)
        up_d = 0.5 * gg
        if not GAMMA_ONLY:
            g = tl.exp2(y * LOG2E)
            to_dg = tl.load(grad_dg + at, mask=inside, other=0.0).to(tl.float32)
            to_g = tl.load(grad_g + at, mask=inside, other=0.0).to(tl.float32)
            up = g * (to_g + dy * to_dg)
            up_d += g * to_dg
        return up, up_d
