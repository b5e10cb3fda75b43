"""Spectra from concentration and concentration from spectra, with their uncertainty.

The public names load on first use (PEP 562): the estimator brings scikit-learn, and most callers want one room only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from geonode._bootstrap import lazily

# Public name → the module that defines it, relative to this package or absolute.
_PUBLIC = {
    "Calibration": ".calibration",
    "GPPrediction": ".gp.prediction",
    "GeodesicCalibrator": ".estimator",
    "GeodesicGP": ".gp.geodesic_gp",
    "LeaveOneConcentrationOut": ".leave_out",
    "QualityCheck": ".assessment.quality",
    "Quantification": "geonode_runtime.verdicts",
    "UncertaintyBudget": ".design.budget",
    "VERDICTS": "geonode_runtime.verdicts",
    "ambiguity_map": ".design.resolution",
    "check_standards": ".assessment.standards_check",
    "detection_limits": ".design.resolution",
    "quality_check": ".assessment.quality",
    "resolution": ".design.resolution",
    "single_wavelength": ".baselines.univariate",
    "straight_line": ".baselines.univariate",
    "suggest_standard": ".design.suggest",
    "uncertainty_budget": ".design.budget",
    "wavelength_ratio": ".baselines.univariate",
}

if TYPE_CHECKING:
    from geonode.calibration.assessment.quality import QualityCheck, quality_check
    from geonode.calibration.assessment.standards_check import check_standards
    from geonode.calibration.baselines.univariate import single_wavelength, straight_line, wavelength_ratio
    from geonode.calibration.calibration import Calibration
    from geonode.calibration.design.budget import UncertaintyBudget, uncertainty_budget
    from geonode.calibration.design.resolution import ambiguity_map, detection_limits, resolution
    from geonode.calibration.design.suggest import suggest_standard
    from geonode.calibration.estimator import GeodesicCalibrator
    from geonode.calibration.gp.geodesic_gp import GeodesicGP
    from geonode.calibration.gp.prediction import GPPrediction
    from geonode.calibration.leave_out import LeaveOneConcentrationOut
    from geonode_runtime.verdicts import VERDICTS, Quantification

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


__getattr__, __dir__ = lazily(__name__, _PUBLIC)
