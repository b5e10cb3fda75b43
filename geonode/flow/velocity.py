"""The default flow, with an eye for velocity."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from geonode.flow.base import FLOWS, FlowPoint
from geonode.flow.path import FlowPath
from geonode.flow.spectral import SpectralFlow
from geonode_kernels import velocity_loss


@FLOWS.register("velocity")
class VelocityFlow(SpectralFlow):
    """dA/dt = (dŝ/dt)·h with  h(ŝ, u̇, λ) = Σⱼ a_j(λ) tanh(ω_j ŝ + ν_j u̇ + β_j(λ)) + a₀(λ).

    What it carries depends on the path. Arguments as for `SpectralFlow`.
    """

    def _velocity_weights(self) -> nn.Parameter | None:
        return self._draws.normal(self.hidden, scale=0.1)

    def forward(self, point: FlowPoint) -> Tensor:
        """dA/dt = dŝ/dt · h(ŝ, u̇) [M, B, W]."""
        assert point.s_hat is not None and point.speed is not None  # uses_arc_length
        omega, beta, a, a0, nu = self.coefficients(point.index)
        assert nu is not None
        inside = point.s_hat[..., None] * omega[:, None, None] + beta[:, None]
        inside = inside + point.velocity[..., None] * nu[:, None, None]
        return point.speed * ((torch.tanh(inside) * a[:, None]).sum(-1) + a0[:, None])

    def misfit(self, path: FlowPath, change: Tensor, share: Tensor, nodes: int = 16) -> Tensor | None:
        """See `Flow.misfit`."""
        if not self.fits(path, change):
            return None
        c = self.coefficients(path.index)
        assert c.nu is not None
        half = path.half_range[:, 0]
        _, density = path.positions(nodes)
        flow = c.omega, c.nu, c.beta, c.a, c.a0
        return velocity_loss(path.ends, density, half, *flow, change.contiguous(), share, backend=path.backend)
