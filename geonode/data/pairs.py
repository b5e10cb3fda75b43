"""Pairs of levels and continuous concentrations, drawn on the device and keyed by (seed, epoch, step).

Every draw is a function of its key alone: nothing is carried from one to the next, so training that resumes in the
middle of an epoch draws what the uninterrupted run would have drawn. No value travels between host and device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from geonode.errors import InputError

Device = str | torch.device | None

_MASK = (1 << 64) - 1


def keyed_generator(*key: int, device: Device = "cpu") -> torch.Generator:
    """A generator on ``device`` seeded by the integers of ``key``, each of which changes the stream entirely
    (splitmix64).
    """
    state = 0
    for part in key:  # splitmix64, so that neighbouring keys give unrelated seeds
        state = (state + (int(part) & _MASK) + 0x9E3779B97F4A7C15) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return torch.Generator(device=torch.device(device or "cpu")).manual_seed(state >> 1)


def decode_pairs(index: torch.Tensor, levels: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(source, target) of the pairs numbered ``index``, of the n(n−1) ordered pairs of distinct levels.

    Pairs are numbered by source, then target. ``index`` may have any shape; the results have it too.
    """
    source = torch.div(index, levels - 1, rounding_mode="floor")
    target = index - source * (levels - 1)
    return source, target + (target >= source)


def all_pairs(levels: int, device: Device = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
    """All n(n−1) ordered pairs of distinct levels: (source, target), int64 ``[n(n−1)]`` on ``device``.

    Raises:
        InputError: fewer than two levels.
    """
    _check_levels(levels)
    return decode_pairs(torch.arange(levels * (levels - 1), device=device), levels)


class PairSampler:
    """Ordered pairs of levels without replacement: each of the n(n−1) exactly once an epoch.

    Args:
        levels: n, the number of levels.
        batch_size: B, pairs in a batch; the last batch of an epoch may be smaller.
        seed: first part of the key. device: where the index tensors are made.

    Raises:
        InputError: fewer than two levels, or a batch size below one.
    """

    def __init__(self, levels: int, batch_size: int, seed: int = 0, device: Device = "cpu") -> None:
        _check_levels(levels)
        if batch_size < 1:
            raise InputError(f"batch_size is {batch_size}; it must be at least 1.")
        self.levels, self.batch_size, self.seed = int(levels), int(batch_size), int(seed)
        self.device = torch.device(device or "cpu")

    @property
    def pairs_per_epoch(self) -> int:
        """n(n − 1)."""
        return self.levels * (self.levels - 1)

    def __len__(self) -> int:
        """Batches in an epoch."""
        return -(-self.pairs_per_epoch // self.batch_size)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Batches (source, target), int64 ``[B]``, of one epoch, from batch ``start`` on."""
        order = self._order(epoch)
        for step in range(start, len(self)):
            yield self._batch(order, step)

    def batch(self, epoch: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Batch ``step`` of an epoch alone, the same as the iterator gives.

        Raises:
            InputError: no such step.
        """
        if not 0 <= step < len(self):
            raise InputError(f"step is {step}, but an epoch has steps 0 to {len(self) - 1}.")
        return self._batch(self._order(epoch), step)

    def _order(self, epoch: int) -> torch.Tensor:
        generator = keyed_generator(self.seed, epoch, device=self.device)
        return torch.randperm(self.pairs_per_epoch, generator=generator, device=self.device)

    def _batch(self, order: torch.Tensor, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        return decode_pairs(order[step * self.batch_size : (step + 1) * self.batch_size], self.levels)


def continuous_concentrations(
    low: float | Sequence[float],
    high: float | Sequence[float],
    count: int,
    *,
    seed: int = 0,
    epoch: int = 0,
    step: int = 0,
    stream: int = 0,
    stratified: bool = True,
    device: Device = "cpu",
    dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """Concentrations drawn from a range: ``[count]``, or ``[count, D]`` for D-valued ``low`` and ``high``.

    Args:
        low, high: ends of the range, low < high for every analyte.
        count: how many.
        seed, epoch, step: the key. stream: a further part of it, to tell sources from targets.
        stratified: exactly one draw in each of ``count`` equal parts of the range of every analyte, in random order (a
            Latin hypercube for D ≥ 2); else independent and uniform.
        device, dtype: of the result.

    Raises:
        InputError: an empty or infinite range, or a count below one.
    """
    single = not isinstance(low, Sequence) and not isinstance(high, Sequence)
    lows = [float(v) for v in (low if isinstance(low, Sequence) else [low])]
    highs = [float(v) for v in (high if isinstance(high, Sequence) else [high])]
    if count < 1:
        raise InputError(f"count is {count}; it must be at least 1.")
    if len(lows) != len(highs) or not all(
        -float("inf") < a < b < float("inf") for a, b in zip(lows, highs, strict=True)
    ):
        raise InputError(f"the range from {low} to {high} is empty or infinite; give low < high for every analyte.")
    generator = keyed_generator(seed, epoch, step, stream, device=device)
    uniform = torch.rand(len(lows), count, generator=generator, device=device, dtype=dtype)
    if stratified:
        order = [torch.randperm(count, generator=generator, device=device) for _ in lows]
        uniform = (torch.stack(order).to(dtype) + uniform) / count
    columns = [a + (b - a) * u for a, b, u in zip(lows, highs, uniform.unbind(), strict=True)]
    # Rounding may carry the last stratum's draw a hair beyond the range, where tables end.
    columns = [column.clamp(a, b) for a, b, column in zip(lows, highs, columns, strict=True)]
    return columns[0] if single else torch.stack(columns, dim=-1)


def _check_levels(levels: int) -> None:
    if levels < 2:
        raise InputError(f"{levels} level(s) make no pair; at least 2 are needed.")
