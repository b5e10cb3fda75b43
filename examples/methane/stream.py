"""Scans from the file to the network in a stream: a few blocks at a time are in memory, however many there are."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import torch
from common import network_input

from geonode.data.methane import ScanFile

BLOCKS = 8
"""So many blocks are shuffled together: 4000 scans, each 4 kB as read and 1 kB as the network sees it."""

Part = tuple[torch.Tensor, torch.Tensor]


def split(count: int) -> tuple[range, range, range]:
    """Scans for training, for validation (a tenth, for choices) and for test (the last tenth, for figures)."""
    tenth = max(count // 10, 1)
    return range(count - 2 * tenth), range(count - 2 * tenth, count - tenth), range(count - tenth, count)


def read(scans: ScanFile, start: int, stop: int) -> Part:
    """Scans as the network sees them ``[n, 1, points]``, and log₁₀ of their mole fractions ``[n]``."""
    part = scans.read(start, stop)
    return network_input(part.voltages), torch.tensor(np.log10(part.fraction), dtype=torch.float32)


def pieces(scans: ScanFile, rows: range) -> list[tuple[int, int]]:
    """The rows cut where the file's blocks are."""
    cuts = [rows.start, *range((rows.start // scans.block + 1) * scans.block, rows.stop, scans.block), rows.stop]
    return list(pairwise(cuts))


def in_order(scans: ScanFile, rows: range) -> Iterator[Part]:
    """The rows one after another, a block at a time."""
    for start, stop in pieces(scans, rows):
        yield read(scans, start, stop)


def shuffled(scans: ScanFile, rows: range, batch: int, seed: int, epoch: int) -> Iterator[Part]:
    """Batches of the rows in an order that depends on seed and epoch alone: blocks in random order, and the scans of
    ``BLOCKS`` of them shuffled together. The next blocks are read meanwhile. The last batch may be smaller."""
    draw = torch.Generator().manual_seed(1_000_003 * seed + epoch)
    order = torch.randperm(len(pieces(scans, rows)), generator=draw).tolist()
    every = pieces(scans, rows)
    groups = [[every[k] for k in order[i : i + BLOCKS]] for i in range(0, len(order), BLOCKS)]

    def load(group: list[tuple[int, int]]) -> Part:
        parts = [read(scans, start, stop) for start, stop in group]
        return torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])

    left: Part | None = None
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(load, groups[0])
        for number in range(len(groups)):
            x, y = coming.result()
            if number + 1 < len(groups):
                coming = reader.submit(load, groups[number + 1])
            if left is not None:  # what did not fill a batch
                x, y = torch.cat([left[0], x]), torch.cat([left[1], y])
            mixed = torch.randperm(len(x), generator=draw)
            whole = len(x) // batch * batch
            for chosen in mixed[:whole].split(batch):
                yield x[chosen], y[chosen]
            left = x[mixed[whole:]], y[mixed[whole:]]
    if left is not None and len(left[0]):
        yield left
