"""Irregular levels, such as come of weighing: gaps of any size, on any axis."""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import DESIGNS, Design
from geonode.corpus.numbers import Numbers


@DESIGNS.register("irregular")
class Irregular(Design):
    """Gaps are 0.15 plus an exponential number, as of random places that are kept apart."""

    share = 0.10
    spans = True

    def levels(self, numbers: Numbers, n: int) -> Tensor:
        return random_places(numbers, n)


def random_places(numbers: Numbers, n: int) -> Tensor:
    """Ascending [b, n] from 0 to 1 with random gaps, none smaller than about a tenth of their mean."""
    gap = 0.15 - torch.log(numbers.uniform(0.0, 1.0, n - 1))
    place = torch.cat([torch.zeros_like(gap[:, :1]), gap.cumsum(-1)], -1)
    return place / place[:, -1:]
