"""Baseline of each spectrum: offset, tilt and curvature (cuvette, bubbles, turbidity, a blank taken earlier)."""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import ERRORS, Error
from geonode.corpus.lab import Lab


@ERRORS.register("baseline")
class Baseline(Error):
    """Offset 0.0002 to 0.3 of the response, median 0.6 %; tilt in half of them, curvature in a quarter."""

    share = 0.5

    def additive(self, lab: Lab) -> tuple[Tensor, Tensor]:
        numbers = lab.numbers(6)
        size = lab.size(numbers, self.share, 6e-3, 1.1, 0.3)
        t = 2.0 * lab.wavelength - 1.0
        shapes = torch.stack([torch.ones_like(t), t, 1.5 * t * t - 0.5])
        part = torch.cat([torch.ones_like(size), numbers.chance(0.5), numbers.chance(0.25)], 1)
        return lab.normal(3) * (size * part)[:, None], shapes.expand(lab.counts.assays, 3, -1)
