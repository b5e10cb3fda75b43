"""Gauss–Legendre nodes and weights on [−1, 1], in plain Python floats: neither a device nor a graph sees them."""

from __future__ import annotations

import math
from functools import cache


@cache
def gauss_legendre(n: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Nodes (ascending) and weights of the n-point Gauss–Legendre rule, exact to the last bits of a double.

    Newton on the Legendre polynomial from the Chebyshev-like start cos(π (i − ¼)/(n + ½)); weights 2/((1 − x²) P′²).
    """
    if n < 1:
        raise ValueError(f"nodes is {n}: a Gauss-Legendre rule needs at least one node")
    nodes, weights = [0.0] * n, [0.0] * n
    for i in range((n + 1) // 2):
        x = math.cos(math.pi * (i + 0.75) / (n + 0.5))
        for _ in range(100):
            p, slope = _legendre(n, x)
            step = p / slope
            x -= step
            if abs(step) < 1e-16:
                break
        if 2 * i + 1 == n:
            x = 0.0  # the middle node of an odd rule, which Newton leaves at 1e-17
        _, slope = _legendre(n, x)
        weight = 2.0 / ((1.0 - x * x) * slope * slope)
        nodes[i], nodes[n - 1 - i] = -x, x
        weights[i] = weights[n - 1 - i] = weight
    return tuple(nodes), tuple(weights)


def _legendre(n: int, x: float) -> tuple[float, float]:
    """P_n(x) and its derivative by the three-term recurrence."""
    previous, current = 1.0, x
    for k in range(2, n + 1):
        previous, current = current, ((2 * k - 1) * x * current - (k - 1) * previous) / k
    return current, n * (x * current - previous) / (x * x - 1.0)
