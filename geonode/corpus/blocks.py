"""Rows of a batch shared out among kinds: whole blocks in fixed proportions, so that no code asks what a row holds.

Each kind's code runs on its own rows alone; sizes are known on the host, orders are random on the device.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from geonode.corpus.numbers import Source


def sizes(count: int, shares: Sequence[float], offset: float) -> list[int]:
    """``count`` shared out in proportion, each share rounded up or down by chance (systematic sampling).

    Args:
        count: rows.
        shares: weights, not all 0.
        offset: uniform in [0, 1); over many draws the means are exactly the shares.
    """
    total, edge, edges = sum(shares), 0.0, [0]
    for share in shares:
        edge += share
        edges.append(min(count, int(count * edge / total + offset)))
    edges[-1] = count
    return [stop - start for start, stop in itertools.pairwise(edges)]


def consecutive(counts: Sequence[int]) -> list[slice]:
    """Blocks of so many rows, one after another."""
    edges = [0, *itertools.accumulate(counts)]
    return [slice(start, stop) for start, stop in itertools.pairwise(edges)]


def inverse(order: Tensor) -> Tensor:
    """The permutation that undoes ``order``."""
    return torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))


def in_blocks(source: Source, count: int, shares: Sequence[float]) -> tuple[list[slice], Tensor]:
    """Blocks of rows for each kind, and a random order: block row i is batch row ``order[i]``."""
    return consecutive(sizes(count, shares, source.host())), source.permutation(count)


def labels(blocks: Sequence[slice], numbers: Sequence[int], device: torch.device) -> Tensor:
    """int64: the number of the kind of every row of consecutive blocks."""
    parts = [
        torch.full((block.stop - block.start,), number, dtype=torch.int64, device=device)
        for block, number in zip(blocks, numbers, strict=True)
    ]
    return torch.cat(parts)


def by_block(blocks: Sequence[slice], function: Callable[[int, slice], Tensor]) -> Tensor:
    """What ``function(number of the block, rows)`` gives for every block that has rows, in one tensor."""
    return torch.cat([function(i, block) for i, block in enumerate(blocks) if block.stop > block.start])
