"""Preparation of each solution: weighing and pipetting; on an axis that is no amount, setting it (pH, potential).

Relative standard errors of volumetric work are 0.1 to 3 % (ISO 8655; EURACHEM/CITAC CG 4, A1); a small absolute part
comes of the smallest volume.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import ERRORS, Error
from geonode.corpus.lab import Lab


@ERRORS.register("preparation")
class Preparation(Error):
    """Relative 0.0003 to 0.05, median 0.6 %; absolute a tenth of it, of the highest level, in one assay of five."""

    share = 0.65

    def concentration(self, lab: Lab, c: Tensor) -> Tensor:
        numbers = lab.numbers(6)
        relative = lab.size(numbers, self.share, 6e-3, 0.9, 0.05)
        absolute = 0.1 * relative * numbers.chance(0.2) * lab.axis.high
        z = lab.of_solutions()
        # added, not multiplied by 1 + x: in float32 that sum would round away a part of a small error
        amount = (c + c * (relative * z) + absolute * lab.of_solutions() * (c > 0)).clamp_min(0.0)
        return torch.where(lab.amount, amount, c + lab.setting * z)
