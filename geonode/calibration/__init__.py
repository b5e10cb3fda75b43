"""Spectra from concentration and concentration from spectra, with their uncertainty.

The estimator and the splitter load on first use: they bring scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from geonode.calibration.budget import UncertaintyBudget, uncertainty_budget
from geonode.calibration.calibration import Calibration
from geonode.calibration.geodesic_gp import GeodesicGP, GPPrediction
from geonode.calibration.quality import QualityCheck, quality_check
from geonode.calibration.quantify import VERDICTS, Quantification
from geonode.calibration.resolution import ambiguity_map, detection_limits, resolution
from geonode.calibration.standards import check_standards
from geonode.calibration.suggest import suggest_standard
from geonode.calibration.univariate import single_wavelength, straight_line, wavelength_ratio

if TYPE_CHECKING:
    from geonode.calibration.estimator import GeodesicCalibrator, LeaveOneConcentrationOut

__all__ = [
    "VERDICTS",
    "Calibration",
    "GPPrediction",
    "GeodesicCalibrator",
    "GeodesicGP",
    "LeaveOneConcentrationOut",
    "QualityCheck",
    "Quantification",
    "UncertaintyBudget",
    "ambiguity_map",
    "check_standards",
    "detection_limits",
    "quality_check",
    "resolution",
    "single_wavelength",
    "straight_line",
    "suggest_standard",
    "uncertainty_budget",
    "wavelength_ratio",
]


def __getattr__(name: str) -> Any:
    if name in ("GeodesicCalibrator", "LeaveOneConcentrationOut"):
        from geonode.calibration import estimator

        return getattr(estimator, name)
    raise AttributeError(f"module 'geonode.calibration' has no attribute {name!r}")
