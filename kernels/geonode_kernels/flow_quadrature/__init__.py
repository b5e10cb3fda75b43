"""Flow quadrature: the change of absorbance along a geodesic for a flow that sees arc length and wavelength."""

from .reference import flow_quadrature

__all__ = ["flow_quadrature"]
