"""Quantiles of Student's t and of χ², by continued fractions and bracketed Newton steps; Student's distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

_TERMS = 500
_TINY = 1e-300


@lru_cache(maxsize=256)
def student_quantile(dof: float, probability: float) -> float:
    """t with P(T ≤ t) = ``probability``, for ``dof`` > 0 degrees of freedom and 0 < probability < 1.

    P(|T| > t) = I_x(ν/2, ½), x = ν/(ν + t²) (Abramowitz & Stegun 26.7.1).
    """
    if probability < 0.5:
        return -student_quantile(dof, 1.0 - probability)
    tail = 2.0 * (1.0 - probability)
    if tail >= 1.0:
        return 0.0
    log_norm = math.lgamma(0.5 * (dof + 1.0)) - math.lgamma(0.5 * dof) - 0.5 * math.log(dof * math.pi)

    def excess(t: float) -> float:
        return _incomplete_beta(0.5 * dof, 0.5, dof / (dof + t * t), t * t / (dof + t * t)) - tail

    def slope(t: float) -> float:
        return -2.0 * math.exp(log_norm - 0.5 * (dof + 1.0) * math.log1p(t * t / dof))

    return _root(excess, slope, 1.0)


def f1_quantile(dof: float, level: float) -> float:
    """The quantile of F with 1 and ``dof`` degrees of freedom: the square of a Student t's two-sided one."""
    return student_quantile(dof, 0.5 + 0.5 * level) ** 2


@lru_cache(maxsize=256)
def chi2_upper_quantile(dof: float, tail: float) -> float:
    """x with P(χ² > x) = ``tail``, for ``dof`` > 0 degrees of freedom and 0 < tail < 1."""
    half = 0.5 * dof

    def slope(x: float) -> float:
        return -0.5 * math.exp((half - 1.0) * math.log(0.5 * x) - 0.5 * x - math.lgamma(half))

    return _root(lambda x: _upper_gamma(half, 0.5 * x) - tail, slope, dof)


def _root(excess: Callable[[float], float], slope: Callable[[float], float], start: float) -> float:
    """The zero of a decreasing function of x > 0: bracketed by doubling, then Newton kept inside the bracket."""
    low, high = 0.0, start
    while excess(high) > 0.0:
        low, high = high, 2.0 * high
    x = 0.5 * (low + high)
    for _ in range(200):
        value = excess(x)
        low, high = (x, high) if value > 0.0 else (low, x)
        step = x - value / min(slope(x), -_TINY)
        new = step if low < step < high else 0.5 * (low + high)
        if abs(new - x) <= 1e-15 * x:
            return new
        x = new
    return x


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """I_x(a, b) with ``rest`` = 1 − x (DLMF 8.17.22, the continued fraction on its fast side)."""
    if x <= 0.0 or rest <= 0.0:
        return 0.0 if x <= 0.0 else 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _beta_fraction(a, b, x) / a
    return 1.0 - front * _beta_fraction(b, a, rest) / b


def _beta_fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1.0 / _away(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, _TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0)),
        ):
            d = 1.0 / _away(1.0 + term * d)
            c = _away(1.0 + term / c)
            value *= c * d
        if abs(c * d - 1.0) < 1e-16:
            break
    return value


def _upper_gamma(a: float, x: float) -> float:
    """Q(a, x) by its series (x < a + 1) or its continued fraction (DLMF 8.7.1, 8.9.2)."""
    if x <= 0.0:
        return 1.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1.0:
        term = total = 1.0 / a
        for n in range(1, 20 * _TERMS):
            term *= x / (a + n)
            total += term
            if term < 1e-17 * total:
                break
        return 1.0 - front * total
    b = x + 1.0 - a
    c, d = 1.0 / _TINY, 1.0 / b
    value = d
    for n in range(1, 20 * _TERMS):
        term = -n * (n - a)
        b += 2.0
        d = 1.0 / _away(term * d + b)
        c = _away(b + term / c)
        value *= c * d
        if abs(c * d - 1.0) < 1e-16:
            break
    return front * value


def _away(value: float) -> float:
    """``value``, or a tiny number where it is zero (Lentz)."""
    return value if abs(value) > _TINY else _TINY


def student_cumulative(dof: int, t: np.ndarray) -> np.ndarray:
    """P(T ≤ t) for a whole number of degrees of freedom ≥ 2, by the finite sums of Abramowitz & Stegun 26.7.3 and
    26.7.4; as accurate as a share of 1, not of itself far out in the tails."""
    root = np.sqrt(dof + t * t)
    sine, square = t / root, dof / (dof + t * t)  # of θ = arctan(t/√ν), and cos²θ
    odd = dof % 2
    term = np.sqrt(square) if odd else np.ones_like(square)
    total = term if dof > 1 else np.zeros_like(square)
    for k in range(2 + odd, dof, 2):
        term = term * square * ((k - 1) / k)
        total = total + term
    within = 2.0 / math.pi * (np.arctan(t / math.sqrt(dof)) + sine * total) if odd else sine * total
    return 0.5 + 0.5 * within
