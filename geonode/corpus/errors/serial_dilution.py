"""Serial dilution: the error of each step is handed down to all levels below it (Higgins et al., 1998)."""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import ERRORS, Error
from geonode.corpus.lab import Lab


@ERRORS.register("serial_dilution")
class SerialDilution(Error):
    """Relative 0.0005 to 0.03 a step, median 0.4 %, in six of ten serial designs; other samples are made apart."""

    share = 0.6

    def concentration(self, lab: Lab, c: Tensor) -> Tensor:
        step = lab.size(lab.numbers(4), self.share, 4e-3, 0.9, 0.03) * lab.serial
        walk = lab.source.normal(lab.counts.levels).flip(1).cumsum(1).flip(1)
        others = torch.zeros_like(c[:, lab.counts.standards :])
        return c * torch.exp((step * torch.cat([lab.of_levels(walk), others.to(walk.dtype)], 1)).double())
