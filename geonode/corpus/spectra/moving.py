"""Bands that move, widen or split as the first species gives way to the second.

A solvatochromic or field shift (Reichardt, Chem. Rev. 94 (1994) 2319), an exciton splitting (Kasha, Pure Appl. Chem. 11
(1965) 371), a plasmon that follows its surroundings: the spectrum is no sum of fixed species.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import SPECTRA, Spectra
from geonode.corpus.numbers import Numbers
from geonode.corpus.spectra.bands import profile

_BANDS = 3


@SPECTRA.register("moving")
class Moving(Spectra):
    """Up to three bands; shift 0.3 to 4 widths in all, splitting in one of three, broadening up to twice.

    The bands' strength is constant, or follows the first species too (one half).
    """

    share = 0.12
    emits = True

    def density(self, numbers: Numbers, x: Tensor, amounts: Tensor) -> Tensor:
        shape = (1, _BANDS)
        width = numbers.log_uniform(0.015, 0.15, 1, 1) * numbers.log_normal(1.0, 0.3, *shape)
        center = numbers.uniform(0.1, 0.9, *shape)
        first = torch.arange(_BANDS, device=x.device) == 0
        height = torch.where(first, 1.0, numbers.log_uniform(0.1, 1.0, *shape) * numbers.chance(0.5, *shape))
        extent = amounts[..., :1].clamp(max=3.0)
        shift = numbers.log_uniform(0.3, 4.0, 1, 1) * numbers.sign(1, 1) * width * extent
        split = numbers.uniform(0.5, 1.0, 1, 1) * numbers.chance(0.33, 1, 1)
        wide = width * (1.0 + numbers.uniform(0.0, 1.0, 1, 1) * numbers.chance(0.5, 1, 1) * extent)
        follows = numbers.uniform(0.0, 1.0, 1, 1) * numbers.chance(0.5, 1, 1)
        strength = height * (1.0 - follows + follows * extent) * (width / wide)
        nothing = torch.zeros_like(split)[..., None]

        def bands(place: Tensor) -> Tensor:
            return profile(x, place[..., None], wide[..., None], nothing, nothing)

        both = (1.0 - 0.5 * split)[..., None] * bands(center + shift)
        both = both + (0.5 * split)[..., None] * bands(center - shift)
        return (strength[..., None] * both).sum(-2)
