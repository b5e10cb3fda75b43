"""The full metric of the default flow, in user units of concentration."""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.metric.base import Chart, Metric
from geonode.metric.coordinate import as_log_metric
from geonode.metric.log import ExponentialMetric, LogMetric
from geonode.metric.warp import WarpMetric


class ConformalWarpMetric(Metric):
    """√g_λ(c) = √g_warp(c) · exp(½ m_θ(u(c), λ)) in user units of concentration (D = 1).

    The full metric of the default flow. ``chart`` exposes it in the warp coordinate, where it is the smooth
    g̃ = exp m_θ; the closed form integrates there.

    Args:
        warp: g_warp and the coordinate u(c).
        network: m_θ, or a `Metric` of the same geometry, which is converted.

    Raises:
        InputError: a metric of several analytes.
    """

    def __init__(self, warp: WarpMetric, network: LogMetric | Metric) -> None:
        super().__init__(dim=1)
        self.warp, self.network = warp, as_log_metric(network, warp)
        self.models = self.network.models if self.network.models is not None else warp.models

    @property
    def chart(self) -> Chart:
        """The warp coordinate, with g̃ = exp m_θ."""
        return Chart(
            self.warp.scaled, self.warp.from_scaled, self.warp.scaled_derivative, ExponentialMetric(self.network)
        )

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """g [...] in 1/(user unit)²."""
        return self.warp(c) * torch.exp(self.network(self.warp.scaled(c), wavelength))

    def value_and_derivative(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """g and ∂g/∂c by the chain rule: g = g_w e^m, g′ = (g_w′ + g_w m′ u′) e^m."""
        base, slope = self.warp.value_and_derivative(c)
        m, dm = self.network.value_and_derivative(self.warp.scaled(c), wavelength)
        factor = torch.exp(m)
        return base * factor, (slope + base * dm * self.warp.scaled_derivative(c)) * factor

    def in_domain(self, c: Tensor) -> Tensor:
        """See ``WarpMetric.in_domain``."""
        return self.warp.in_domain(c)

    def reference(self, like: Tensor) -> Tensor:
        """See ``WarpMetric.reference``."""
        return self.warp.reference(like)
