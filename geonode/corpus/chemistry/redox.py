"""Spectroelectrochemistry: Nernst's equation; the axis is a potential, far from zero.

[Ox]/[Red] = exp(nF(E − E°)/RT) (Bard and Faulkner, *Electrochemical Methods*, ch. 17), one or two couples. Potentials
in mV against a reference that keeps them positive.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import CHEMISTRY, Axis, Chemistry
from geonode.corpus.numbers import Numbers

THERMAL = 25.693  # RT/F at 25 °C, mV


@CHEMISTRY.register("redox")
class Redox(Chemistry):
    """Species Red, Ox (and Ox of a second couple), which sum to one; n = 1 or 2; E° inside the window."""

    share = 0.02
    window = (100.0, 1100.0, 120.0, 600.0)
    error = (0.3, 5.0)

    def amounts(self, numbers: Numbers, c: Tensor, axis: Axis) -> Tensor:
        electrons = 1.0 + numbers.chance(0.35)
        standard = axis.low + (axis.high - axis.low) * numbers.uniform(0.05, 0.95, 2).sort(-1).values
        first = torch.sigmoid(electrons * (c - standard[:, :1]) / THERMAL)
        second = torch.sigmoid((c - standard[:, 1:]) / THERMAL) * numbers.chance(0.4)
        return torch.stack([1.0 - first, first * (1.0 - second), first * second], -1)
