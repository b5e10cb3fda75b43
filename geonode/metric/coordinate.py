"""A `Metric` where its logarithm in the warp coordinate is needed: converted, or refused in a sentence."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from geonode.errors import InputError
from geonode.metric.base import Metric
from geonode.metric.log import LogMetric
from geonode.metric.warp import WarpMetric
from geonode_kernels import MetricWeights


class LogarithmOf(LogMetric):
    """ln g of a metric that is a function of the warp coordinate already.

    Args:
        metric: of one analyte, ``in_warp_coordinate``.
    """

    def __init__(self, metric: Metric) -> None:
        super().__init__()
        self.metric, self.models = metric, metric.models

    def forward(self, u: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """ln g [...]."""
        return self.metric.logarithm(u, wavelength)

    def value_and_derivative(self, u: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """ln g and its slope in u, both [...]."""
        return self.metric.logarithm_and_slope(u, wavelength)


class InWarpCoordinate(LogMetric):
    """A metric g(c, λ) on concentration, seen in the warp coordinate: ln g̃(u) = ln g(c(u)) − 2 ln du/dc.

    The geometry is the metric's own: lengths and geodesics do not depend on the warp, which only says where the
    calibrated range begins and ends.

    Args:
        metric: of one analyte, in user units of concentration; it is given scaled wavelengths.
        warp: the coordinate.
    """

    def __init__(self, metric: Metric, warp: WarpMetric) -> None:
        super().__init__()
        self.metric, self.warp, self.models = metric, warp, warp.models

    def forward(self, u: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """ln g̃ [...]."""
        c = self.warp.from_scaled(u.double())
        value = self.metric(c, None if wavelength is None else wavelength.to(c)).log() - self.warp(c).log()
        return value.to(u.dtype)

    def value_and_derivative(self, u: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """ln g̃ and its slope (g′/g − 2 u″/u′)/u′, both [...]."""
        c = self.warp.from_scaled(u.double())
        g, dg = self.metric.value_and_derivative(c, None if wavelength is None else wavelength.to(c))
        base, slope = self.warp.value_and_derivative(c)
        value = g.log() - base.log()
        return value.to(u.dtype), ((dg / g - slope / base) / base.sqrt()).to(u.dtype)

    def kernel_weights(self) -> MetricWeights | str:
        """See `LogMetric.kernel_weights`."""
        return f"{type(self.metric).__name__} is a formula in concentration, and kernels hold networks"


class WarpCoordinateMetric(Metric):
    """g̃(u, λ) of a coupled ODE as a `Metric` (D = 1): what shooting sees. Shares the networks' parameters.

    Positions and scaled wavelengths [M, ...].

    Args:
        metric: of the ODE.
        models: M.
    """

    in_warp_coordinate = True

    def __init__(self, metric: Metric | LogMetric, models: int) -> None:
        super().__init__(dim=1)
        self.network, self.models, self._stack = metric, models, models

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """g̃ [M, ...]."""
        return self.logarithm(c, wavelength).exp()

    def value_and_derivative(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """g̃ and ∂g̃/∂u [M, ...]."""
        log_metric, slope = self.logarithm_and_slope(c, wavelength)
        value = log_metric.exp()
        return value, value * slope

    def logarithm(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """ln g̃ [M, ...]."""
        u, rows = self._rows(c, wavelength)
        return self.network.logarithm(*rows).reshape(u.shape)

    def logarithm_and_slope(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """ln g̃ and its slope [M, ...]."""
        u, rows = self._rows(c, wavelength)
        value, slope = self.network.logarithm_and_slope(*rows)
        return value.reshape(u.shape), slope.reshape(u.shape)

    def kernel_weights(self) -> MetricWeights | str:
        """See `Metric.kernel_weights`: those of the network."""
        return self.network.kernel_weights()

    def _rows(self, u: Tensor, wavelength: Tensor | None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """u and the wavelength broadcast against each other, and as rows [M, points]."""
        if wavelength is None:
            raise InputError("This metric depends on the wavelength; pass wavelength=, scaled to [−1, 1].")
        if u.shape != wavelength.shape:
            shape = torch.broadcast_shapes(u.shape, wavelength.shape)
            u, wavelength = u.expand(shape), wavelength.expand(shape)
        return u, (u.reshape(self._stack, -1), wavelength.reshape(self._stack, -1))


def as_log_metric(metric: Any, warp: WarpMetric) -> LogMetric:
    """``metric`` as a `LogMetric`: itself, or converted from a `Metric`.

    Args:
        metric: a `LogMetric`, or a `Metric` of one analyte.
        warp: the warp coordinate that is asked for.

    Raises:
        InputError: neither, or a metric of several analytes.
    """
    if isinstance(metric, LogMetric):
        return metric
    if not isinstance(metric, Metric):
        raise InputError(f"A metric must be a Metric or a LogMetric of geonode.metric; got {type(metric).__name__}.")
    if metric.dim != 1:
        raise InputError(
            f"{type(metric).__name__} is a metric of {metric.dim} analytes, and a warp coordinate belongs to one; "
            "give a metric with dim=1."
        )
    return LogarithmOf(metric) if metric.in_warp_coordinate else InWarpCoordinate(metric, warp)


def require_finite(metric: LogMetric | Metric, u: Tensor, wavelength: Tensor) -> None:
    """Refuse a metric that has no value somewhere in the served range.

    Args:
        metric: asked at ``u``.
        u: [M, P] warp coordinates.
        wavelength: [W] scaled.

    Raises:
        InputError: it is not a finite number there.
    """
    shape = (*u.shape, len(wavelength))
    with torch.no_grad():
        flat = u[..., None].expand(shape).reshape(len(u), -1), wavelength.to(u).expand(shape).reshape(len(u), -1)
        finite = torch.isfinite(metric.logarithm(*flat))
        if isinstance(metric, InWarpCoordinate):
            finite &= metric.metric.in_domain(metric.warp.from_scaled(flat[0].double()))
    if not bool(finite.all()):
        raise InputError(
            f"The metric {type(getattr(metric, 'metric', metric)).__name__} is not a positive number everywhere in the "
            "range to be served; give one that is, leave out the standards where it is not, or set a smaller margin."
        )
