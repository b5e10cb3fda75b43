"""Fused kernels for geonode, each beside the pure torch function that specifies it.

Imports torch alone; Triton is looked for when a kernel is first asked for.
"""

from ._dispatch import KernelError, dispatch, paths_taken, triton_available, verify
from ._weights import FlowUnits, MetricWeights
from .adamw import FlatAdamW
from .arc_length import arc_length
from .coupled_rk4 import coupled_rk4, coupled_shot
from .elementwise import christoffel_fd, christoffel_grid
from .flow_quadrature import flow_loss_of_ends, flow_quadrature
from .geodesic_rk4 import geodesic_rk4, geodesic_states
from .geodesic_shoot import Shot, geodesic_shoot
from .metric_christoffel import metric_christoffel, metric_density, metric_value
from .training import CapturedStep
from .velocity_flow import path_points, velocity_loss

__all__ = [
    "CapturedStep",
    "FlatAdamW",
    "FlowUnits",
    "KernelError",
    "MetricWeights",
    "Shot",
    "arc_length",
    "christoffel_fd",
    "christoffel_grid",
    "coupled_rk4",
    "coupled_shot",
    "dispatch",
    "flow_loss_of_ends",
    "flow_quadrature",
    "geodesic_rk4",
    "geodesic_shoot",
    "geodesic_states",
    "metric_christoffel",
    "metric_density",
    "metric_value",
    "path_points",
    "paths_taken",
    "triton_available",
    "velocity_loss",
    "verify",
]
