"""Geodesics for D = 1 in closed form: one quadrature, no shooting."""

from __future__ import annotations

from geonode.geodesic.chebyshev import chebyshev_nodes, integration_matrix

__all__ = ["chebyshev_nodes", "integration_matrix"]
