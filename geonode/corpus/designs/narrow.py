"""A narrow range far from zero: 80, 85, 90 … 100 % of a content, as in quality control."""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.designs.irregular import random_places
from geonode.corpus.kinds import DESIGNS, Design
from geonode.corpus.numbers import Numbers


@DESIGNS.register("narrow")
class Narrow(Design):
    """Lowest level 0.3 to 0.9 of the highest; even or irregular."""

    share = 0.07

    def levels(self, numbers: Numbers, n: int) -> Tensor:
        lowest = numbers.uniform(0.3, 0.9)
        even = torch.arange(n, device=numbers.device, dtype=numbers.dtype) / (n - 1)
        place = torch.where(numbers.chance(0.6), even, random_places(numbers, n))
        return lowest + (1.0 - lowest) * place
