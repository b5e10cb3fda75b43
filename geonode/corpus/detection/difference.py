"""Difference spectra: absorbance against a reference that holds a part of what is seen, so that it may be negative.

The reference is the sample at the lowest concentration of the calibration, or near it: a blank subtracted, a dual beam
with the starting solution behind.
"""

from __future__ import annotations

from torch import Tensor

from geonode.corpus.kinds import DETECTION, Detection
from geonode.corpus.numbers import Numbers


@DETECTION.register("difference")
class Difference(Detection):
    """Absorbance of up to 0.03 to 2.5, less that of the lowest standard (which is the first sample)."""

    share = 0.06

    def detect(self, numbers: Numbers, density: Tensor, c: Tensor, x: Tensor) -> Tensor:
        return (density - density[:, :1]) * numbers.log_normal(0.7, 0.7, 1, 1).clamp(0.03, 2.5)
