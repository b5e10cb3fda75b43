"""Competitive displacement: the analyte drives an indicator from the host.

H + I ⇌ HI, H + G ⇌ HG, three mass balances (Wang, FEBS Lett. 360 (1995) 111; Anslyn's indicator displacement
assays). The response lags until free host is used up, then follows.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import CHEMISTRY, Axis, Chemistry
from geonode.corpus.mass_action import free_host_competing
from geonode.corpus.numbers import Numbers


@CHEMISTRY.register("competitive")
class Competitive(Chemistry):
    """Species I and HI, fractions of the indicator.

    Indicator 0.02 to 1 of the top, host 0.3 to 3 of the indicator, Kd of the indicator 0.003 to 0.5 of it, Kd of the
    analyte 0.001 to 1 of the top.
    """

    share = 0.04

    def amounts(self, numbers: Numbers, c: Tensor, axis: Axis) -> Tensor:
        indicator = numbers.log_uniform(0.02, 1.0)
        host = indicator * numbers.log_uniform(0.3, 3.0)
        kd_indicator = indicator * numbers.log_uniform(0.003, 0.5)
        kd_analyte = numbers.log_uniform(1e-3, 1.0)
        free = free_host_competing(host, indicator, c, kd_indicator, kd_analyte)
        bound = free / (kd_indicator + free)
        return torch.stack([1.0 - bound, bound], -1)
