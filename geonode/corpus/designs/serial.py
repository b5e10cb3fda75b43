"""Serial dilution by a constant factor, with a blank or without: 1/128 … 1/2, 1; half-decades; decades.

Its preparation errors add up from the top down (`errors/serial`).
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import DESIGNS, Design
from geonode.corpus.numbers import Numbers


@DESIGNS.register("serial")
class Serial(Design):
    """Factor 2 (half), 3, √10 or 10, at most four decades in all; a blank in one of two."""

    share = 0.22
    serial = True

    def levels(self, numbers: Numbers, n: int) -> Tensor:
        kind = numbers.choice((0.5, 0.15, 0.2, 0.15))
        log = torch.where(kind == 0, 0.30103, torch.where(kind == 1, 0.47712, torch.where(kind == 2, 0.5, 1.0)))
        log = log.clamp(max=4.0 / (n - 1)).to(numbers.dtype)
        down = torch.arange(n - 1, -1, -1, device=numbers.device, dtype=numbers.dtype)
        return with_blank(10.0 ** (-log * down), numbers.chance(0.5))


def with_blank(levels: Tensor, blank: Tensor) -> Tensor:
    """The lowest level replaced by 0 where ``blank`` [b, 1] says so."""
    first = torch.arange(levels.shape[1], device=levels.device) == 0
    return torch.where(first & blank, 0.0, levels)
