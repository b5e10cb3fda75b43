"""Digits: a converter's steps, or a file with three decimals."""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import ERRORS, Error
from geonode.corpus.lab import Lab


@ERRORS.register("digits")
class Digits(Error):
    """Steps of 0.001 to 0.05 of the response, in one assay of eight."""

    share = 0.12

    def recorded(self, lab: Lab, signal: Tensor, response: Tensor) -> Tensor:
        numbers = lab.numbers(2)
        step = response * numbers.log_uniform(1e-3, 0.05, 1, 1)
        return torch.where(numbers.chance(self.share, 1, 1), torch.round(signal / step) * step, signal)
