"""Interferents: other absorbers whose amounts vary from sample to sample.

A little of one is a matrix effect; much of several is a calibration on process samples, in which no curve in one
concentration exists and many wavelengths must answer (Martens and Næs, *Multivariate Calibration*, 1989).
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import ERRORS, Error
from geonode.corpus.lab import Lab

_OTHERS = 3


@ERRORS.register("interferent")
class Interferent(Error):
    """One in two of three assays, else two or three. 0.003 to 0.1 of the response; 0.1 to 1 in one of three assays."""

    share = 0.09

    def additive(self, lab: Lab) -> tuple[Tensor, Tensor]:
        numbers = lab.numbers(24)
        several = numbers.chance(0.33)
        size = torch.where(numbers.chance(0.33), numbers.log_uniform(0.1, 1.0), numbers.log_uniform(3e-3, 0.1))
        size = size * numbers.chance(self.share)
        first = torch.arange(_OTHERS, device=size.device) == 0
        each = torch.where(first | several, size * numbers.log_uniform(0.3, 1.0, _OTHERS), 0.0)
        z = (lab.wavelength - numbers.uniform(0.0, 1.0, _OTHERS, 1)) / numbers.log_uniform(0.03, 0.4, _OTHERS, 1)
        # amounts are positive; solutions of one level hold the same
        amount = torch.stack([torch.exp(0.6 * lab.of_solutions().clamp(-3, 3)) - 1.0 for _ in range(_OTHERS)], -1)
        return amount * each[:, None], torch.exp(-0.5 * z * z)
