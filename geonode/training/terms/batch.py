"""What a training step is given: points, all of whose pairs count, or explicit pairs."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class PointsBatch(NamedTuple):
    """P points in ascending order along the warp coordinate: all their ordered pairs, each interval integrated once.

    phi [M, P, T] (integration matrix of the points), target [M, P, W] (spectra, scaled), weight [M, P] (0 = padding),
    index [W] of the wavelengths or None for all, gamma [M, T] pull-back Christoffel symbol at the table nodes or None.
    """

    phi: Tensor
    target: Tensor
    weight: Tensor
    index: Tensor | None = None
    gamma: Tensor | None = None


class PairsBatch(NamedTuple):
    """B explicit pairs: start, end [M, B] (warp coordinate, float64), source, target [M, B, W], weight [M, B].

    phi [M, 2B, T]: integration matrix of the starts, then of the ends, where it is at hand.
    """

    start: Tensor
    end: Tensor
    source: Tensor
    target: Tensor
    weight: Tensor
    index: Tensor | None = None
    gamma: Tensor | None = None
    phi: Tensor | None = None


Batch = PointsBatch | PairsBatch
