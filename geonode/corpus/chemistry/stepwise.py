"""Stepwise complexes of a metal: M + L ⇌ ML, ML + L ⇌ ML₂, ML₂ + L ⇌ ML₃, the metal dilute beside the ligand.

[MLⱼ] : [M] = [L]ʲ/(K₁ … Kⱼ) with dissociation constants Kⱼ (Bjerrum, *Metal Ammine Formation in Aqueous Solution*,
1941; Beck and Nagypál, *Chemistry of Complex Equilibria*, 1990): ammines, halide and thiocyanate complexes, dyes of
metals. One complex after the other comes, and all but the last go.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import CHEMISTRY, Axis, Chemistry
from geonode.corpus.numbers import Numbers


@CHEMISTRY.register("stepwise")
class Stepwise(Chemistry):
    """Species M, ML, ML₂, ML₃, fractions of the metal.

    K₁ from a third of the first level to the top; each further constant 0.5 to 30 times the one before.
    """

    share = 0.03

    def amounts(self, numbers: Numbers, c: Tensor, axis: Axis) -> Tensor:
        first = axis.constant(numbers, 1.0)
        constants = first * torch.cat([torch.ones_like(first), numbers.log_uniform(0.5, 30.0, 2)], 1).cumprod(1)
        return complexes(c, constants)


def complexes(ligand: Tensor, constants: Tensor) -> Tensor:
    """Fractions [b, S, J + 1] of a metal without a ligand, with one, … with J.

    Args:
        ligand: free concentration [b, S], ≥ 0.
        constants: stepwise dissociation constants [b, J].
    """
    powers = (ligand[..., None] / constants[:, None]).cumprod(-1)
    parts = torch.cat([torch.ones_like(powers[..., :1]), powers], -1)
    return parts / parts.sum(-1, keepdim=True)
