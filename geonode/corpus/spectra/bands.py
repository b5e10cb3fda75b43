"""Separate bands: Gaussian, Lorentzian or between (pseudo-Voigt), symmetric or skewed.

Electronic and vibrational bands as band fitting writes them (Wertheim et al., Rev. Sci. Instrum. 45 (1974) 1369 for the
pseudo-Voigt). Species of one assay are often relatives: the same bands moved and scaled, so that isosbestic points
arise.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import SPECIES, SPECTRA, Spectra
from geonode.corpus.numbers import Numbers

_BANDS = 4


class Shape:
    """Parameters of the bands of `SPECIES` species, each [b, SPECIES, bands, 1]; `molar` sums them.

    Args:
        numbers: of these assays.
        narrow, wide: range of the width (standard deviation) of a typical band of an assay, of the window.
        bands: at most so many a species.
    """

    def __init__(self, numbers: Numbers, narrow: float, wide: float, bands: int = _BANDS) -> None:
        shape = (SPECIES, bands, 1)
        typical = numbers.log_uniform(narrow, wide, 1, 1, 1)
        center = numbers.uniform(-0.1, 1.1, *shape)
        width = typical * numbers.log_normal(1.0, 0.35, *shape)
        height = numbers.log_uniform(0.08, 1.0, *shape) * numbers.chance(0.55, *shape)
        # the first band is always there, and inside the window
        head = torch.arange(bands, device=center.device)[:, None] == 0
        center = torch.where(head, center * 0.75 + 0.125, center)
        height = torch.where(head, numbers.log_uniform(0.4, 1.0, SPECIES, 1, 1), height)
        # relatives of the first species: its bands moved together, each scaled a little
        related = numbers.chance(0.6, SPECIES, 1, 1)
        move = numbers.normal(SPECIES, 1, 1) * 1.5 * typical
        scale = numbers.log_normal(1.0, 0.4, *shape)
        self.center = torch.where(related, center[:, :1] + move, center)
        self.width = torch.where(related, width[:, :1] * numbers.log_normal(1.0, 0.15, SPECIES, 1, 1), width)
        self.height = torch.where(related, height[:, :1] * scale, height) * brightness(numbers)[..., None]
        self.lorentz = numbers.uniform(0.0, 1.0, 1, 1, 1) * numbers.chance(0.5, 1, 1, 1)
        self.skew = numbers.normal(1, 1, 1) * 0.15 * numbers.chance(0.4, 1, 1, 1)

    def molar(self, x: Tensor) -> Tensor:
        """Molar spectra [b, SPECIES, W] at positions [W]."""
        return (self.height * profile(x, self.center, self.width, self.lorentz, self.skew)).sum(-2)


def brightness(numbers: Numbers) -> Tensor:
    """[b, SPECIES, 1]: how strongly each species absorbs; from the second on one in five is silent."""
    bright = numbers.log_uniform(0.15, 1.0, SPECIES, 1)
    first = torch.arange(SPECIES, device=bright.device)[:, None] == 0
    return bright * (first | ~numbers.chance(0.2, SPECIES, 1))


def profile(x: Tensor, center: Tensor, width: Tensor, lorentz: Tensor, skew: Tensor) -> Tensor:
    """Height 1 at the centre: (1 − η) Gauss + η Lorentz of the same half-width, wider on one side by the skew."""
    z = (x - center) / width
    z = z * torch.where(z < 0, 1.0 + skew, 1.0 - skew)
    square = z * z
    gauss = torch.exp(-0.5 * square)
    return gauss + lorentz * (1.0 / (1.0 + square / 1.3863) - gauss)  # 2 ln 2: equal widths at half height


@SPECTRA.register("bands")
class Bands(Spectra):
    """One to four bands a species; widths (σ) 0.015 to 0.25 of the window."""

    share = 0.40
    emits = True

    def molar(self, numbers: Numbers, x: Tensor) -> Tensor:
        return Shape(numbers, 0.015, 0.25).molar(x)
