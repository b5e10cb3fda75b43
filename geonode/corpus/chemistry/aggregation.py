"""Aggregation of plasmonic particles: dispersed ones vanish at a sharp onset, their aggregates grow and may settle.

Fractions by two successive Hill transitions (onset at the critical coagulation concentration: Verwey and Overbeek 1948;
Derjaguin and Landau 1941), with an extent of growth that goes on after the onset (Smoluchowski). With a plasmon
spectrum: gray → blue → gray folding (Ghosh and Pal, Chem. Rev. 107 (2007) 4797).
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import CHEMISTRY, Axis, Chemistry
from geonode.corpus.numbers import Numbers


@CHEMISTRY.register("aggregation")
class Aggregation(Chemistry):
    """Dispersed, aggregated, large or settled (fractions that sum to one), and the extent of growth from 0 to 1.

    Onset 0.08 to 0.9 of the top, exponent 2 to 14; second transition in half of the assays, 1.3 to 6 times later.
    """

    share = 0.06
    spectra = "plasmon"

    def amounts(self, numbers: Numbers, c: Tensor, axis: Axis) -> Tensor:
        onset = numbers.log_uniform(0.08, 0.9)
        log_c = torch.log(c.clamp_min(1e-12))
        first = torch.sigmoid(numbers.log_uniform(2.0, 14.0) * (log_c - torch.log(onset)))
        later = onset * numbers.log_uniform(1.3, 6.0)
        second = torch.sigmoid(numbers.log_uniform(2.0, 10.0) * (log_c - torch.log(later)))
        second = second * numbers.chance(0.5)
        growth = numbers.uniform(0.0, 1.0)
        later_growth = c / (c + onset * numbers.log_uniform(0.5, 4.0))
        extent = first * ((1.0 - growth) + growth * later_growth)
        return torch.stack([1.0 - first, first * (1.0 - second), first * second, extent], -1)
