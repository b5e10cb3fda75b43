"""Noise that is correlated along the wavelength: fringes, lamp structure, imperfect blanks.

Eight Fourier terms of a squared-exponential process a spectrum (Rahimi and Recht 2007), of an assay's own length.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from geonode.corpus.kinds import ERRORS, Error
from geonode.corpus.lab import Lab

_WAVES = 4


@ERRORS.register("correlated")
class Correlated(Error):
    """Size 0.0002 to 0.2 of the response, median 0.4 %; correlation length 0.02 to 0.6 of the window."""

    share = 0.45

    def additive(self, lab: Lab) -> tuple[Tensor, Tensor]:
        numbers = lab.numbers(12)
        size = lab.size(numbers, self.share, 4e-3, 1.1, 0.2)
        frequency = numbers.normal(_WAVES, 1) / numbers.log_uniform(0.02, 0.6, 1, 1)
        angle = frequency * lab.wavelength
        shapes = torch.cat([torch.cos(angle), torch.sin(angle)], 1) / math.sqrt(_WAVES)
        return lab.normal(2 * _WAVES) * size[..., None], shapes
