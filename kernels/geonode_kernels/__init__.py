"""Fused kernels for geonode, each beside the pure torch function that specifies it.

Imports torch alone; Triton is looked for when a kernel is first asked for.
"""

from ._blocks import block_table, tune, use_table, use_tuned
from ._runtime import KernelError, paths_taken, triton_available
from .adamw import FlatAdamW
from .arc_length import arc_length
from .embedded_linear import embedded_linear
from .flow_quadrature import flow_loss, flow_loss_of_ends, flow_quadrature
from .geodesic_rk4 import geodesic_rk4, geodesic_rk4_jacobi
from .metric_christoffel import metric_christoffel, metric_density, metric_value
from .training import CapturedStep, default_flow_loss

__all__ = [
    "CapturedStep",
    "FlatAdamW",
    "KernelError",
    "arc_length",
    "block_table",
    "default_flow_loss",
    "embedded_linear",
    "flow_loss",
    "flow_loss_of_ends",
    "flow_quadrature",
    "geodesic_rk4",
    "geodesic_rk4_jacobi",
    "metric_christoffel",
    "metric_density",
    "metric_value",
    "paths_taken",
    "triton_available",
    "tune",
    "use_table",
    "use_tuned",
]
