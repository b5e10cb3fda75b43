"""Chebyshev interpolation and integration in float64: the quadrature under the closed form for D = 1.

A function sampled at the T Chebyshev points of the first kind is integrated by integrating its interpolant
(Clenshaw & Curtis 1960; Trefethen, *Approximation Theory and Approximation Practice*, ch. 19). For a function analytic
around the interval the error falls geometrically with T.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from geonode.errors import InputError


def chebyshev_nodes(
    nodes: int = 64, low: float = -1.0, high: float = 1.0, device: torch.device | None = None
) -> Tensor:
    """The ``nodes`` Chebyshev points of the first kind on [low, high], ascending, float64 [T], on ``device``.

    Raises:
        InputError: fewer than two nodes, or low ≥ high.
    """
    _check_interval(nodes, low, high)
    index = torch.arange(nodes, dtype=torch.float64, device=device)
    # The sine of a centred angle instead of the usual cosine: ascending, and symmetric about zero to the last bit.
    x = torch.sin((2.0 * index + 1.0 - nodes) * (0.5 * math.pi / nodes))
    return 0.5 * (low + high) + 0.5 * (high - low) * x


def integration_matrix(points: Tensor, nodes: int = 64, low: float = -1.0, high: float = 1.0) -> Tensor:
    """Φ [..., T] (float64) for ``points`` [...]: Φ_t(u) = ∫_{−1}^{u} ℓ_t, ℓ_t the cardinal polynomials on [low, high].

    With ρ the samples of a function at ``chebyshev_nodes(nodes, low, high)``, ``Φ @ ρ`` is its integral from −1, the
    calibrated minimum of the warp coordinate, to each point: exact for polynomials of degree < T. [low, high] is the
    range that may be asked for and contains [−1, 1]. Differentiable in ``points``; dΦ_t/du = ℓ_t(u).

    Raises:
        InputError: a point, or −1, lies outside [low, high]: the interpolant must not be extrapolated.
    """
    _check_interval(nodes, low, high)
    if low > -1.0 or high < -1.0:
        raise InputError(f"The range [{low:g}, {high:g}] must contain −1, where the integrals start; widen it.")
    points = points.to(torch.float64)
    slack = 1e-6 * (high - low)  # rounding of float32 points; harmless for the polynomials
    if points.numel() and not bool(((points >= low - slack) & (points <= high + slack)).all()):
        raise InputError(
            f"Points from {points.min().item():g} to {points.max().item():g} leave the table's range "
            f"[{low:g}, {high:g}]; rebuild it on a range that covers every concentration asked for."
        )
    half = 0.5 * (high - low)
    x = (points - 0.5 * (low + high)) / half
    start = torch.full((1,), (-1.0 - 0.5 * (low + high)) / half, dtype=torch.float64, device=points.device)
    basis = chebyshev_polynomials(x, nodes + 1) - chebyshev_polynomials(start, nodes + 1)
    return half * (basis @ (integral_of_series(nodes, points.device) @ series_from_values(nodes, points.device)))


def chebyshev_polynomials(x: Tensor, count: int) -> Tensor:
    """T_0 … T_{count−1} at ``x`` [...] ∈ [−1, 1], stacked last, without arccos (finite slopes).

    T_{k+j} = 2 T_k T_j − T_{k−j} doubles their number at a time: a few launches on a GPU instead of hundreds.
    """
    terms = torch.stack([torch.ones_like(x), x], dim=-1)
    while terms.shape[-1] < count:
        terms = torch.cat([terms, 2.0 * terms[..., -1:] * terms[..., 1:] - terms[..., :-1].flip(-1)], -1)
    return terms[..., :count]


def series_from_values(nodes: int, device: torch.device | None = None) -> Tensor:
    """[T, T] float64: values at the (ascending) Chebyshev points → coefficients of T_0 … T_{T−1} (discrete cosines)."""
    order = torch.arange(nodes, dtype=torch.float64, device=device)
    angle = (2.0 * torch.arange(nodes - 1, -1, -1, dtype=torch.float64, device=device) + 1.0) * (0.5 * math.pi / nodes)
    matrix = torch.cos(order[:, None] * angle[None, :]) * (2.0 / nodes)
    return torch.cat([0.5 * matrix[:1], matrix[1:]])


def integral_of_series(nodes: int, device: torch.device | None = None) -> Tensor:
    """[T+1, T] float64: coefficients of f → coefficients of an antiderivative (constant term zero).

    ∫T_0 = T_1, ∫T_1 = T_2/4, ∫T_k = ½ [T_{k+1}/(k+1) − T_{k−1}/(k−1)] for k ≥ 2.
    """
    row = torch.arange(nodes + 1, dtype=torch.float64, device=device)[:, None]
    column = torch.arange(nodes, dtype=torch.float64, device=device)[None, :]
    up = torch.where(row == column + 1, torch.where(column == 0, 1.0, 0.5) / row.clamp_min(1.0), 0.0)
    down = torch.where((row == column - 1) & (row > 0), -0.5 / row.clamp_min(1.0), 0.0)
    return up + down


def _check_interval(nodes: int, low: float, high: float) -> None:
    if nodes < 2:
        raise InputError(f"nodes must be at least 2, got {nodes}.")
    if not low < high:
        raise InputError(f"The interval must satisfy low < high, got [{low:g}, {high:g}].")
