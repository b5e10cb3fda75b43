"""Simple methods as linear smoothers: straight lines and parabolas along many warps, and straight interpolation.

The grid of the geodesic Gaussian process holds a straight line only with a nugget, and no parabola. Real standards
often lie on one (Beer–Lambert, a binding isotherm along its own warp), so each stands here as a candidate of its own,
with leave-one-out residuals from the hat matrix, r/(1 − h).
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.numbers import constant
from geonode.metric.warp import warp_values
from geonode.prior.candidates import scaled

EXPONENTIAL_SCALES = (0.1, 0.3, 1.0)
HILL_SCALES = (0.15, 0.4, 1.0)
_WARPS = 13 + len(EXPONENTIAL_SCALES) + len(HILL_SCALES) + 1
SIMPLE = 2 * _WARPS + 2
"""A line and a parabola in each warp, and interpolation that extrapolates or holds at the ends."""
_LEAST = 1e-3  # smallest 1 − h: a parabola through three standards has no leave-one-out residual


def simple_smoothers(levels: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """Weights of the standards ``[B, S, P, n]`` and leave-one-out operators ``[B, S, n, n]``, float64.

    Args:
        levels: ``[B, n]`` ascending, n ≥ 2. places: ``[B, P]``.
    """
    levels, places = levels.double(), places.double()
    u, at = scaled(levels, places)
    t, tq = _warped(u), _warped(at.clamp_min(-0.5))
    low, span = t[..., :1], t[..., -1:] - t[..., :1]
    t, tq = (t - low) / span, (tq - low) / span
    fits = [_polynomial(t, tq, degree) for degree in (1, 2)]
    fits.append(_interpolation(levels, places))
    return torch.cat([rows for rows, _ in fits], 1), torch.cat([loo for _, loo in fits], 1)


def _warped(u: Tensor) -> Tensor:
    """``[B, m]`` → ``[B, warps, m]``: the Gaussian process's warps, exponentials, Hill curves of order two, u³ᐟ²."""
    x = u[None]
    positive = x.clamp_min(0.0)
    exponential = [-torch.expm1(-x / k) for k in EXPONENTIAL_SCALES]
    hill = [positive**2 / (positive**2 + k * k) for k in HILL_SCALES]
    power = x.sign() * x.abs() ** 1.5
    return torch.cat([warp_values(u), *exponential, *hill, power]).movedim(0, 1)


def _polynomial(t: Tensor, tq: Tensor, degree: int) -> tuple[Tensor, Tensor]:
    """Least squares on 1, t (and t²), orthogonalised: ``t [B, V, n]``, ``tq [B, V, P]``."""
    n = t.shape[-1]
    basis, at = [torch.full_like(t, n**-0.5)], [torch.full_like(tq, n**-0.5)]
    for power in range(1, degree + 1):
        column, query = t**power, tq**power
        for _ in range(2):  # twice is enough for orthogonality to rounding
            for known, known_at in zip(basis, at, strict=True):
                share = (column * known).sum(-1, keepdim=True)
                column, query = column - share * known, query - share * known_at
        norm = column.square().sum(-1, keepdim=True).sqrt()
        keep = norm > 1e-6
        scale = torch.where(keep, 1.0 / norm.clamp_min(1e-6), torch.zeros_like(norm))
        basis.append(column * scale)
        at.append(query * scale)
    q, at_q = torch.stack(basis, -1), torch.stack(at, -1)
    hat = q @ q.mT
    return at_q @ q.mT, _leave_one_out(hat)


def _leave_one_out(hat: Tensor) -> Tensor:
    free = (1.0 - torch.diagonal(hat, dim1=-2, dim2=-1)).clamp_min(_LEAST)
    return (torch.eye(hat.shape[-1], dtype=hat.dtype, device=hat.device) - hat) / free[..., None]


def _interpolation(levels: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """Between neighbours, straight; beyond the ends along the last piece, or held (the second of the two)."""
    rows = _between(levels, places)
    left_out = []
    n = levels.shape[1]
    if n == 2:
        one = constant((1.0, -1.0, -1.0, 1.0), levels.dtype, levels.device).view(2, 2)
        return rows, one.expand(len(levels), 2, 2, 2)
    for i in range(n):
        others = torch.cat([levels[:, :i], levels[:, i + 1 :]], 1)
        weights = _between(others, levels[:, i : i + 1])[:, :, 0]  # [B, 2, n − 1]
        left_out.append(torch.cat([-weights[..., :i], torch.ones_like(weights[..., :1]), -weights[..., i:]], -1))
    return rows, torch.stack(left_out, 2)


def _between(levels: Tensor, places: Tensor) -> Tensor:
    """``[B, 2, P, n]`` weights of straight interpolation, extrapolating and held at the ends."""
    n = levels.shape[1]
    left = (torch.searchsorted(levels.contiguous(), places.contiguous()) - 1).clamp(0, n - 2)
    low, high = levels.gather(1, left), levels.gather(1, left + 1)
    t = (places - low) / (high - low)
    number = torch.arange(n, device=levels.device)
    here, there = ((index[..., None] == number).to(levels.dtype) for index in (left, left + 1))
    both = torch.stack([t, t.clamp(0.0, 1.0)], 1)[..., None]
    return here[:, None] * (1.0 - both) + there[:, None] * both
