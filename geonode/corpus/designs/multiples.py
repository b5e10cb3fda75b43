"""Multiples of one step without a blank: 1, 2, 3 … or 10, 20, 30 …"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import DESIGNS, Design
from geonode.corpus.numbers import Numbers


@DESIGNS.register("multiples")
class Multiples(Design):
    """1/n, 2/n … 1."""

    share = 0.18

    def levels(self, numbers: Numbers, n: int) -> Tensor:
        step = torch.arange(1, n + 1, device=numbers.device, dtype=numbers.dtype) / n
        return step.expand(numbers.rows, n)
