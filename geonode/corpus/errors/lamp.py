"""Strength of the lamp, or gain of the detector, from spectrum to spectrum."""

from __future__ import annotations

from torch import Tensor

from geonode.corpus.kinds import ERRORS, Error
from geonode.corpus.lab import Lab


@ERRORS.register("lamp")
class Lamp(Error):
    """Relative 0.0001 to 0.03, median 0.3 %, with a steady loss of up to three times as much along the run."""

    share = 0.15

    def gain(self, lab: Lab) -> Tensor:
        numbers = lab.numbers(6)
        loss = numbers.normal() * 1.5 * numbers.chance(0.4)
        return lab.size(numbers, self.share, 3e-3, 0.9, 0.03) * (lab.normal() + loss * (lab.order - 0.5))
