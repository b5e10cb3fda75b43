"""Why a spectrum lies off the curve of the standards: where, by how much, and which simple cause fits best."""

from __future__ import annotations

from geonode.calibration.causes import kinds as kinds  # registers them
from geonode.calibration.causes.explanation import Explanation, Stretch, explain
from geonode.calibration.causes.registry import CAUSES, Cause

__all__ = ["CAUSES", "Cause", "Explanation", "Stretch", "explain"]
