"""A join: where lamp, grating or detector change, one side of the spectrum lies a little higher."""

from __future__ import annotations

from torch import Tensor

from geonode.corpus.kinds import ERRORS, Error
from geonode.corpus.lab import Lab


@ERRORS.register("join")
class Join(Error):
    """0.0005 to 0.05 of the response, median 0.5 %, at one wavelength of the assay; steady and random."""

    share = 0.06

    def additive(self, lab: Lab) -> tuple[Tensor, Tensor]:
        numbers = lab.numbers(6)
        size = lab.size(numbers, self.share, 5e-3, 0.9, 0.05)
        beyond = (lab.wavelength > numbers.uniform(0.1, 0.9, 1, 1)).to(size.dtype)
        return (size * (lab.normal() + numbers.normal()))[..., None], beyond
