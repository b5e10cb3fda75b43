"""Absorbance by a spectrometer with stray light: A_seen = −log₁₀((10^−A + s)/(1 + s)).

It levels off at log₁₀((1 + s)/s) (Skoog, Holler and Crouch, *Principles of Instrumental Analysis*, ch. 13B).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from geonode.corpus.kinds import DETECTION, Detection
from geonode.corpus.numbers import Numbers


@DETECTION.register("saturating")
class Saturating(Detection):
    """Largest absorbance 0.8 to 5; stray light 1e-4 to 0.05."""

    share = 0.12

    def detect(self, numbers: Numbers, density: Tensor, c: Tensor, x: Tensor) -> Tensor:
        return stray_light(density * numbers.log_uniform(0.8, 5.0, 1, 1), numbers.log_uniform(1e-4, 0.05, 1, 1))


def stray_light(absorbance: Tensor, stray: Tensor) -> Tensor:
    """What a spectrometer with a fraction of stray light shows for an absorbance."""
    seen = torch.exp(-math.log(10.0) * absorbance) + stray
    return -(torch.log(seen) - torch.log1p(stray)) / math.log(10.0)
