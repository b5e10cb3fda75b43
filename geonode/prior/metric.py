"""The learned metric of an assay and what it means: the variance of a prediction is a function of geodesic distance.

In the base coordinate x (the evidence-averaged warp, −1 to 1 on the calibrated range) the metric is √g = exp(m/2) with
m(x, λ) piecewise linear between nodes: the standards, and one node half a range beyond either end (constant from
there). Arc length is then a closed form, ∫exp(a + bx) dx, and needs no quadrature.

A Brownian bridge along arc length gives the variance of what no standard tells: at distances d₁ and d₂ from the two
neighbouring standards σ²d₁d₂/(d₁ + d₂), beyond the ends σ²d. Near a standard this is σ²d: half the distance, half the
doubt. What standards scatter about any curve, τ², comes on top.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

OUTER = 0.5
"""How far beyond the calibrated range the last nodes lie, in base coordinates (the range is 2)."""


@dataclass(frozen=True)
class PiecewiseMetric:
    """ln g at nodes, for a batch of assays.

    Attributes:
        nodes: ``[B, n + 2]`` base coordinates: outer node, standards, outer node.
        log_metric: ``[B, n + 2, W]`` m = ln g there.
    """

    nodes: Tensor
    log_metric: Tensor

    @classmethod
    def at_standards(cls, standards: Tensor, log_metric: Tensor) -> PiecewiseMetric:
        """From ``standards [B, n]`` in base coordinates and ``log_metric [B, n + 2, W]``."""
        low, high = standards[:, :1] - OUTER, standards[:, -1:] + OUTER
        return cls(torch.cat([low, standards, high], 1).to(log_metric), log_metric)

    def arc_length(self, x: Tensor, lengths: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """ŝ ``[B, P, W]`` at base coordinates ``x [B, P]``: −1 and 1 at the first and the last standard.

        ``lengths`` is what `lengths` gives, where that is known.
        """
        half, at_nodes = self.lengths() if lengths is None else lengths
        first, last = at_nodes[:, 1:2], at_nodes[:, -2:-1]
        return 2.0 * (self._raw(x.to(half), half, at_nodes) - first) / (last - first) - 1.0

    def lengths(self) -> tuple[Tensor, Tensor]:
        """½ m at the nodes, and the length from the first to each ``[B, n + 2, W]``."""
        half = 0.5 * self.log_metric
        step = self.nodes.diff(dim=1)[..., None]
        lengths = step * _mean_exponential(half[:, :-1], half[:, 1:])  # [B, n + 1, W]
        return half, torch.cat([torch.zeros_like(lengths[:, :1]), lengths.cumsum(1)], 1)

    def _raw(self, x: Tensor, half: Tensor, at_nodes: Tensor) -> Tensor:
        """Length from the lower outer node to ``x [B, P]``, negative below it."""
        cells = self.nodes.shape[1] - 1
        cell = (torch.searchsorted(self.nodes.contiguous(), x.contiguous()) - 1).clamp(0, cells - 1)

        def at(values: Tensor, index: Tensor) -> Tensor:
            return values.gather(1, index[..., None].expand(-1, -1, values.shape[-1]))

        left, right = self.nodes.gather(1, cell), self.nodes.gather(1, cell + 1)
        inside = torch.minimum(torch.maximum(x, self.nodes[:, :1]), self.nodes[:, -1:])
        share = ((inside - left) / (right - left).clamp_min(1e-7))[..., None]
        start, end = at(half, cell), at(half, cell + 1)
        here = start + share * (end - start)
        length = at(at_nodes, cell) + (inside - left)[..., None] * _mean_exponential(start, here)
        return length + (x - inside)[..., None] * here.exp()

    def distances(
        self, x: Tensor, standards: Tensor | None = None, lengths: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """ŝ at ``x [B, P]`` and the geodesic distances to the standards below and above, each ``[B, P, W]``.

        Beyond the ends the distance to the missing neighbour is infinite. ``standards [B, n, W]`` is ŝ of the standards
        and ``lengths`` what `lengths` gives, where that is known.
        """
        s = self.arc_length(x, lengths)
        standards = self.arc_length(self.nodes[:, 1:-1], lengths) if standards is None else standards
        n = standards.shape[1]
        after = torch.searchsorted(self.nodes[:, 1:-1].contiguous(), x.to(s).contiguous())  # [B, P]
        below, above = (after - 1).clamp_min(0), after.clamp_max(n - 1)
        pick = [index[..., None].expand(-1, -1, s.shape[-1]) for index in (below, above)]
        lower = (s - standards.gather(1, pick[0])).clamp_min(0.0)
        upper = (standards.gather(1, pick[1]) - s).clamp_min(0.0)
        infinite = torch.full_like(lower, torch.inf)
        lower = torch.where((after == 0)[..., None], infinite, lower)
        upper = torch.where((after == n)[..., None], infinite, upper)
        return s, lower, upper

    def doubt(self, x: Tensor) -> Tensor:
        """Variance of the bridge for σ² = 1, ``[B, P, W]``: d₁d₂/(d₁ + d₂), d beyond the ends; 0 at a standard."""
        _, lower, upper = self.distances(x)
        return bridge(lower, upper)


def bridge(lower: Tensor, upper: Tensor) -> Tensor:
    """d₁d₂/(d₁ + d₂) with one of the two possibly infinite."""
    near, far = torch.minimum(lower, upper), torch.maximum(lower, upper)
    one_sided = torch.isinf(far)
    far = torch.where(one_sided, torch.ones_like(far), far)
    total = (near + far).clamp_min(torch.finfo(near.dtype).tiny)
    return torch.where(one_sided, near, near * far / total)


def _mean_exponential(a: Tensor, b: Tensor) -> Tensor:
    """∫₀¹ exp(a + (b − a)t) dt = exp((a + b)/2) sinh(h)/h with h = (b − a)/2, smooth at h = 0."""
    h = 0.5 * (b - a)
    small = h.abs() < 0.05
    safe = torch.where(small, torch.ones_like(h), h)
    square = h * h
    series = 1.0 + square / 6.0 * (1.0 + square / 20.0)
    return torch.exp(0.5 * (a + b)) * torch.where(small, series, torch.sinh(safe) / safe)
