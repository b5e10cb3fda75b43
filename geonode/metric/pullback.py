"""The metric a spectral map induces on concentration space: how fast the spectrum moves there."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement

import torch
from torch import Tensor

from geonode.errors import InputError
from geonode.metric.base import Metric, tangent_of


class PullbackMetric(Metric):
    """g = Jᵀ P J + floor·I with J = ∂A/∂c, the pull-back of the metric P of spectrum space by the map A(c).

    With P the inverse noise covariance, g is the Fisher information of the assay and 1/√g one standard deviation of
    concentration. Lengths are changes of the spectrum, so c moves fast where the assay is blind; ``floor`` keeps the
    metric positive definite where the map is stationary.

    Args:
        spectral_map: ``A(c)`` with c [...] (D = 1) or [..., D] → [..., K], made of differentiable torch operations; a
            module's parameters become parameters of the metric. Called as ``A(c, wavelength)`` if ``uses_wavelength``.
        dim: number of analytes D.
        precision: weights on the K channels, [K] (a diagonal P) or [K, K]; None for ones.
        floor: added to the diagonal, ≥ 0.
        uses_wavelength: hand the wavelength on to the map.

    Raises:
        InputError: a negative floor, or a precision that is not [K] or [K, K].
    """

    precision: Tensor | None

    def __init__(
        self,
        spectral_map: Callable[..., Tensor],
        dim: int = 1,
        precision: Tensor | None = None,
        floor: float = 0.0,
        uses_wavelength: bool = False,
    ) -> None:
        super().__init__(dim)
        if floor < 0:
            raise InputError(f"floor must not be negative, got {floor}.")
        if precision is not None and (precision.ndim not in (1, 2) or precision.shape[0] != precision.shape[-1]):
            raise InputError(f"precision must be [K] or [K, K], got {tuple(precision.shape)}.")
        self.spectral_map = spectral_map
        self.floor, self.uses_wavelength = float(floor), uses_wavelength
        self.register_buffer("precision", precision)

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """g [...] or [..., D, D]; derivatives of the map by one forward-mode tangent per analyte."""
        slopes = self._derivatives(c, wavelength, 1)
        return self._finish(
            [[self._dot(slopes[i,], slopes[j,]) for j in self._axes] for i in self._axes], c, wavelength
        )

    def value_and_derivative(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """g and ∂_k g_ij = ⟨∂_k∂_i A, ∂_j A⟩ + ⟨∂_i A, ∂_k∂_j A⟩: second derivatives of the map, each once."""
        first, second = (self._derivatives(c, wavelength, order) for order in (1, 2))
        g = [[self._dot(first[i,], first[j,]) for j in self._axes] for i in self._axes]
        dg = [self._slope(first, second, k, c, wavelength) for k in self._axes]
        return self._finish(g, c, wavelength), dg[0] if self.dim == 1 else torch.stack(dg, -3)

    def two_derivatives(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """g, ∂g and ∂_l∂_k g_ij from third derivatives of the map."""
        first, second, third = (self._derivatives(c, wavelength, order) for order in (1, 2, 3))
        g = [[self._dot(first[i,], first[j,]) for j in self._axes] for i in self._axes]
        dg = [self._slope(first, second, k, c, wavelength) for k in self._axes]

        def bend(m: int, k: int) -> Tensor:
            half = [
                [
                    self._dot(third[_sorted(m, k, i)], first[j,])
                    + self._dot(second[_sorted(k, i)], second[_sorted(m, j)])
                    for j in self._axes
                ]
                for i in self._axes
            ]
            return self._symmetric(half, c, wavelength)

        d2g = [[bend(m, k) for k in self._axes] for m in self._axes]
        g = self._finish(g, c, wavelength)
        if self.dim == 1:
            return g, dg[0], d2g[0][0]
        return g, torch.stack(dg, -3), torch.stack([torch.stack(row, -3) for row in d2g], -4)

    @property
    def _axes(self) -> range:
        return range(self.dim)

    def _derivatives(self, c: Tensor, wavelength: Tensor | None, order: int) -> dict[tuple[int, ...], Tensor]:
        """Partial derivatives of the map [..., K] by nested forward mode, keyed by their sorted coordinates."""
        self.check(c)
        extra = (wavelength,) if self.uses_wavelength else ()
        eye = torch.eye(self.dim, dtype=c.dtype, device=c.device)
        tangents = [torch.ones_like(c)] if self.dim == 1 else [torch.zeros_like(c) + axis for axis in eye]

        def differentiate(function: Callable[[Tensor], Tensor], axis: int) -> Callable[[Tensor], Tensor]:
            return lambda x: tangent_of(function, x, tangents[axis])[1]

        found = {}
        for axes in combinations_with_replacement(self._axes, order):
            function: Callable[[Tensor], Tensor] = lambda x: self.spectral_map(x, *extra)  # noqa: E731
            for axis in axes:
                function = differentiate(function, axis)
            found[axes] = function(c)
        return found

    def _dot(self, p: Tensor, q: Tensor) -> Tensor:
        """⟨p, q⟩ in spectrum space; sums instead of matrix products, which autocast would round."""
        if self.precision is None:
            return (p * q).sum(-1)
        weights = self.precision.to(p)
        return (
            (p * weights * q).sum(-1)
            if weights.ndim == 1
            else (p.unsqueeze(-2) * weights * q.unsqueeze(-1)).sum((-2, -1))
        )

    def _slope(self, first: dict, second: dict, k: int, c: Tensor, wavelength: Tensor | None) -> Tensor:
        half = [[self._dot(second[_sorted(k, i)], first[j,]) for j in self._axes] for i in self._axes]
        return self._symmetric(half, c, wavelength)

    def _symmetric(self, half: list[list[Tensor]], c: Tensor, wavelength: Tensor | None) -> Tensor:
        rows = [[half[i][j] + half[j][i] for j in self._axes] for i in self._axes]
        return self._finish(rows, c, wavelength, floor=0.0)

    def _finish(
        self, rows: list[list[Tensor]], c: Tensor, wavelength: Tensor | None, floor: float | None = None
    ) -> Tensor:
        """The matrix [..., D, D] of ``rows`` ([...] for D = 1), with the floor, expanded to the wavelength."""
        g = torch.stack([torch.stack(row, -1) for row in rows], -2)
        floor = self.floor if floor is None else floor
        if floor:
            g = g + floor * torch.eye(self.dim, dtype=g.dtype, device=g.device)
        if wavelength is not None and not self.uses_wavelength:
            batch = c.shape if self.dim == 1 else c.shape[:-1]
            g = g.expand(*torch.broadcast_shapes(batch, wavelength.shape), self.dim, self.dim)
        return g[..., 0, 0] if self.dim == 1 else g


def _sorted(*axes: int) -> tuple[int, ...]:
    return tuple(sorted(axes))
