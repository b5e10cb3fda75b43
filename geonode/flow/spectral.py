"""The default flow: a spectrum that is a function of arc length alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import torch
from torch import Tensor, nn

from geonode.flow.base import FLOWS, FlowCoefficients, FlowPoint
from geonode.flow.config import FlowConfig
from geonode.flow.embedded import EmbeddedFlow, aligned, coordinates_in
from geonode.flow.path import FlowPath
from geonode_kernels import flow_loss_of_ends, verify
from geonode_kernels._dispatch import flow_refusal
from geonode_kernels.flow_quadrature import flow_quadrature


@FLOWS.register("path_independent")
class SpectralFlow(EmbeddedFlow):
    """dA/dt = (dŝ/dt)·h with  h(ŝ, λ) = Σⱼ a_j(λ) tanh(ω_j ŝ + β_j(λ)) + a₀(λ).

    The spectrum is a function of concentration alone, and a path that does not move changes nothing.

    Args:
        wavelengths: W, their number.
        hidden: H, tanh units.
        embedding: E, numbers that describe a wavelength, from which β, a and a₀ are made.
        models: M.
        seed: of the initial weights; model m starts from ``seed`` + m.
    """

    path_independent = True

    def __init__(self, wavelengths: int, hidden: int = 64, embedding: int = 8, models: int = 1, seed: int = 0) -> None:
        super().__init__(wavelengths, hidden, embedding, models, seed)
        self.omega = self._draws.normal(hidden, scale=2.0)
        self.nu = self._velocity_weights()
        self.a0_weight = nn.Parameter(torch.zeros(models, embedding))

    @classmethod
    def from_config(cls, config: FlowConfig, context: Mapping[str, Any]) -> Self:
        """See `Flow.from_config` for ``config`` and ``context``; no wider an embedding than there are wavelengths."""
        # more directions than wavelengths would say nothing
        narrow = config.replace(embedding=min(config.embedding, context["wavelengths"]))
        return super().from_config(narrow, context)

    def _velocity_weights(self) -> nn.Parameter | None:
        """ν [M, H], for flows that see the velocity."""
        return None

    def start_from(self, points: Tensor, targets: Tensor, weight: Tensor) -> None:
        """Start the embedding from the targets' singular vectors, and the output layer at its least-squares optimum.

        Without the padding: how a model starts must not depend on how many points its neighbours have. Arguments as
        for `Flow.start_from`; ``points`` stand for ŝ, which is the warp coordinate as long as ln g̃ is zero.
        """
        self.set_embedding([rows[w > 0.0] for rows, w in zip(targets, weight, strict=True)])
        self.solve_output(points, targets, weight)

    @torch.no_grad()
    def solve_output(self, s_hat: Tensor, spectra: Tensor, weight: Tensor, ridge: float = 1e-6) -> None:
        """Start a and a₀ at their weighted least-squares optimum for fixed ω and β common to all wavelengths.

        The flow is linear in its output layer, so the best start is one small solve per model: with features
        ψ_j(ŝ) = ∫ tanh(ω_j ŝ + b_j) dŝ = ln cosh(ω_j ŝ + b_j)/ω_j and spectra projected on the embedding. ``ridge`` is
        relative to the features' mean square; the linear feature is not penalised, so a straight line stays one.

        s_hat [M, P], spectra [M, P, W], weight [M, P].
        """
        self.beta_weight.zero_()
        for m in range(self.models):
            solution = self._best_output(m, aligned(s_hat[m]), aligned(spectra[m]), aligned(weight[m]), ridge)
            self.a_weight[m] = solution[:-1].mT
            self.a0_weight[m] = solution[-1]

    def _best_output(self, m: int, s_hat: Tensor, spectra: Tensor, weight: Tensor, ridge: float) -> Tensor:
        """Output weights [H + 1, E] of model m (the last row is the linear feature's)."""
        omega, bias = aligned(self.omega[m]), aligned(self.beta_bias[m])
        share = (weight / weight.sum())[:, None]
        inside = (s_hat[:, None] * omega + bias).abs()
        features = torch.cat([(inside + torch.nn.functional.softplus(-2.0 * inside)) / omega, s_hat[:, None]], 1)
        features = features - (share * features).sum(0)
        target = spectra - (share * spectra).sum(0)
        projected = coordinates_in(target, aligned(self.embedding[m]))
        normal = features.mT @ (share * features)
        penalty = torch.full_like(normal[0], ridge) * normal.diagonal()[:-1].mean()
        penalty[-1] *= 1e-6
        return torch.linalg.solve(normal + penalty.diag(), features.mT @ (share * projected))

    def coefficients(self, index: Tensor | None = None) -> FlowCoefficients:
        """The per-wavelength coefficients, formed once per step and shared by every pair and node; ``index`` as for the
        class.
        """
        beta, a = self._at_wavelengths(index)
        embedding = self.embedding if index is None else self.embedding[:, index]
        a0 = (embedding @ self.a0_weight[..., None]).squeeze(-1).to(beta.dtype)
        return FlowCoefficients(self.omega, beta, a, a0, self.nu)

    def forward(self, point: FlowPoint) -> Tensor:
        """dA/dt = dŝ/dt · h(ŝ) [M, B, W]."""
        assert point.s_hat is not None and point.speed is not None  # uses_arc_length
        return point.speed * self.slope(point.s_hat, point.index)

    def slope(self, s_hat: Tensor, index: Tensor | None = None) -> Tensor:
        """h = dA/dŝ [M, B, W] at ``s_hat`` ŝ [M, B, W]; ``index`` [K] picks wavelengths, None takes all of them."""
        omega, beta, a, a0, _ = self.coefficients(index)
        inside = s_hat[..., None] * omega[:, None, None] + beta[:, None]
        return (torch.tanh(inside) * a[:, None]).sum(-1) + a0[:, None]

    def integral(self, path: FlowPath, nodes: int = 16) -> Tensor:
        """∫ h dŝ [M, B, W], zero where both ends are equal: a kernel on a GPU. See `Flow.integral`."""
        c = self.coefficients(path.index)
        return flow_quadrature(path.ends[:, 0], path.ends[:, 1], c.omega, c.beta, c.a, c.a0, nodes=nodes)

    def misfit(self, path: FlowPath, change: Tensor, share: Tensor, nodes: int = 16) -> Tensor | None:
        """See `Flow.misfit`: neither the pairs' spectra nor the hidden units at every node are kept in memory."""
        if not self.fits(path, change):
            return None
        c = self.coefficients(path.index)
        flow = c.omega, c.beta, c.a, c.a0
        return flow_loss_of_ends(path.ends, *flow, change.contiguous(), share, nodes, backend=path.backend)

    def fits(self, path: FlowPath, change: Tensor) -> bool:
        """Whether the fused loss of ``change`` along ``path`` has kernels for this flow and device.

        Where another backend than ``auto`` was asked for, that one is taken.
        """
        if path.backend != "auto":
            return True
        return (flow_refusal(self.hidden) or verify([change, *self.parameters()])) is None

    def tanh_units(self, index: Tensor | None = None) -> FlowCoefficients | None:
        """See `Flow.tanh_units`."""
        return self.coefficients(index)
