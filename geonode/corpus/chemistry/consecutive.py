"""Consecutive first-order steps A → B → C along a dose (of light, reagent, or time).

A = e^{−k₁t}, B = k₁(e^{−k₁t} − e^{−k₂t})/(k₂ − k₁), C = 1 − A − B (Espenson, *Chemical Kinetics*, 1995, ch. 4). The
intermediate comes and goes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import CHEMISTRY, Axis, Chemistry
from geonode.corpus.numbers import Numbers


@CHEMISTRY.register("consecutive")
class Consecutive(Chemistry):
    """Species A, B, C, which sum to one; k₁ 0.7 to 20 a full range, k₂ from 0.03 to 3 k₁."""

    share = 0.04

    def amounts(self, numbers: Numbers, c: Tensor, axis: Axis) -> Tensor:
        first = numbers.log_uniform(0.7, 20.0)
        return populations(c, first, first * numbers.log_uniform(0.03, 3.0))


def populations(t: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Populations [b, S, 3] at t [b, S] with rate constants [b, 1]; no cancellation where the constants are equal."""
    gap = (second - first) * t
    small = gap.abs() < 1e-8
    ratio = torch.where(small, 1.0 - gap / 2, -torch.expm1(-gap) / torch.where(small, 1.0, gap))
    a = torch.exp(-first * t)
    b = first * t * a * ratio
    return torch.stack([a, b, (1.0 - a - b).clamp_min(0.0)], -1)
