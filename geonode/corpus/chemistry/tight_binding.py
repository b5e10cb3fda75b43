"""Tight binding: the host takes nearly all of the guest until it is full: a broken line.

The same equilibrium as 1:1 binding with Kd far below the host: the mole-ratio (Yoe and Jones) or stoichiometric
titration, with the quadratic that Morrison (Biochim. Biophys. Acta 185 (1969) 269) gave for tight inhibitors.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import CHEMISTRY, Axis, Chemistry
from geonode.corpus.mass_action import bound_1_1
from geonode.corpus.numbers import Numbers


@CHEMISTRY.register("tight_binding")
class TightBinding(Chemistry):
    """Species H, HG and free G (visible in one assay of three). Host 0.1 to 1.5 of the top, Kd 1e-5 to 0.1 of host."""

    share = 0.05

    def amounts(self, numbers: Numbers, c: Tensor, axis: Axis) -> Tensor:
        host = numbers.log_uniform(0.1, 1.5)
        kd = host * numbers.log_uniform(1e-5, 0.1)
        visible = numbers.log_uniform(0.1, 1.0) * numbers.chance(0.33)
        bound = bound_1_1(host, c, kd)
        return torch.stack([1.0 - bound / host, bound / host, visible * (c - bound)], -1).clamp_min(0.0)
