"""Acid–base titration: one to three pKa; the axis is pH, far from zero.

αⱼ ∝ 10^(j pH − ΣᵢpKaᵢ, i ≤ j) (Albert and Serjeant, *The Determination of Ionization Constants*, 1984): indicators,
phenols, nucleobases, fluorescent proteins.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from geonode.corpus.kinds import CHEMISTRY, Axis, Chemistry
from geonode.corpus.numbers import Numbers


@CHEMISTRY.register("acid_base")
class AcidBase(Chemistry):
    """Protonation states, fractions that sum to one.

    One pKa (60 %), two (30 %) or three (10 %), inside the window or up to a sixth of it outside; pH set to
    0.003–0.05.
    """

    share = 0.09
    window = (1.0, 13.0, 1.5, 9.0)
    error = (0.003, 0.05)

    def amounts(self, numbers: Numbers, c: Tensor, axis: Axis) -> Tensor:
        steps = numbers.choice((0.6, 0.3, 0.1)) + 1
        pka = axis.low + (axis.high - axis.low) * numbers.uniform(-0.16, 1.16, 3).sort(-1).values
        return protonation(c, pka, steps)


def protonation(ph: Tensor, pka: Tensor, steps: Tensor | None = None) -> Tensor:
    """Fractions [b, S, J + 1] of an acid's states, most protonated first.

    Args:
        ph: [b, S].
        pka: [b, J], ascending.
        steps: how many of them are real [b, 1]; None: all.
    """
    number = torch.arange(pka.shape[-1] + 1, device=pka.device)
    power = number * ph[..., None] - torch.nn.functional.pad(pka.cumsum(-1), (1, 0))[:, None]
    if steps is not None:
        power = power.masked_fill(number > steps[..., None], -math.inf)
    return torch.softmax(power * math.log(10.0), -1)
