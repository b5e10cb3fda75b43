"""Exponential approach: bleaching, a slow reaction stopped after a fixed time, an enzyme's dose.

P = 1 − e^{−kc}, or two such steps side by side in proportion (Espenson, *Chemical Kinetics*, 1995, ch. 2).
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import CHEMISTRY, Axis, Chemistry
from geonode.corpus.numbers import Numbers


@CHEMISTRY.register("kinetic")
class Kinetic(Chemistry):
    """What is left and what has formed, which sum to one; k 0.3 to 20 over the top, a slower part in one of three."""

    share = 0.04

    def amounts(self, numbers: Numbers, c: Tensor, axis: Axis) -> Tensor:
        fast = numbers.log_uniform(0.3, 20.0)
        slow = fast * numbers.log_uniform(0.02, 0.5)
        part = numbers.uniform(0.1, 0.6) * numbers.chance(0.33)
        left = (1.0 - part) * torch.exp(-fast * c) + part * torch.exp(-slow * c)
        return torch.stack([left, 1.0 - left], -1)
