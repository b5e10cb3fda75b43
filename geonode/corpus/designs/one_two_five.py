"""1, 2, 5, 10, 20, 50 …: round numbers over several decades, with a blank or without."""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.designs.serial import with_blank
from geonode.corpus.kinds import DESIGNS, Design
from geonode.corpus.numbers import Numbers


@DESIGNS.register("one_two_five")
class OneTwoFive(Design):
    """The series ends at 1, 2 or 5; at most four decades, beyond which levels are put between."""

    share = 0.08

    def levels(self, numbers: Numbers, n: int) -> Tensor:
        down = torch.arange(n - 1, -1, -1, device=numbers.device) * min(1.0, 12 / (n - 1))
        place = down + numbers.choice((1.0, 1.0, 1.0))
        third, rest = torch.div(place, 3, rounding_mode="floor"), torch.remainder(place, 3)
        # 10^−third × (1, 0.5, 0.2), straight between where levels are put between
        within = torch.where(rest < 1, 1.0 - 0.5 * rest, torch.where(rest < 2, 0.8 - 0.3 * rest, 0.4 - 0.1 * rest))
        levels = (within * 10.0**-third).to(numbers.dtype)
        return with_blank(levels / levels[:, -1:], numbers.chance(0.5))
