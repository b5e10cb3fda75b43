"""Self-association: monomer and dimer, or stacks without end (isodesmic).

2 M ⇌ D (cyanines, methylene blue: Bergmann and O'Konski, J. Phys. Chem. 67 (1963) 2169); Mₙ + M ⇌ Mₙ₊₁ (Martin,
Chem. Rev. 96 (1996) 3043). Each band alone is a bent line; together they keep the mass.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import CHEMISTRY, Axis, Chemistry
from geonode.corpus.mass_action import isodesmic_monomer, monomer
from geonode.corpus.numbers import Numbers


@CHEMISTRY.register("dimerisation")
class Dimerisation(Chemistry):
    """Monomer, and monomers in dimers or stacks, relative to the highest level; K 0.03 to 100 over it."""

    share = 0.04

    def amounts(self, numbers: Numbers, c: Tensor, axis: Axis) -> Tensor:
        constant = numbers.log_uniform(0.03, 100.0)
        stacks = numbers.chance(0.3)
        free = torch.where(stacks, isodesmic_monomer(c, constant), monomer(c, constant))
        return torch.stack([free, (c - free).clamp_min(0.0)], -1)
