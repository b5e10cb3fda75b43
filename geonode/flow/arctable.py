"""Arc length of the full metric in the warp coordinate, per wavelength, as a matrix product.

With ρ = √g̃ sampled at T Chebyshev nodes of the whole range that may be asked for (ρ [M, T, W]), the arc length from
u = −1 is S(u) = Φ(u)·ρ, where Φ_t(u) = ∫_{−1}^{u} ℓ_t integrates the cardinal polynomials: spectrally accurate, no
solver. Φ depends on the points alone. Outside the table's range nothing is extrapolated: the caller is told.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from geonode.errors import InputError
from geonode.geodesic.chebyshev import (
    chebyshev_nodes,
    chebyshev_polynomials,
    integral_of_series,
    series_from_values,
)
from geonode_kernels import arc_length, verify
from geonode_kernels._runtime import unrounded
from geonode_kernels.arc_length.reference import clenshaw


class ArcLengthTable(nn.Module):
    """Nodes and integration matrices of M models' ranges [low, high] ∋ −1, 1 (warp coordinate, dimensionless).

    Args:
        low, high: [M] float64, the range of each model's table; low ≤ −1 and high ≥ 1.
        nodes: T.

    Raises:
        InputError: a range that leaves out part of the calibrated range.
    """

    low: Tensor
    high: Tensor
    nodes: Tensor
    origin: Tensor
    phi_one: Tensor
    phi_nodes: Tensor
    series: Tensor
    density_series: Tensor

    def __init__(self, low: Tensor, high: Tensor, nodes: int = 64) -> None:
        super().__init__()
        if bool((low > -1).any()) or bool((high < 1).any()):
            raise InputError("An arc-length table must cover the calibrated range: low ≤ −1 and high ≥ 1.")
        self.size = nodes
        self.register_buffer("low", low.double())
        self.register_buffer("high", high.double())
        edges = zip(low.tolist(), high.tolist(), strict=True)
        self.register_buffer("nodes", torch.stack([chebyshev_nodes(nodes, a, b) for a, b in edges]))
        self.register_buffer("density_series", series_from_values(nodes))  # [T, T]: ρ at the nodes → its series
        self.register_buffer("series", integral_of_series(nodes) @ self.density_series)  # [T + 1, T]: → that of ∫ρ
        at = self._x(-torch.ones_like(self.low), self.low, self.high)[:, None]
        # where arc length begins: [M, 1, T + 1] polynomials there
        self.register_buffer("origin", chebyshev_polynomials(at, nodes + 1), persistent=False)
        self.register_buffer("phi_one", self.phi(torch.ones_like(self.low)[:, None]))
        self.register_buffer("phi_nodes", self.phi(self.nodes), persistent=False)

    def phi(self, points: Tensor, check: bool = True) -> Tensor:
        """Φ at ``points`` [M, P] → [M, P, T], in the dtype of the table (float64).

        Raises:
            InputError: a point outside the table (not looked for with ``check=False``, which never waits for a device).
        """
        if check:
            self.require_inside(points)
        low, high = self.low[:, None], self.high[:, None]
        basis = chebyshev_polynomials(self._x(points.to(low), low, high), self.size + 1)
        # one product for all would round by how many models there are, and by where each lies in memory
        product = torch.stack([rows.clone() @ self.series for rows in basis - self.origin])
        return (0.5 * (high - low))[..., None] * product

    def require_inside(self, points: Tensor) -> None:
        """Refuse ``points`` [M, P] that the table does not cover (waits for the device).

        Raises:
            InputError: a point outside the table.
        """
        if bool(((points < self.low[:, None] - 1e-6) | (points > self.high[:, None] + 1e-6)).any()):
            raise InputError(
                "A concentration lies outside the range this model was trained for; fit again with a larger margin."
            )

    @staticmethod
    def _x(points: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return (2.0 * points - low - high) / (high - low)

    def scaled(self, phi: Tensor, density: Tensor) -> Tensor:
        """ŝ [M, P, W] in [−1, 1] on the calibrated range, from Φ [M, P, T] and ρ [M, T, W] of one dtype."""
        if not phi.requires_grad and verify([phi, density]) is None:
            return arc_length(torch.cat([phi, self.phi_one.to(phi)], 1), density)
        with unrounded(phi):
            return 2.0 * (phi @ density) / self.length(density) - 1.0

    def length(self, density: Tensor) -> Tensor:
        """Arc length of the calibrated range, S(1) [M, 1, W]."""
        with unrounded(density):
            return self.phi_one.to(density) @ density

    def at_nodes(self, density: Tensor) -> Tensor:
        """S at the table's own nodes [M, T, W], ascending."""
        with unrounded(density):
            return self.phi_nodes.to(density) @ density

    def coefficients(self, density: Tensor) -> Tensor:
        """Chebyshev coefficients [M, T + 1, W] of S on the table's range, for `evaluate` at any u."""
        half = (0.5 * (self.high - self.low))[:, None, None].to(density)
        with unrounded(density):
            series = half * (_for_each(self.series, density) @ density)
            offset = self.origin.to(density) @ series  # S is measured from u = −1
        return torch.cat([series[:, :1] - offset, series[:, 1:]], 1)

    def density_coefficients(self, density: Tensor) -> Tensor:
        """Chebyshev coefficients [M, T, W] of ρ itself, for `evaluate`."""
        with unrounded(density):
            return _for_each(self.density_series, density) @ density

    def evaluate(self, coefficients: Tensor, u: Tensor) -> Tensor:
        """The series at u [M, B, W] (differentiable in both arguments)."""
        x = self._x(u, self.low.to(u)[:, None, None], self.high.to(u)[:, None, None])
        return clenshaw(coefficients.movedim(1, 0)[:, :, None], x)


def _for_each(matrix: Tensor, like: Tensor) -> Tensor:
    """A matrix that all models share, M times: torch would fold the models of a product with it into one."""
    return matrix.to(like).expand(len(like), -1, -1)
