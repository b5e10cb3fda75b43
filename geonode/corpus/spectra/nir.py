"""Near infrared: broad overtones and combinations that overlap; species differ in small parts of a common spectrum.

Overtones of CH, OH and NH are wide and lie on each other (Burns and Ciurczak, *Handbook of Near-Infrared Analysis*);
the analyte's change is a few per cent of what is seen, so the solvent is part of the spectrum.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import SPECIES, SPECTRA, Spectra
from geonode.corpus.numbers import Numbers
from geonode.corpus.spectra.bands import profile

_BANDS = 8


@SPECTRA.register("nir")
class Nir(Spectra):
    """Eight bands, σ 0.03 to 0.2 of the window, at common places; heights of a species differ by 5 to 60 %."""

    share = 0.09

    def molar(self, numbers: Numbers, x: Tensor) -> Tensor:
        shape = (1, _BANDS, 1)
        center = numbers.uniform(-0.05, 1.05, *shape) + numbers.normal(SPECIES, _BANDS, 1) * 0.01
        width = numbers.log_uniform(0.03, 0.2, *shape)
        common = numbers.log_uniform(0.1, 1.0, *shape)
        spread = numbers.log_uniform(0.05, 0.6, 1, 1, 1)
        height = common * torch.exp(spread * numbers.normal(SPECIES, _BANDS, 1))
        nothing = torch.zeros_like(spread)
        return (height * profile(x, center, width, nothing, nothing)).sum(-2)
