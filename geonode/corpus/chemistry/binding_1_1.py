"""1:1 binding: H + G ⇌ HG, the host dilute beside its dissociation constant: a hyperbola.

[HG]/[H]ₜ = [G]/(Kd + [G]) with mass balance of both (Connors, *Binding Constants*, Wiley 1987, ch. 3). Sensors of
ions, dyes with cyclodextrins, fluorescent proteins that chloride quenches.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import CHEMISTRY, Axis, Chemistry
from geonode.corpus.mass_action import bound_1_1
from geonode.corpus.numbers import Numbers


@CHEMISTRY.register("binding_1_1")
class Binding11(Chemistry):
    """Species H, HG (fractions of the host) and G (where it absorbs, in one assay of four).

    Kd from 0.015 to 6 of the highest level; host from 0.001 to 0.5 of Kd.
    """

    share = 0.11

    def amounts(self, numbers: Numbers, c: Tensor, axis: Axis) -> Tensor:
        kd = numbers.log_uniform(0.015, 6.0)
        host = kd * numbers.log_uniform(1e-3, 0.5)
        visible = numbers.log_uniform(0.1, 1.0) * numbers.chance(0.25)
        bound = bound_1_1(host, c, kd)
        return torch.stack([1.0 - bound / host, bound / host, visible * (c - bound)], -1).clamp_min(0.0)
