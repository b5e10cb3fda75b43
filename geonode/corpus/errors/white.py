"""White noise of reading and amplifier, stronger towards the ends of the window in some instruments."""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import ERRORS, Error
from geonode.corpus.lab import Lab


@ERRORS.register("white")
class White(Error):
    """Always; 0.00002 to 0.3 of the response, median 0.3 %; at an end up to ten times that, in one assay of five."""

    share = 1.0

    def variance(self, lab: Lab, signal: Tensor) -> Tensor:
        numbers = lab.numbers(8)
        size = lab.size(numbers, self.share, 3e-3, 1.1, 0.3).clamp_min(2e-5)
        x = lab.wavelength
        distance = torch.where(numbers.chance(0.5), x, 1.0 - x)
        end = numbers.log_uniform(1.0, 10.0) * numbers.chance(0.2)
        profile = 1.0 + end * torch.exp(-distance / numbers.log_uniform(0.02, 0.2))
        return (size * profile).square()[:, None] * lab.rough.square()[..., None]
