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


_TOGETHER = 16_384
"""Of how many points, models and wavelengths included, nodes are evaluated together: few small tensors cost more calls
than numbers, and larger ones more memory than the cache has."""


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

    def points(self, nodes: int, arc_length: bool = True) -> Iterator[tuple[FlowPoint, tuple[float, ...]]]:
        """The points of all Gauss nodes with the nodes' weights, whose sum is one, the path's time.

        Where paths are few, K nodes are taken at once: the points are then those of K · B paths, node by node.

        Args:
            nodes: Q.
            arc_length: give ŝ and dŝ/dt.
        """
        (start, end), (positions, _) = self.ends.unbind(1), self.positions(nodes)
        change, (places, weights) = end - start, gauss_legendre(nodes)
        step = max(1, _TOGETHER // max(1, change.numel()))
        for first in range(0, nodes, step):
            few = slice(first, first + step)
            position, s_hat, speed = positions[:, few].flatten(1, 2), None, change.repeat(1, len(places[few]), 1)
            density = torch.exp(0.5 * self.ode.log_metric(position, self.index))
            if arc_length:
                s_hat = torch.cat([start + 0.5 * (1.0 + x) * change for x in places[few]], 1)
            point = FlowPoint(position, s_hat, self.half_range * speed / density, speed, self.index)
            yield point if arc_length else point._replace(speed=None), tuple(0.5 * w for w in weights[few])
