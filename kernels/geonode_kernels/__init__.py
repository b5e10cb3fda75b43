"""Fused kernels for geonode, each beside the pure torch function that specifies it.

Imports torch alone; Triton is looked for when a kernel is first asked for.
"""

from ._blocks import block_table, tune, use_table, use_tuned
from ._dispatch import KernelError, dispatch, paths_taken, triton_available, verify
from ._weights import MetricWeights
from .adamw import FlatAdamW
from .arc_length import arc_length
from .elementwise import bias_softplus, christoffel_fd, christoffel_grid
from .embedded_linear import embedded_linear
from .flow_quadrature import flow_loss, flow_loss_of_ends, flow_quadrature
from .geodesic_rk4 import geodesic_rk4, geodesic_rk4_jacobi
from .geodesic_shoot import Shot, geodesic_shoot
from .metric_christoffel import metric_christoffel, metric_density, metric_value
from .training import CapturedStep, default_flow_loss
from .velocity_flow import TableMatrices, path_points, velocity_flow_loss, velocity_loss

__all__ = [
    "CapturedStep",
    "FlatAdamW",
    "KernelError",
    "MetricWeights",
    "Shot",
    "TableMatrices",
    "arc_length",
    "bias_softplus",
    "block_table",
    "christoffel_fd",
    "christoffel_grid",
    "default_flow_loss",
    "dispatch",
    "embedded_linear",
    "flow_loss",
    "flow_loss_of_ends",
    "flow_quadrature",
    "geodesic_rk4",
    "geodesic_rk4_jacobi",
    "geodesic_shoot",
    "metric_christoffel",
    "metric_density",
    "metric_value",
    "path_points",
    "paths_taken",
    "triton_available",
    "tune",
    "use_table",
    "use_tuned",
    "velocity_flow_loss",
    "velocity_loss",
    "verify",
]
