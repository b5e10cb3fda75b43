"""Signed shapes: Fano profiles, first derivatives, exciton couplets, difference spectra.

Fano: (q + e)²/(1 + e²) − 1 (Phys. Rev. 124 (1961) 1866) for resonances in gratings and films; the derivative
−z e^{−z²/2} for shifts measured as differences, for modulation spectroscopy and circular dichroism.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import SPECIES, SPECTRA, Spectra
from geonode.corpus.numbers import Numbers
from geonode.corpus.spectra.bands import brightness


@SPECTRA.register("derivative")
class Derivative(Spectra):
    """One or two signed features a species; widths 0.02 to 0.2 of the window, q from −3 to 3."""

    share = 0.04
    signed = True

    def molar(self, numbers: Numbers, x: Tensor) -> Tensor:
        shape = (SPECIES, 2, 1)
        z = (x - numbers.uniform(0.1, 0.9, *shape)) / (
            numbers.log_uniform(0.02, 0.2, 1, 1, 1) * numbers.log_normal(1.0, 0.3, *shape)
        )
        q = numbers.uniform(-3.0, 3.0, *shape)
        fano = ((q + z) ** 2 / (1.0 + z * z) - 1.0) / (1.0 + q * q)
        slope = -z * torch.exp(0.5 - 0.5 * z * z)
        couplet = torch.exp(-0.5 * z * z) * (1.0 - 0.6 * z * z)
        kind = numbers.choice((0.4, 0.4, 0.2), 1, 1, 1)
        feature = torch.where(kind == 0, fano, torch.where(kind == 1, slope, couplet))
        height = numbers.log_uniform(0.2, 1.0, *shape) * numbers.sign(*shape)
        return brightness(numbers) * (feature * height).sum(-2)
