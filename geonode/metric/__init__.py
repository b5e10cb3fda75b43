"""Riemannian metrics on concentration space."""

from geonode.metric.analytic import Euclidean, PoincareHalfPlane, PowerLaw, Sphere
from geonode.metric.base import Chart, Metric
from geonode.metric.network import (
    ConformalWarpMetric,
    ExponentialMetric,
    LogMetricNetwork,
    MetricNetwork,
    StackedMLP,
)
from geonode.metric.pullback import PullbackMetric
from geonode.metric.warp import WARPS, Warp, WarpMetric, scaled_warps

__all__ = [
    "WARPS",
    "Chart",
    "ConformalWarpMetric",
    "Euclidean",
    "ExponentialMetric",
    "LogMetricNetwork",
    "Metric",
    "MetricNetwork",
    "PoincareHalfPlane",
    "PowerLaw",
    "PullbackMetric",
    "Sphere",
    "StackedMLP",
    "Warp",
    "WarpMetric",
    "scaled_warps",
]
