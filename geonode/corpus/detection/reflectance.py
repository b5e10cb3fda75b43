"""Diffuse reflectance: K/S = (1 − R)²/(2R) (Kubelka and Munk, Z. Tech. Phys. 12 (1931) 593), shown as R or log 1/R.

Test strips, powders, textiles: 1 + F − √(F² + 2F) is R for F = K/S.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import DETECTION, Detection
from geonode.corpus.numbers import Numbers


@DETECTION.register("reflectance")
class Reflectance(Detection):
    """Largest K/S 0.05 to 5, on a substrate of K/S 0.001 to 0.1; R in one half, log₁₀ 1/R in the other."""

    share = 0.05

    def detect(self, numbers: Numbers, density: Tensor, c: Tensor, x: Tensor) -> Tensor:
        ratio = density.clamp_min(0.0) * numbers.log_uniform(0.05, 5.0, 1, 1) + numbers.log_uniform(1e-3, 0.1, 1, 1)
        reflected = kubelka_munk(ratio)
        return torch.where(numbers.chance(0.5, 1, 1), reflected, -torch.log10(reflected))


def kubelka_munk(ratio: Tensor) -> Tensor:
    """Reflectance of an endless layer from K/S, written without cancellation: 1/(1 + F + √(F² + 2F))."""
    return 1.0 / (1.0 + ratio + torch.sqrt(ratio * (ratio + 2.0)))
