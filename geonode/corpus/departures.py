"""What real assays do beside their law: a share of all assays departs from the equation of its chemistry.

Walls adsorb, stocks are impure, salts shift constants, one dye meets another, and no two tubes react alike: the law of
a textbook holds to some per cent. A network that has only seen laws that hold learns to trust them more than any real
assay deserves (randomising what a simulator cannot know: Tobin et al., IROS 2017). Whoever departs has, each by chance,
random functions g of the concentration with variance 1 and a correlation length of 0.3 to 3 in the coordinate x:

    c′ = c exp(a g₀(x))        what acts is not what was weighed in; on other axes c′ = c + 0.3 a (high − low) g₀(x)
    n′ = n exp(b gₖ(x))        species k has an activity, a quantum yield, a loss of its own
    n₅ = d sigmoid(1.5 g(x))   a further species that no equation names, where the chemistry leaves room for one
    n″ = n′ exp(e zₖ)          the reaction goes further in one tube than in the next: z normal, one for each solution

with a, b log-uniform 0.01 to 0.3, d 0.02 to 0.5, and e an error like others (median 1 %, times the laboratory's care);
x = log(1 + c/k)/log(1 + 1/k), or the place on an axis that is no amount. The truth has the first three as well: they
make the assay differ from its law; the last makes standards differ from the assay, along its own colours. Standards on
a straight line (Beer–Lambert) do not depart.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from geonode.corpus.functions import random_functions
from geonode.corpus.kinds import SPECIES
from geonode.corpus.lab import Lab

_TERMS = 6
_CURVES = SPECIES + 2
_COLUMNS = 8 + _CURVES * (1 + 2 * _TERMS)


@dataclass(frozen=True)
class Departures:
    """How the assays of a draw depart from their laws, at the concentrations that they were made for.

    Attributes:
        concentration: what acts ``[B, S]``, float64.
        factor: of each species ``[B, S, SPECIES]``.
        further: amount of the further species ``[B, S, 1]``, 0 where there is none.
    """

    concentration: Tensor
    factor: Tensor
    further: Tensor


def depart(lab: Lab, c: Tensor, share: float, able: Tensor) -> Departures:
    """Departures of all assays of a draw.

    Args:
        lab: in which they are made.
        c: true concentrations ``[B, S]``, float64: S places where the truth is wanted, then all measured samples.
        share: of the assays that depart.
        able: assays that may ``[B, 1]``.
    """
    numbers, axis, amount = lab.source.table(_COLUMNS, torch.float64), lab.axis, lab.amount
    some = numbers.chance(share) & able

    def size(low: float, high: float) -> Tensor:
        return torch.where(numbers.chance(0.5) & some, numbers.log_uniform(low, high), 0.0)

    shift, activity, further = size(0.01, 0.3), size(0.01, 0.3), size(0.02, 0.5)
    k, width = numbers.log_uniform(0.01, 3.0), axis.high - axis.low
    logarithmic = torch.log1p(c.clamp_min(0.0) / k) / torch.log1p(1.0 / k)
    x = torch.where(amount, logarithmic, (c - axis.low) / width)
    g = random_functions(numbers, x, _CURVES, _TERMS, 0.3, 3.0)
    moved = torch.where(amount, c * torch.exp(shift * g[..., 0]), c + 0.3 * shift * width * g[..., 0])
    logarithm = activity[..., None] * g[..., 1 : 1 + SPECIES]
    extent = lab.size(lab.numbers(3), 0.5, 0.01, 0.9, 0.2) * some
    scatter = extent[..., None] * torch.stack([lab.of_solutions() for _ in range(SPECIES)], -1)
    logarithm[:, -scatter.shape[1] :] += scatter
    return Departures(moved, logarithm.exp(), further[..., None] * torch.sigmoid(1.5 * g[..., -1:]))
