"""Geodesics: the exponential map, shooting, and the closed form for one analyte."""

from geonode.geodesic.arclength import arc_length_geodesic
from geonode.geodesic.chebyshev import chebyshev_nodes, integration_matrix
from geonode.geodesic.ivp import ADAPTIVE, STEPPERS, RungeKutta, exponential_map
from geonode.geodesic.shooting import shoot
from geonode.geodesic.solution import GeodesicSolution, Status

__all__ = [
    "ADAPTIVE",
    "STEPPERS",
    "GeodesicSolution",
    "RungeKutta",
    "Status",
    "arc_length_geodesic",
    "chebyshev_nodes",
    "exponential_map",
    "integration_matrix",
    "shoot",
]
