"""Resonance energy transfer: the donor's spectrum gives way to an acceptor's.

E = E_max c/(c + c₀) for transfer within a complex, E_max (1 − e^{−c/c₀}) for acceptors at random (Förster 1948);
F = (1 − E) D(λ) + (γ E + δ c) A(λ), the last for acceptor that is excited directly.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import DETECTION, Detection
from geonode.corpus.numbers import Numbers


@DETECTION.register("fret")
class Fret(Detection):
    """E_max 0.3 to 1, c₀ 0.05 to 2 of the top, γ 0.1 to 1.5, δ up to 0.2; acceptor to the red."""

    share = 0.15
    emission = True
    unit = (1.0, 1e5)

    def detect(self, numbers: Numbers, density: Tensor, c: Tensor, x: Tensor) -> Tensor:
        c = c.clamp_min(0.0)
        half = numbers.log_uniform(0.05, 2.0)
        transfer = torch.where(numbers.chance(0.5), c / (c + half), -torch.expm1(-c / half))
        transfer = (numbers.uniform(0.3, 1.0) * transfer)[..., None]
        z = (x - numbers.uniform(0.45, 0.95, 1, 1)) / numbers.log_uniform(0.04, 0.2, 1, 1)
        direct = numbers.uniform(0.0, 0.2, 1, 1) * numbers.chance(0.5, 1, 1) * c[..., None]
        acceptor = torch.exp(-0.5 * z * z) * (numbers.log_uniform(0.1, 1.5, 1, 1) * transfer + direct)
        return density * (1.0 - transfer) + acceptor
