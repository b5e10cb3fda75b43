"""The flow of several analytes: the derivative of a potential along the path."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from geonode.flow.base import FLOWS, FlowPoint
from geonode.flow.embedded import EmbeddedFlow

_RIDGE = 1e-6  # relative to the features' mean square


@FLOWS.register("gradient")
class GradientFlow(EmbeddedFlow):
    """F = vⁱ ∂ᵢH(x, λ) for D analytes, H = Σⱼ a_j(λ) tanh(ω_j·x + β_j(λ)) + a₀(λ)·x.

    x [M, B, D] are the analytes' warp coordinates. The line integral of a gradient depends on the end points alone, so
    the spectrum is a function of the concentrations.

    Args:
        wavelengths: W, their number.
        dim: D.
        hidden, embedding: tanh units, and numbers that describe a wavelength.
        models: M.
        seed: of the initial weights.
    """

    path_independent = True
    uses_arc_length = False
    several_analytes = True

    def __init__(
        self, wavelengths: int, dim: int, hidden: int = 64, embedding: int = 8, models: int = 1, seed: int = 0
    ) -> None:
        super().__init__(wavelengths, hidden, embedding, models, seed)
        self.dim = dim
        self.omega = self._draws.normal(hidden, dim, scale=2.0 / math.sqrt(dim))
        self.a0_weight = nn.Parameter(torch.zeros(models, embedding, dim))

    def potential(self, position: Tensor, index: Tensor | None = None) -> Tensor:
        """H at ``position`` x [M, B, D] → [M, B, W]; ``index`` [K] picks wavelengths, None all."""
        beta, a = self._at_wavelengths(index)
        embedding = self.embedding if index is None else self.embedding[:, index]
        inside = (position @ self.omega.mT)[:, :, None] + beta[:, None]
        linear = position @ (embedding @ self.a0_weight).mT
        return (torch.tanh(inside) * a[:, None]).sum(-1) + linear

    def forward(self, point: FlowPoint) -> Tensor:
        """F [M, B, W] at positions x [M, B, W, D] (or [M, B, 1, D]) with velocity dx/dt of the same shape."""
        beta, a = self._at_wavelengths(point.index)
        embedding = self.embedding if point.index is None else self.embedding[:, point.index]
        rate = self.omega.mT[:, None]  # [M, 1, D, H]
        squash = torch.tanh(point.position @ rate + beta[:, None])
        along = point.velocity @ rate
        linear = ((embedding @ self.a0_weight)[:, None] * point.velocity).sum(-1)
        return (a[:, None] * (1.0 - squash.square()) * along).sum(-1) + linear

    def start_from(self, points: Tensor, targets: Tensor, weight: Tensor) -> None:
        """Start the embedding from the targets' singular vectors, and the output layer at its least-squares optimum.

        Args:
            points: [M, P, D] warp coordinates.
            targets: [M, P, W] spectra.
            weight: [M, P], of sum one for each model.
        """
        self.set_embedding(targets)
        self._solve_output(points, targets, weight)

    @torch.no_grad()
    def _solve_output(self, points: Tensor, targets: Tensor, weight: Tensor) -> None:
        """a and a₀ at their weighted optimum for fixed ω and β common to all wavelengths, model by model."""
        self.beta_weight.zero_()
        for m in range(self.models):
            omega, bias = self.omega[m].double(), self.beta_bias[m].double()
            features = torch.cat([torch.tanh(points[m] @ omega.mT + bias), points[m]], 1)
            share = weight[m][:, None]
            features = features - (share * features).sum(0)
            basis = self.embedding[m].double()
            projected = torch.linalg.lstsq(basis, targets[m].mT).solution.mT
            normal = features.mT @ (share * features)
            normal += _RIDGE * normal.diagonal().mean() * torch.eye(len(normal), dtype=normal.dtype)
            solved = torch.linalg.solve(normal, features.mT @ (share * projected))  # [H + D, E]
            self.a_weight[m].copy_(solved[: self.hidden].mT)
            self.a0_weight[m].copy_(solved[self.hidden :].mT)
