"""Turbidity beside bands: scattering falls as λ⁻ⁿ.

n = 4 for particles far below the wavelength (Rayleigh), 1 to 2.5 for larger ones (Heller, J. Phys. Chem. 71 (1967)
1219): latex, cells, precipitates, proteins that aggregate.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import SPECIES, SPECTRA, Spectra
from geonode.corpus.numbers import Numbers
from geonode.corpus.spectra.bands import Shape


@SPECTRA.register("scattering")
class Scattering(Spectra):
    """The last species that changes is turbid (n 1 to 4), or all are a little; the window spans λ to 1.2–3.5 λ."""

    share = 0.07

    def molar(self, numbers: Numbers, x: Tensor) -> Tensor:
        bands = Shape(numbers, 0.02, 0.2).molar(x)
        wavelength = 1.0 + x * numbers.log_uniform(0.2, 2.5, 1, 1)
        turbid = wavelength ** -numbers.uniform(1.0, 4.0, 1, 1)
        last = torch.arange(SPECIES, device=x.device)[:, None] == 1
        weight = torch.where(last, 1.0, numbers.log_uniform(0.02, 0.5, SPECIES, 1) * numbers.chance(0.5, SPECIES, 1))
        return bands * torch.where(last, 0.2, 1.0) + weight * turbid
