"""Adsorption on a surface: Langmuir (with depletion), Freundlich or Sips.

θ = K c/(1 + K c) (Langmuir, J. Am. Chem. Soc. 40 (1918) 1361); q = c^{1/n} (Freundlich 1907); θ = (Kc)^{1/n}/(1 +
(Kc)^{1/n}) (Sips, J. Chem. Phys. 16 (1948) 490). Enhanced Raman, evanescent waves, dyes on particles.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import CHEMISTRY, Axis, Chemistry
from geonode.corpus.mass_action import bound_1_1
from geonode.corpus.numbers import Numbers


@CHEMISTRY.register("adsorption")
class Adsorption(Chemistry):
    """Adsorbed amount, and what stays dissolved (seen in half of the assays).

    K 0.2 to 100 over the top, n 1.2 to 4, sites 0.01 to 1 of the top.
    """

    share = 0.05

    def amounts(self, numbers: Numbers, c: Tensor, axis: Axis) -> Tensor:
        kind = numbers.choice((0.5, 0.3, 0.2))
        constant, order = numbers.log_uniform(0.2, 100.0), numbers.log_uniform(1.2, 4.0)
        sites = numbers.log_uniform(0.01, 1.0)
        bound = bound_1_1(sites, c, 1.0 / constant)
        power = c.clamp_min(0.0) ** (1.0 / order)
        scaled = power * constant ** (1.0 / order)
        covered = torch.where(kind == 0, bound / sites, torch.where(kind == 1, power, scaled / (1.0 + scaled)))
        seen = numbers.log_uniform(0.1, 1.0) * numbers.chance(0.5)
        return torch.stack([covered, seen * torch.where(kind == 0, c - bound, c)], -1).clamp_min(0.0)
