"""`FlowPath`: closed-form geodesics of a batch of pairs, at every wavelength, for quadrature and fused losses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from geonode.flow.base import FlowPoint
from geonode_kernels._gauss import gauss_legendre
from geonode_kernels.velocity_flow import path_points

if TYPE_CHECKING:
    from geonode.flow.ode import CoupledSpectralODE


class MetricOnTable(NamedTuple):
    """The metric of one step at every table node: ρ [M, T, W], and ln g̃ [M, T, W] for the losses."""

    density: Tensor
    log_metric: Tensor


class FlowPath:
    """B paths per model between ends that are given as arc length; what is not asked for is not computed.

    Along a path arc length is proportional to time, so ŝ is linear in t and nothing divides by zero where both ends
    are one.

    Args:
        ode: whose metric and table the paths follow.
        ends: gives ŝ [M, 2, B, W] at the starts and the ends.
        table: the metric at the table's nodes, for the wavelengths of ``index``.
        index: numbers of the wavelengths [W]; None for all.
        backend: of the kernels, ``auto``, ``triton`` or ``torch``.
    """

    def __init__(
        self,
        ode: CoupledSpectralODE,
        ends: Callable[[], Tensor],
        table: MetricOnTable,
        index: Tensor | None = None,
        backend: str = "auto",
    ) -> None:
        self.ode, self.table, self.index, self.backend = ode, table, index, backend
        self._make = ends
        self._ends: Tensor | None = None
        self._half_range: Tensor | None = None

    @property
    def ends(self) -> Tensor:
        """ŝ [M, 2, B, W] at the starts and the ends."""
        if self._ends is None:
            self._ends = self._make()
        return self._ends

    @property
    def half_range(self) -> Tensor:
        """Half the arc length of the calibrated range, S(1)/2 [M, 1, W]: ds/dŝ."""
        if self._half_range is None:
            self._half_range = 0.5 * self.ode.table.length(self.table.density)
        return self._half_range

    def positions(self, nodes: int) -> tuple[Tensor, Tensor]:
        """u and ρ = √g̃ there [M, Q, B, W] at the Gauss nodes, with their derivatives: one launch on a GPU."""
        table, fixed = self.ode.table, self.table.density.detach()
        return path_points(
            self.ends,
            self.half_range[:, 0],
            table.coefficients(self.table.density),
            table.density_coefficients(self.table.density),
            table.at_nodes(fixed),
            table.nodes,
            table.low,
            table.high,
            nodes,
            backend=self.backend,
        )

    def points(self, nodes: int, arc_length: bool = True) -> Iterator[tuple[FlowPoint, float]]:
        """Every Gauss node's point with its weight; the weights' sum is one, the path's time.

        Args:
            nodes: Q.
            arc_length: give ŝ and dŝ/dt.
        """
        start, end = self.ends[:, 0], self.ends[:, 1]
        half_range, (positions, _) = self.half_range, self.positions(nodes)
        for q, (x, weight) in enumerate(zip(*gauss_legendre(nodes), strict=True)):
            position = positions[:, q]
            density = torch.exp(0.5 * self.ode.log_metric(position, self.index))
            velocity = half_range * (end - start) / density
            s_hat = start + 0.5 * (1.0 + x) * (end - start) if arc_length else None
            speed = end - start if arc_length else None
            yield FlowPoint(position, s_hat, velocity, speed, self.index), 0.5 * weight
