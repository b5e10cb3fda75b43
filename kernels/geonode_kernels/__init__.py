"""Fused kernels for geonode, each beside the pure torch function that specifies it.

Imports torch alone; Triton is looked for when a kernel is first asked for.
"""

from .flow_quadrature import flow_quadrature

__all__ = ["flow_quadrature"]
