"""Evenly spaced levels over the whole of an axis: 0, 20, 40 … or pH 4.0, 4.5, 5.0 …"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import DESIGNS, Design
from geonode.corpus.numbers import Numbers


@DESIGNS.register("even")
class Even(Design):
    """From the low end of the axis to its high end in equal steps."""

    share = 0.22
    spans = True

    def levels(self, numbers: Numbers, n: int) -> Tensor:
        step = torch.arange(n, device=numbers.device, dtype=numbers.dtype) / (n - 1)
        return step.expand(numbers.rows, n)
