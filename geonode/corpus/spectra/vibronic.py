"""Vibronic progressions: evenly spaced lines with Franck–Condon intensities e^{−S} Sᵛ/v!.

Aromatics, perylenes, porphyrins, polyenes; S is the Huang–Rhys factor (de Jong et al., Phys. Chem. Chem. Phys. 17
(2015) 16959). In absorption the lines run to the blue, in emission to the red.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import SPECIES, SPECTRA, Spectra
from geonode.corpus.numbers import Numbers
from geonode.corpus.spectra.bands import brightness, profile

_LINES = 6


@SPECTRA.register("vibronic")
class Vibronic(Spectra):
    """S 0.2 to 2.5; spacing 0.04 to 0.16 of the window; lines 0.25 to 0.6 of the spacing wide (σ), wider along it."""

    share = 0.10
    emits = True

    def molar(self, numbers: Numbers, x: Tensor) -> Tensor:
        line = torch.arange(_LINES, device=x.device, dtype=x.dtype)[:, None]
        origin = numbers.uniform(0.2, 0.8, 1, 1, 1) + numbers.normal(SPECIES, 1, 1) * 0.08
        spacing = numbers.log_uniform(0.04, 0.16, 1, 1, 1) * numbers.sign(1, 1, 1)
        rhys = numbers.log_uniform(0.2, 2.5, SPECIES, 1, 1)
        height = torch.exp(line * torch.log(rhys) - torch.lgamma(line + 1.0) - rhys)
        height = height / height.amax(-2, keepdim=True)
        width = spacing.abs() * numbers.uniform(0.25, 0.6, SPECIES, 1, 1) * (1.0 + 0.12 * line)
        lorentz = numbers.uniform(0.0, 0.6, 1, 1, 1)
        lines = height * profile(x, origin + spacing * line, width, lorentz, torch.zeros_like(lorentz))
        return brightness(numbers) * lines.sum(-2)
