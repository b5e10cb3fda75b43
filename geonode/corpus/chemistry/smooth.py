"""A smooth response without a name: random functions along a random warp of the concentration.

Random Fourier features of a squared-exponential process (Rahimi and Recht 2007), of correlation length 0.3 to 3 in the
warp φ(c) = c, log(1 + c/k), c/(c + k) or √c. It stands for mechanisms that no file here writes down.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from geonode.corpus.kinds import CHEMISTRY, Axis, Chemistry
from geonode.corpus.numbers import Numbers

_TERMS = 8


@CHEMISTRY.register("smooth")
class Smooth(Chemistry):
    """Two species, each between 0 and 1 by a sigmoid of its process; no law ties them."""

    share = 0.12

    def amounts(self, numbers: Numbers, c: Tensor, axis: Axis) -> Tensor:
        k = numbers.log_uniform(0.01, 3.0)
        log, hyperbola = torch.log1p(c / k) / torch.log1p(1.0 / k), c / (c + k) * (1.0 + k)
        kind = numbers.choice((0.3, 0.35, 0.2, 0.15))
        warp = torch.where(kind == 0, c, torch.where(kind == 1, log, torch.where(kind == 2, hyperbola, c.sqrt())))
        length = numbers.log_uniform(0.3, 3.0, 2, 1)[:, None]
        angle = warp[:, :, None, None] * numbers.normal(2, _TERMS)[:, None] / length
        phase = numbers.uniform(0.0, 2.0 * math.pi, 2, _TERMS)[:, None]
        process = math.sqrt(2.0 / _TERMS) * torch.cos(angle + phase).sum(-1)
        return torch.sigmoid(1.5 * process)
