"""Arc length of the full metric in the warp coordinate, per wavelength, as a matrix product.

With ρ = √g̃ sampled at T Chebyshev nodes of the whole range that may be asked for (ρ [M, T, W]), the arc length from
u = −1 is S(u) = Φ(u)·ρ, where Φ_t(u) = ∫_{−1}^{u} ℓ_t integrates the cardinal polynomials: spectrally accurate, no
solver. Φ depends on the points alone. Outside the table's range nothing is extrapolated: the caller is told.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from geonode.errors import InputError
from geonode.geodesic.arclength import chebyshev_nodes, integration_matrix


class ArcLengthTable(nn.Module):
    """Nodes and integration matrices of M models' ranges [low, high] ∋ −1, 1 (warp coordinate, dimensionless).

    Args:
        low, high: [M] float64, the range of each model's table; low ≤ −1 and high ≥ 1.
        nodes: T.
    """

    def __init__(self, low: Tensor, high: Tensor, nodes: int = 64) -> None:
        super().__init__()
        if bool((low > -1).any()) or bool((high < 1).any()):
            raise InputError("An arc-length table must cover the calibrated range: low ≤ −1 and high ≥ 1.")
        self.size = nodes
        self.register_buffer("low", low.double())
        self.register_buffer("high", high.double())
        edges = list(zip(low.tolist(), high.tolist(), strict=True))
        self.register_buffer("nodes", torch.stack([chebyshev_nodes(nodes, a, b) for a, b in edges]))
        self.register_buffer("phi_one", torch.stack([_matrix(torch.ones(1), nodes, a, b) for a, b in edges]))
        self.register_buffer("series", torch.stack([_series(nodes, a, b) for a, b in edges]))
        self.register_buffer("density_series", torch.stack([_density_series(nodes, a, b) for a, b in edges]))

    def phi(self, points: Tensor) -> Tensor:
        """Φ at ``points`` [M, P] → [M, P, T] float64. Raises InputError for a point outside the table."""
        outside = (points < self.low[:, None] - 1e-9) | (points > self.high[:, None] + 1e-9)
        if bool(outside.any()):
            raise InputError(
                "A concentration lies outside the range this model was trained for; fit again with a larger margin."
            )
        rows = zip(points.double(), self.low.tolist(), self.high.tolist(), strict=True)
        return torch.stack([_matrix(p, self.size, a, b) for p, a, b in rows])

    def scaled(self, phi: Tensor, density: Tensor) -> Tensor:
        """ŝ [M, P, W] in [−1, 1] on the calibrated range, from Φ [M, P, T] and ρ [M, T, W] of one dtype."""
        total = self.phi_one.to(density) @ density
        return 2.0 * (phi @ density) / total - 1.0

    def length(self, density: Tensor) -> Tensor:
        """Arc length of the calibrated range, S(1) [M, 1, W]."""
        return self.phi_one.to(density) @ density

    def coefficients(self, density: Tensor) -> Tensor:
        """Chebyshev coefficients [M, K, W] of S on the table's range, for `evaluate` at any u."""
        return self.series.to(density) @ density

    def evaluate(self, coefficients: Tensor, u: Tensor) -> Tensor:
        """S at u [M, B, W] by Clenshaw's recurrence (differentiable in both arguments)."""
        low, high = self.low.to(u)[:, None, None], self.high.to(u)[:, None, None]
        x = (2.0 * u - low - high) / (high - low)
        later, latest = torch.zeros_like(x), torch.zeros_like(x)
        for k in range(coefficients.shape[1] - 1, 0, -1):
            later, latest = latest, 2.0 * x * latest - later + coefficients[:, k : k + 1]
        return x * latest - later + coefficients[:, :1]

    def invert(self, coefficients: Tensor, density: Tensor, target: Tensor, steps: int = 5) -> Tensor:
        """u with S(u) = ``target`` [M, B, W]: bracketing on the table, then Newton with a fixed number of steps.

        The result is detached: one further Newton step with the attached metric gives it its exact first derivative.
        """
        with torch.no_grad():
            at_nodes = self.evaluate(coefficients, self.nodes.to(target)[:, :, None].expand_as(density).contiguous())
            order = at_nodes.mT.contiguous()  # ascending along T, as ρ > 0
            place = torch.searchsorted(order, target.mT.contiguous()).clamp(1, self.size - 1)
            left, right = order.gather(-1, place - 1), order.gather(-1, place)
            grid = self.nodes.to(target)[:, None].expand_as(order)
            a, b = grid.gather(-1, place - 1), grid.gather(-1, place)
            share = ((target.mT - left) / (right - left)).clamp(-4.0, 5.0)
            u = (a + share * (b - a)).mT
            slope = self.density_series.to(density) @ density
            low, high = self.low.to(u)[:, None, None], self.high.to(u)[:, None, None]
            for _ in range(steps):
                rho = self.evaluate(slope, u).clamp_min(1e-12)
                u = (u - (self.evaluate(coefficients, u) - target) / rho).clamp(low, high)
        return u


def _density_series(nodes: int, low: float, high: float) -> Tensor:
    """[T, T]: from values at the nodes to the Chebyshev coefficients of the interpolating polynomial on [low, high]."""
    x = (2.0 * chebyshev_nodes(nodes, low, high).double().numpy() - low - high) / (high - low)
    return torch.as_tensor(np.linalg.inv(np.polynomial.chebyshev.chebvander(x, nodes - 1)))


def _matrix(points: Tensor, nodes: int, low: float, high: float) -> Tensor:
    return integration_matrix(points, nodes, low, high).double()


def _series(nodes: int, low: float, high: float) -> Tensor:
    """[T + 1, T]: Chebyshev coefficients of the T antiderivatives Φ_t on [low, high]."""
    x = np.cos(np.pi * (np.arange(nodes + 1) + 0.5) / (nodes + 1))
    phi = _matrix(torch.as_tensor(0.5 * (low + high) + 0.5 * (high - low) * x), nodes, low, high).numpy()
    return torch.as_tensor(np.linalg.solve(np.polynomial.chebyshev.chebvander(x, nodes), phi))
