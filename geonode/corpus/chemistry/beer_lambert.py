"""Straight line: the amount is the concentration.

A = ε c l (Beer, Ann. Phys. 162 (1852) 78). The commonest calibration of all: dissolved dyes, metal aqua ions, drugs.
A second species in a fixed proportion (an impurity, a tautomer) leaves it a straight line.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import CHEMISTRY, Axis, Chemistry
from geonode.corpus.numbers import Numbers


@CHEMISTRY.register("beer_lambert")
class BeerLambert(Chemistry):
    """Amounts c and r c; r: 0, or 0.05 to 1 with probability 0.3."""

    share = 0.30

    def amounts(self, numbers: Numbers, c: Tensor, axis: Axis) -> Tensor:
        second = numbers.log_uniform(0.05, 1.0) * numbers.chance(0.3)
        return torch.stack([c, second * c], -1)
