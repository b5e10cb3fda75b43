"""Quenching by the analyte, dynamic, static or in part: F/F₀ = f/((1 + K_D c) e^{Vc}) + (1 − f).

Stern and Volmer, Phys. Z. 20 (1919) 183; Lehrer, Biochemistry 10 (1971) 3254 for the part f within reach; e^{Vc} is
Perrin's sphere of action.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import DETECTION, Detection
from geonode.corpus.numbers import Numbers


@DETECTION.register("quenching")
class Quenching(Detection):
    """K_D 0.05 to 10 over the top, V up to 1 in one assay of four, f 0.5 to 1 (all, in one half)."""

    share = 0.25
    emission = True
    unit = (1.0, 1e5)

    def detect(self, numbers: Numbers, density: Tensor, c: Tensor, x: Tensor) -> Tensor:
        c = c.clamp_min(0.0)
        sphere = numbers.uniform(0.0, 1.0) * numbers.chance(0.25)
        reach = 1.0 - numbers.uniform(0.0, 0.5) * numbers.chance(0.5)
        left = torch.exp(-sphere * c) / (1.0 + numbers.log_uniform(0.05, 10.0) * c)
        return density * (1.0 - reach + reach * left)[..., None]
