"""Drift along the run: a baseline or band that grows with the order of measurement, and so with concentration.

Standards measured in ascending order confound it with the response; nothing in the spectra tells them apart.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import ERRORS, Error
from geonode.corpus.lab import Lab


@ERRORS.register("drift")
class Drift(Error):
    """0.001 to 0.5 of the response over the run, median 2 %; steady, with a step half of that at a random time."""

    share = 0.15

    def additive(self, lab: Lab) -> tuple[Tensor, Tensor]:
        numbers = lab.numbers(16)
        size = lab.size(numbers, self.share, 0.02, 1.0, 0.5) * numbers.sign()
        step = torch.sigmoid((lab.order - numbers.uniform(0.0, 1.0)) / 0.03)
        course = lab.order + 0.5 * step * numbers.chance(0.2)
        t = 2.0 * lab.wavelength - 1.0
        line = numbers.uniform(0.3, 1.0, 1, 1) + numbers.normal(1, 1) * 0.5 * t
        z = (lab.wavelength - numbers.uniform(0.0, 1.0, 1, 1)) / numbers.log_uniform(0.05, 0.5, 1, 1)
        shape = torch.where(numbers.chance(0.6, 1, 1), line, torch.exp(-0.5 * z * z))
        return (size * course)[..., None], shape
