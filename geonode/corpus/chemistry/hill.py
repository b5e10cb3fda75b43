"""Hill curve: θ = cʰ/(Kʰ + cʰ) (Hill, J. Physiol. 40 (1910) iv): cooperative binding, immunoassays, dose-response.

Immunoassays take it with an asymmetry, θᵍ: the five-parameter logistic (Findlay and Dillard, AAPS J. 9 (2007) E260).
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import CHEMISTRY, Axis, Chemistry
from geonode.corpus.numbers import Numbers


@CHEMISTRY.register("hill")
class Hill(Chemistry):
    """Species 1 − θ and θ; h from 0.6 to 4, g about 1 in one of three.

    K from a third of the first level to 1.5 of the highest.
    """

    share = 0.06

    def amounts(self, numbers: Numbers, c: Tensor, axis: Axis) -> Tensor:
        exponent = numbers.log_uniform(0.6, 4.0)
        midpoint = axis.constant(numbers, 1.5)
        # in logarithms, so that a large exponent cannot underflow
        theta = torch.sigmoid(exponent * (torch.log(c.clamp_min(1e-30)) - torch.log(midpoint)))
        theta = theta ** torch.where(numbers.chance(0.33), numbers.log_normal(1.0, 0.5), 1.0)
        return torch.stack([1.0 - theta, theta], -1)
