"""Levels crowded towards the low end without a constant factor, with a blank or without: 0, 5, 10, 20, 50, 300."""

from __future__ import annotations

from torch import Tensor

from geonode.corpus.designs.irregular import random_places
from geonode.corpus.designs.serial import with_blank
from geonode.corpus.kinds import DESIGNS, Design
from geonode.corpus.numbers import Numbers


@DESIGNS.register("crowded")
class Crowded(Design):
    """Random places in the logarithm, over 0.3 to 3.5 decades."""

    share = 0.13

    def levels(self, numbers: Numbers, n: int) -> Tensor:
        decades = numbers.log_uniform(0.3, 3.5)
        blank = numbers.chance(0.5)
        return with_blank(10.0 ** (decades * (random_places(numbers, n) - 1.0)), blank)
