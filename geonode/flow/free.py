"""The original flow, free in velocity."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from geonode.flow.base import FLOWS, Flow, FlowPoint
from geonode.flow.embedded import Draws
from geonode_kernels import FlowUnits


@FLOWS.register("free")
class FreeFlow(Flow):
    """F(u, u̇, λ): (position, velocity, wavelength, 8-wide embedding) → hidden → 1, tanh. The original network.

    Nothing forces F(u, 0, λ) = 0, so a zero-length path may change the spectrum; kept as the original recipe. It starts
    from a random embedding.

    Args:
        grid: [W], wavelengths scaled to [−1, 1].
        hidden, embedding: tanh units, and numbers that describe a wavelength.
        models: M.
        seed: of the initial weights.
    """

    still_at_rest = False
    uses_arc_length = False
    wavelength: Tensor

    def __init__(self, grid: Tensor, hidden: int = 16, embedding: int = 8, models: int = 1, seed: int = 0) -> None:
        super().__init__()
        self.models = models
        self.register_buffer("wavelength", grid)
        draws = Draws(models, seed)
        width = 3 + embedding
        self.embedding = draws.normal(len(grid), embedding)
        self.weight1 = draws.normal(width, hidden, scale=1.0 / math.sqrt(width))
        self.bias1 = nn.Parameter(torch.zeros(models, hidden))
        self.weight2 = draws.normal(hidden, scale=1.0 / math.sqrt(hidden))
        self.bias2 = nn.Parameter(torch.zeros(models))

    def forward(self, point: FlowPoint) -> Tensor:
        """F at the point's position and velocity [M, B, W]."""
        place, pace = self.weight1[:, None, None, 0], self.weight1[:, None, None, 1]
        inside = point.position[..., None] * place + point.velocity[..., None] * pace
        hidden = torch.tanh(inside + self._at_wavelengths(point.index)[:, None])
        return (hidden * self.weight2[:, None, None]).sum(-1) + self.bias2[:, None, None]

    def kernel_units(self, index: Tensor | None = None) -> FlowUnits | str:
        """See `Flow.kernel_units`; ``index`` as there."""
        return FlowUnits(
            self.weight1[:, 0], self.weight1[:, 1], self._at_wavelengths(index).mT, self.weight2, self.bias2
        )

    def _at_wavelengths(self, index: Tensor | None) -> Tensor:
        """What wavelengths and bias add inside the tanh [M, W, H]: the only matrix product, hence under AMP."""
        wavelength, embedding = self.wavelength, self.embedding
        if index is not None:
            wavelength, embedding = wavelength[index], embedding[:, index]
        product = (embedding @ self.weight1[:, 3:]).to(self.bias1.dtype)
        return wavelength[:, None] * self.weight1[:, None, 2] + product + self.bias1[:, None]
