"""Hill curve: θ = cʰ/(Kʰ + cʰ) (Hill, J. Physiol. 40 (1910) iv): cooperative binding, immunoassays, dose-response.

The symmetric case of the four-parameter logistic curve of immunoassays (Findlay and Dillard, AAPS J. 9 (2007) E260).
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import CHEMISTRY, Axis, Chemistry
from geonode.corpus.numbers import Numbers


@CHEMISTRY.register("hill")
class Hill(Chemistry):
    """Species 1 − θ and θ; h from 0.6 to 4, K from 0.03 to 1.5 of the highest level."""

    share = 0.06

    def amounts(self, numbers: Numbers, c: Tensor, axis: Axis) -> Tensor:
        exponent = numbers.log_uniform(0.6, 4.0)
        midpoint = numbers.log_uniform(0.03, 1.5)
        # in logarithms, so that a large exponent cannot underflow
        theta = torch.sigmoid(exponent * (torch.log(c.clamp_min(1e-12)) - torch.log(midpoint)))
        return torch.stack([1.0 - theta, theta], -1)
