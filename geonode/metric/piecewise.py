"""ln g̃ between nodes of concentration and wavelength: the metric that pre-trained weights read off standards."""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.metric.log import LogMetric


class PiecewiseLogMetric(LogMetric):
    """ln g̃(u, λ), linear between nodes in either direction and constant beyond the outermost.

    Args:
        nodes: [N] ascending warp coordinates.
        values: [N, W] ln g̃ there.
        grid: [W] wavelengths, scaled to [−1, 1], in either order.
    """

    nodes: Tensor
    values: Tensor
    grid: Tensor

    def __init__(self, nodes: Tensor, values: Tensor, grid: Tensor) -> None:
        super().__init__()
        order = torch.argsort(grid)
        self.register_buffer("nodes", nodes)
        self.register_buffer("values", values[:, order])
        self.register_buffer("grid", grid[order])

    def forward(self, u: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """ln g̃ [...] at ``u`` [...] and the scaled ``wavelength`` [...]; None takes the mean over wavelengths."""
        return self.value_and_derivative(u, wavelength)[0]

    def value_and_derivative(self, u: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """ln g̃ and its slope in ``u`` (zero beyond the nodes), both [...]; ``wavelength`` as there."""
        shape = u.shape if wavelength is None else torch.broadcast_shapes(u.shape, wavelength.shape)
        u = u.expand(shape)
        nodes = self.nodes.to(u)
        cell = (torch.bucketize(u.detach().contiguous(), nodes, right=True) - 1).clamp(0, len(nodes) - 2)
        width = nodes[cell + 1] - nodes[cell]
        inside = (u >= nodes[0]) & (u <= nodes[-1])
        share = ((u - nodes[cell]) / width).clamp(0.0, 1.0)
        lower, upper = self._at(cell, wavelength, u), self._at(cell + 1, wavelength, u)
        slope = torch.where(inside, (upper - lower) / width, torch.zeros_like(u))
        return lower + share * (upper - lower), slope

    def _at(self, node: Tensor, wavelength: Tensor | None, like: Tensor) -> Tensor:
        values = self.values.to(like)
        if wavelength is None:
            return values.mean(1)[node]
        grid = self.grid.to(like)
        w = wavelength.to(like).expand(like.shape).contiguous()
        column = (torch.bucketize(w, grid, right=True) - 1).clamp(0, max(len(grid) - 2, 0))
        if len(grid) == 1:
            return values[node, column]
        share = ((w - grid[column]) / (grid[column + 1] - grid[column])).clamp(0.0, 1.0)
        return torch.lerp(values[node, column], values[node, column + 1], share)
