"""A bad standard now and then: one level made or labelled wrongly, by 5 to 50 %."""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import ERRORS, Error
from geonode.corpus.lab import Lab


@ERRORS.register("bad_standard")
class BadStandard(Error):
    """One level of an amount is off by a factor e^±x, x from 0.05 to 0.4; all its replicates are."""

    share = 0.035

    def concentration(self, lab: Lab, c: Tensor) -> Tensor:
        numbers = lab.numbers(4)
        size = numbers.log_uniform(0.05, 0.4) * numbers.sign()
        which = (numbers.uniform(0.0, 1.0) * lab.counts.levels).long() == torch.arange(
            lab.counts.levels, device=c.device
        )
        wrong = lab.of_levels(which & numbers.chance(self.share) & lab.amount)
        others = torch.zeros_like(c[:, lab.counts.standards :])
        return c * torch.exp(size * torch.cat([wrong.to(c.dtype), others], 1))
