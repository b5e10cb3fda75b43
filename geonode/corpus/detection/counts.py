"""Transmitted counts: I = I₀(λ) 10^−A + dark, the lamp's and the detector's own spectrum I₀ included."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from geonode.corpus.kinds import DETECTION, Detection
from geonode.corpus.numbers import Numbers


@DETECTION.register("counts")
class Counts(Detection):
    """Largest absorbance 0.2 to 2.5; lamp one hump of σ 0.2 to 1 with two weaker ones; 100 to 60 000 counts."""

    share = 0.08
    unit = (1e2, 6e4)

    def detect(self, numbers: Numbers, density: Tensor, c: Tensor, x: Tensor) -> Tensor:
        center, width = numbers.uniform(0.1, 0.9, 3, 1), numbers.log_uniform(0.2, 1.0, 3, 1)
        height = numbers.log_uniform(0.05, 0.6, 3, 1)
        first = torch.arange(3, device=x.device)[:, None] == 0
        lamp = torch.where(first, 1.0, height) * torch.exp(-0.5 * ((x - center) / width) ** 2)
        lamp = lamp.sum(1, keepdim=True)
        absorbance = density * numbers.log_uniform(0.2, 2.5, 1, 1)
        dark = numbers.log_uniform(1e-3, 0.05, 1, 1)
        return lamp * torch.exp(-math.log(10.0) * absorbance) + dark
