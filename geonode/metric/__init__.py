"""Riemannian metrics on concentration space."""

from geonode.metric.base import Metric
from geonode.metric.warp import WARPS, Warp, WarpMetric, scaled_warps

__all__ = ["WARPS", "Metric", "Warp", "WarpMetric", "scaled_warps"]
