"""1:2 binding: H + G ⇌ HG, HG + G ⇌ HG₂, with mass balance of host and guest.

[HG] : [HG₂] = [G]/K₁ : [G]²/(K₁K₂) beside [H] = 1 (Thordarson, Chem. Soc. Rev. 40 (2011) 1305). The middle species
comes and goes: spectra fold back.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import CHEMISTRY, Axis, Chemistry
from geonode.corpus.mass_action import free_guest_1_2
from geonode.corpus.numbers import Numbers


@CHEMISTRY.register("binding_1_2")
class Binding12(Chemistry):
    """Species H, HG, HG₂, fractions of the host.

    K₁ 0.005 to 1 of the top; K₂ = r K₁ with r from 0.1 (cooperative; 4 is statistical) to 200; host 0.001 to 0.5.
    """

    share = 0.05

    def amounts(self, numbers: Numbers, c: Tensor, axis: Axis) -> Tensor:
        first = numbers.log_uniform(0.005, 1.0)
        second = first * numbers.log_uniform(0.1, 200.0)
        host = numbers.log_uniform(1e-3, 0.5)
        free = free_guest_1_2(host, c, first, second)
        one, two = free / first, free * free / (first * second)
        return torch.stack([torch.ones_like(one), one, two], -1) / (1.0 + one + two)[..., None]
