"""A dye that the analyte sets free and that is taken up again, on particles that may aggregate: it comes and goes.

Two Hill curves one after the other make a hook (the prozone of immunoassays: Miles and Hales, Nature 219 (1968) 186;
displaced indicators: Nguyen and Anslyn, Coord. Chem. Rev. 250 (2006) 3118), a third the aggregation that often ends it
(Ghosh and Pal, Chem. Rev. 107 (2007) 4797). Gray, blue, gray: one colour at two concentrations.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import CHEMISTRY, Axis, Chemistry
from geonode.corpus.numbers import Numbers


@CHEMISTRY.register("displacement")
class Displacement(Chemistry):
    """Dispersed and aggregated particles, free and bound dye: each pair sums to one.

    Release from a third of the first level to 0.6 of the top, exponent 0.8 to 4; uptake 1.5 to 15 times later, exponent
    1 to 8; aggregation, in two of three assays, 0.5 to 10 times as late as the release, exponent 1 to 8.
    """

    share = 0.06

    def amounts(self, numbers: Numbers, c: Tensor, axis: Axis) -> Tensor:
        release = axis.constant(numbers, 0.6)
        uptake, clump = release * numbers.log_uniform(1.5, 15.0), release * numbers.log_uniform(0.5, 10.0)
        free = hill(c, release, numbers.log_uniform(0.8, 4.0))
        free = free * (1.0 - hill(c, uptake, numbers.log_uniform(1.0, 8.0)))
        aggregated = hill(c, clump, numbers.log_uniform(1.0, 8.0)) * numbers.chance(2 / 3)
        return torch.stack([1.0 - aggregated, aggregated, free, 1.0 - free], -1)


def hill(c: Tensor, midpoint: Tensor, exponent: Tensor) -> Tensor:
    """cⁿ/(cⁿ + kⁿ) at c [b, S] ≥ 0 for k, n [b, 1]; 0 at zero."""
    return torch.sigmoid(exponent * (torch.log(c.clamp_min(1e-12)) - torch.log(midpoint)))
