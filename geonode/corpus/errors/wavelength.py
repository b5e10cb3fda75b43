"""Wavelength jitter: the whole axis of a spectrum is moved a little (backlash, temperature, seating of a fibre)."""

from __future__ import annotations

from torch import Tensor

from geonode.corpus.kinds import ERRORS, Error
from geonode.corpus.lab import Lab


@ERRORS.register("wavelength")
class Wavelength(Error):
    """0.00003 to 0.003 of the window (0.02 to 2 nm of 600), median 0.0003."""

    share = 0.2

    def wavelength(self, lab: Lab) -> Tensor:
        return lab.size(lab.numbers(4), self.share, 3e-4, 1.0, 3e-3) * lab.normal()
