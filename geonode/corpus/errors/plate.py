"""Wells of a microplate: filled unevenly, with another meniscus, warmer at the rim; each well has its own factor.

Volumes of multichannel pipettes and dispensers differ by 0.5 to 5 % from well to well, and the path of light stands on
the volume; wells at the ends of a row dry out first (Lundholt et al., J. Biomol. Screen. 8 (2003) 566).
"""

from __future__ import annotations

from torch import Tensor

from geonode.corpus.kinds import ERRORS, Error
from geonode.corpus.lab import Lab


@ERRORS.register("plate")
class Plate(Error):
    """Relative 0.001 to 0.08, median 1.2 %; in one of three plates twice that again at both ends of the row."""

    share = 0.12

    def path(self, lab: Lab) -> Tensor:
        numbers = lab.numbers(6)
        size = lab.size(numbers, self.share, 0.012, 0.6, 0.08)
        rim = 2.0 * numbers.sign() * numbers.chance(0.33)
        return size * (lab.normal() + rim * (2.0 * lab.order.clamp(0.0, 1.0) - 1.0) ** 4)
