"""A smooth response without a name: random functions along a random warp of the concentration.

Draws of a squared-exponential process of correlation length 0.3 to 3 in the warp φ(c) = c, log(1 + c/k), c/(c + k) or
√c (`geonode.corpus.functions`). It stands for mechanisms that no file here writes down.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.functions import random_functions
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
        return torch.sigmoid(1.5 * random_functions(numbers, warp, 2, _TERMS, 0.3, 3.0))
