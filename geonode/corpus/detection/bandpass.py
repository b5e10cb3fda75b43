"""Absorbance through a slit that is wide for the bands: A_seen = −log₁₀ ⟨10^−A⟩ over the band pass.

On the slopes of sharp bands the mean of the transmittance bends the line, at the tops it does not (Skoog, Holler and
Crouch, ch. 13B, polychromatic radiation): bands of one spectrum bend differently.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from geonode.corpus.kinds import DETECTION, Detection
from geonode.corpus.numbers import Numbers


@DETECTION.register("bandpass")
class Bandpass(Detection):
    """Largest absorbance 0.3 to 3; slit (σ) 0.002 to 0.03 of the window."""

    share = 0.06

    def detect(self, numbers: Numbers, density: Tensor, c: Tensor, x: Tensor) -> Tensor:
        absorbance = density * numbers.log_uniform(0.3, 3.0, 1, 1)
        slope = torch.nn.functional.pad(absorbance[..., 2:] - absorbance[..., :-2], (1, 1)) * (0.5 * len(x))
        return through_slit(absorbance, slope * numbers.log_uniform(2e-3, 0.03, 1, 1))


def through_slit(absorbance: Tensor, step: Tensor) -> Tensor:
    """Apparent absorbance where it changes by ``step`` over one standard deviation of the slit.

    Gauss and Hermite's three nodes (0 and ±√3, weights 2/3 and 1/6) of a slit over which A is a straight line.
    """
    rise = (math.log(10.0) * math.sqrt(3.0) * step).clamp(-20.0, 20.0)
    return absorbance - torch.log10((2.0 + torch.cosh(rise)) / 3.0)
