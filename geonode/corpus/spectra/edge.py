"""Absorption edges: strong at short wavelengths, falling through an Urbach tail, with a band or none above it.

ln α rises linearly with energy below the edge and levels off above (Urbach, Phys. Rev. 92 (1953) 1324): semiconductor
dots, nitrate and organic matter in the ultraviolet, solvents' cut-off.
"""

from __future__ import annotations

from torch import Tensor

from geonode.corpus.kinds import SPECIES, SPECTRA, Spectra
from geonode.corpus.numbers import Numbers
from geonode.corpus.spectra.bands import brightness, profile


@SPECTRA.register("edge")
class Edge(Spectra):
    """Edge at −0.1 to 0.7 of the window, tail 0.02 to 0.2; a band (exciton) near it in half of the assays."""

    share = 0.09

    def molar(self, numbers: Numbers, x: Tensor) -> Tensor:
        place = numbers.uniform(-0.1, 0.7, 1, 1) + numbers.normal(SPECIES, 1) * 0.06
        tail = numbers.log_uniform(0.02, 0.2, 1, 1) * numbers.log_normal(1.0, 0.2, SPECIES, 1)
        fall = ((place - x) / tail).sigmoid() * (1.0 + numbers.uniform(0.0, 1.0, SPECIES, 1) * (place - x).clamp_min(0))
        height = numbers.log_uniform(0.1, 1.0, SPECIES, 1) * numbers.chance(0.5, 1, 1)
        skew = numbers.uniform(-0.2, 0.2, 1, 1)
        exciton = profile(x, place + tail, tail * 0.7, numbers.uniform(0.0, 0.5, 1, 1), skew)
        return brightness(numbers) * (fall + height * exciton)
