"""Riemannian metrics on concentration space."""

from geonode.metric.analytic import Euclidean, PoincareHalfPlane, PowerLaw, Sphere
from geonode.metric.base import METRICS, Chart, Metric
from geonode.metric.conformal import ConformalWarpMetric
from geonode.metric.coordinate import as_log_metric
from geonode.metric.log import ExponentialMetric, FlatLogMetric, LogMetric
from geonode.metric.mlp import StackedMLP
from geonode.metric.network import LogMetricNetwork, MetricNetwork
from geonode.metric.pullback import PullbackMetric
from geonode.metric.warp import WARPS, Warp, WarpMetric, scaled_warps

__all__ = [
    "METRICS",
    "WARPS",
    "Chart",
    "ConformalWarpMetric",
    "Euclidean",
    "ExponentialMetric",
    "FlatLogMetric",
    "LogMetric",
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
    "as_log_metric",
    "scaled_warps",
]
