"""A second phase from a critical concentration on: micelles, precipitates, droplets.

Below the limit all is dissolved, above it the rest is in the other phase (pseudo-phase model of micelles: Shinoda 1963;
solubility products). Small aggregates round the corner off: dissolved = c (1 + (c/s)^p)^(−1/p).
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import CHEMISTRY, Axis, Chemistry
from geonode.corpus.numbers import Numbers


@CHEMISTRY.register("solubility")
class Solubility(Chemistry):
    """Dissolved, and in the other phase, relative to the highest level; limit 0.05 to 0.9; p 3 to 30."""

    share = 0.025

    def amounts(self, numbers: Numbers, c: Tensor, axis: Axis) -> Tensor:
        low = torch.log((2.0 * axis.first).clamp_max(0.5))
        limit = torch.exp(low * numbers.uniform(0.0, 1.0) - 0.1)
        dissolved = rounded_minimum(c, limit, numbers.log_uniform(3.0, 30.0))
        return torch.stack([dissolved, (c - dissolved).clamp_min(0.0)], -1)


def rounded_minimum(c: Tensor, limit: Tensor, power: Tensor) -> Tensor:
    """min(c, limit) with its corner rounded off: c (1 + (c/limit)^p)^(−1/p), in logarithms, without overflow."""
    ratio = torch.log(c.clamp_min(1e-12) / limit)
    return c * torch.exp(-torch.nn.functional.softplus(power * ratio) / power)
