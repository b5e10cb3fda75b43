"""Fluorescence with the primary inner filter effect: F ∝ emission × (1 − 10^−A)/(A ln 10).

A is the absorbance of the solution at the exciting wavelength; it grows with concentration, and bends the line
(Lakowicz, *Principles of Fluorescence Spectroscopy*, ch. 2; Kubista et al., Analyst 119 (1994) 417).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from geonode.corpus.kinds import DETECTION, Detection
from geonode.corpus.numbers import Numbers


@DETECTION.register("fluorescence")
class Fluorescence(Detection):
    """Absorbance at the highest level 1e-4 (no filter) to 2, in proportion to the concentration."""

    share = 0.60
    emission = True
    unit = (1.0, 1e5)

    def detect(self, numbers: Numbers, density: Tensor, c: Tensor, x: Tensor) -> Tensor:
        absorbance = numbers.log_uniform(1e-4, 2.0) * c.clamp_min(0.0)
        return density * inner_filter(absorbance)[..., None]


def inner_filter(absorbance: Tensor) -> Tensor:
    """(1 − 10^−A)/(A ln 10): mean exciting light along the cuvette, 1 at A = 0."""
    depth = (math.log(10.0) * absorbance).clamp_min(1e-6)
    return -torch.expm1(-depth) / depth
