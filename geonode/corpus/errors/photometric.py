"""Photometric noise: a constant error of transmittance is an error of absorbance that grows as 10^A.

Twyman and Lothian, Proc. Phys. Soc. 45 (1933) 643. Dark regions are noisy while the rest is clean.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import ERRORS, Error
from geonode.corpus.lab import Lab


@ERRORS.register("photometric")
class Photometric(Error):
    """0.0001 to 0.03 of the response in the light, median 0.1 %; up to thirty times that at the strongest signal."""

    share = 0.15

    def variance(self, lab: Lab, signal: Tensor) -> Tensor:
        numbers = lab.numbers(6)
        size = lab.size(numbers, self.share, 1e-3, 0.9, 0.03)
        growth = numbers.log_uniform(1.0, 30.0).log()[..., None]
        largest = signal[:, : lab.counts.standards].abs().amax((1, 2), keepdim=True).clamp_min(1e-12)
        depth = (signal.abs() / largest).clamp_max(1.2)
        return (size[..., None] * torch.exp(growth * depth) * lab.rough[..., None]).square()
