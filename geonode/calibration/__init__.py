"""Spectra from concentration and concentration from spectra, with their uncertainty."""

from geonode.calibration.geodesic_gp import GeodesicGP, GPPrediction

__all__ = ["GPPrediction", "GeodesicGP"]
