"""Smooth random functions, for what no law gives: random Fourier features (Rahimi and Recht 2007)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from geonode.corpus.numbers import Numbers


def random_functions(numbers: Numbers, x: Tensor, curves: int, terms: int, shortest: float, longest: float) -> Tensor:
    """Draws of a squared-exponential process of variance 1 at ``x [b, S]``: ``[b, S, curves]``.

    Args:
        numbers: of these b assays; ``curves`` × (1 + 2 ``terms``) are taken.
        x: the coordinate, of order one.
        curves: how many functions of an assay, each with a correlation length of its own.
        terms: cosines of each.
        shortest, longest: of the correlation length, log-uniform, in the unit of x.
    """
    length = numbers.log_uniform(shortest, longest, curves, 1)[:, None]
    angle = x[:, :, None, None] * numbers.normal(curves, terms)[:, None] / length
    phase = numbers.uniform(0.0, 2.0 * math.pi, curves, terms)[:, None]
    return math.sqrt(2.0 / terms) * torch.cos(angle + phase).sum(-1)
