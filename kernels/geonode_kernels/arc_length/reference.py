"""Arc length from a table in plain torch: as a matrix product, as a Chebyshev series, and its inverse."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def arc_length(phi: Tensor, density: Tensor) -> Tensor:
    """ŝ = 2 S/S(1) − 1 with S = Φ·ρ.  ``phi`` [M, P + 1, T], whose last row is that of u = 1; ``density`` ρ [M, T, W] →
    [M, P, W]."""
    s = phi @ density
    return 2.0 * s[:, :-1] / s[:, -1:] - 1.0


def clenshaw(coefficients: Tensor, x: Tensor) -> Tensor:
    """Σ_k coefficients[k]·T_k(x) by Clenshaw's recurrence: ``coefficients`` [K, ...], each broadcast against ``x``."""
    later, latest, twice = torch.zeros_like(x), torch.zeros_like(x), 2.0 * x
    first, *rest = coefficients.unbind(0)
    for coefficient in reversed(rest):
        later, latest = latest, torch.addcmul(coefficient - later, twice, latest)
    return torch.addcmul(first - later, x, latest)


@torch.no_grad()
def invert(
    target: Tensor,
    places: Tensor,
    lengths: Tensor,
    arc_length: Callable[[Tensor], Tensor],
    density: Callable[[Tensor], Tensor],
    newton: int,
) -> Tensor:
    """u with arc length ``target`` [...], without a graph: bracketed in a table, then Newton's steps inside its cell.

    Args:
        target: between the first and the last of ``lengths``, or the nearer of these is taken.
        places, lengths: [T, ...] ascending, u and its arc length at the table's nodes and both of its edges; broadcast
            against ``target``.
        arc_length, density: functions of u, S and its derivative.
        newton: steps; inside one cell the arc length is nearly straight.
    """
    size = len(places)
    shape = torch.broadcast_shapes(target.shape, lengths.shape[1:])
    target, places, lengths = target.expand(shape), places.expand(size, *shape), lengths.expand(size, *shape)
    below = torch.zeros_like(target, dtype=torch.int64)
    above = below + (size - 1)
    for _ in range((size - 1).bit_length()):
        middle = (below + above) // 2
        under = lengths.gather(0, middle[None])[0] <= target
        below, above = torch.where(under, middle, below), torch.where(under | (middle == below), above, middle)
    (low, s_low), (high, s_high) = ([x.gather(0, at[None])[0] for x in (places, lengths)] for at in (below, above))
    share = (target - s_low) / torch.where(s_high > s_low, s_high - s_low, 1.0)
    u = low + share.clamp(0.0, 1.0) * (high - low)
    for _ in range(newton):
        u = u - (arc_length(u) - target) / density(u)
        u = torch.minimum(torch.maximum(u, low), high)
    return u
