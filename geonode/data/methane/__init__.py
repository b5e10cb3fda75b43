"""Methane in a laser absorption spectrometer: lines, absorption, the detector's trace, and large sets of them."""

from __future__ import annotations

from geonode.data.methane.absorption import absorbance, absorption_coefficient
from geonode.data.methane.lines import LineList, read_hitran, strong_lines
from geonode.data.methane.scans import ScanFile, ScanSet, load_scans, simulate_scans
from geonode.data.methane.spectrometer import Gas, Spectrometer

__all__ = [
    "Gas",
    "LineList",
    "ScanFile",
    "ScanSet",
    "Spectrometer",
    "absorbance",
    "absorption_coefficient",
    "load_scans",
    "read_hitran",
    "simulate_scans",
    "strong_lines",
]
