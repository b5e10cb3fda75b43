"""Plasmon of dispersed particles and of their aggregates, whose band moves to the red and broadens as they grow.

Small gold spheres absorb near 520 nm on an interband edge; coupled particles near 600 to 750 nm, broadly (Ghosh and
Pal, Chem. Rev. 107 (2007) 4797; Mie, Ann. Phys. 330 (1908) 377); large ones scatter as λ⁻ⁿ, or settle and are lost.
"""

from __future__ import annotations

from torch import Tensor

from geonode.corpus.kinds import SPECTRA, Spectra
from geonode.corpus.numbers import Numbers
from geonode.corpus.spectra.bands import profile


@SPECTRA.register("plasmon")
class Plasmon(Spectra):
    """Amounts: dispersed, aggregated, large, extent of growth (`aggregation`).

    Band at 0.25 to 0.6 of the window, σ 0.03 to 0.09; aggregates shifted by 0.05 to 0.4 and up to six times as wide.
    """

    def density(self, numbers: Numbers, x: Tensor, amounts: Tensor) -> Tensor:
        dispersed, coupled, large, extent = amounts.split(1, -1)
        center, width = numbers.uniform(0.25, 0.6), numbers.log_uniform(0.03, 0.09)
        moved = center + numbers.log_uniform(0.05, 0.4) * (0.4 + 0.6 * extent)[..., 0]
        wide = width * (1.0 + numbers.uniform(0.5, 5.0) * extent[..., 0])
        lorentz, skew = numbers.uniform(0.2, 1.0, 1, 1), numbers.uniform(-0.2, 0.0, 1, 1)
        nothing = lorentz * 0.0
        alone = profile(x, center[..., None], width[..., None], lorentz, skew)
        strength = numbers.uniform(0.4, 1.0)[..., None]
        together = strength * profile(x, moved[..., None], wide[..., None], nothing, nothing)
        wavelength = 1.0 + x * numbers.uniform(0.8, 3.0, 1, 1)
        turbid = numbers.log_uniform(0.05, 0.8, 1, 1) * wavelength ** -numbers.uniform(0.0, 2.0, 1, 1)
        edge = numbers.uniform(0.3, 1.2, 1, 1) * ((center[..., None] - 0.06 - x) / 0.07).sigmoid()
        settled = 1.0 - numbers.uniform(0.0, 0.8, 1, 1) * large
        return dispersed * alone + coupled * together + large * turbid + edge * settled
