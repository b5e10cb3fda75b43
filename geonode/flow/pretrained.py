"""The flow that needs no training: a potential that pre-trained weights have read off the standards of one assay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

from geonode.errors import InputError
from geonode.flow.base import FLOWS, Flow, FlowPoint
from geonode_runtime.wording import argument

if TYPE_CHECKING:
    from geonode.flow.config import FlowConfig


@FLOWS.register("pretrained")
class PretrainedFlow(Flow):
    """dA/dt = ∂A/∂u · du/dt, with A(u, λ) a Chebyshev series on each stretch between neighbouring standards.

    What `geonode.prior.AssayFlow.flow` gives; ``geonode.fit`` makes one for the standards it is given. It depends on
    the ends of a path alone, and the path's metric is the one that was read off the standards beside it.

    Args:
        edges: [S + 1] ascending warp coordinates of the stretches' ends.
        series: [S, K, W] Chebyshev coefficients of A on each stretch.
    """

    path_independent = True
    needs_training = False
    uses_arc_length = False

    edges: Tensor
    series: Tensor
    slopes: Tensor

    def __init__(self, edges: Tensor, series: Tensor) -> None:
        super().__init__()
        half = 0.5 * edges.diff()[:, None, None]
        self.register_buffer("edges", edges)
        self.register_buffer("series", series)
        self.register_buffer("slopes", _derivative(series) / half)

    @classmethod
    def from_config(cls, config: FlowConfig, context: Mapping[str, Any]) -> Self:
        """Refused: there is nothing to start from but standards.

        Args:
            config, context: as for `Flow.from_config`.

        Raises:
            InputError: always.
        """
        raise InputError(
            "The pre-trained flow is read off standards, and here a flow is made to be trained; choose "
            f"{argument('flow', 'path_independent')}, or use geonode.fit."
        )

    def forward(self, point: FlowPoint) -> Tensor:
        """dA/dt [M, B, W]; beyond the outermost stretches the series goes on."""
        return self._evaluate(self.slopes, point.position, point.index) * point.velocity

    def spectra(self, position: Tensor, index: Tensor | None = None) -> Tensor:
        """A [..., W] at warp coordinates ``position`` [..., W], the wavelengths numbered by ``index`` (None: all)."""
        return self._evaluate(self.series, position, index)

    def _evaluate(self, series: Tensor, u: Tensor, index: Tensor | None) -> Tensor:
        """Each element of ``u [..., W]`` by the series of its own stretch and wavelength (Clenshaw's recursion)."""
        columns = torch.arange(series.shape[-1], device=u.device) if index is None else index
        edges = self.edges.to(u)
        stretch = torch.bucketize(u.detach(), edges[1:-1].contiguous())
        low, high = edges[stretch], edges[stretch + 1]
        z = (2.0 * u - low - high) / (high - low)
        after, following = torch.zeros_like(u), torch.zeros_like(u)
        for k in range(series.shape[1] - 1, 0, -1):
            after, following = series[stretch, k, columns].to(u) + 2.0 * z * after - following, after
        return series[stretch, 0, columns].to(u) + z * after - following


def _derivative(series: Tensor) -> Tensor:
    """Coefficients of the derivative of Chebyshev series [S, K, W] (the last is zero), by the recursion
    d_{k−1} = d_{k+1} + 2k a_k."""
    found = torch.zeros_like(series)
    for k in range(series.shape[1] - 1, 0, -1):
        ahead = found[:, k + 1] if k + 1 < series.shape[1] else 0.0
        found[:, k - 1] = ahead + 2.0 * k * series[:, k]
    found[:, 0] *= 0.5
    return found
