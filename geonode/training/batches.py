"""Batches of one problem, drawn on its device: nothing is copied from the host inside an epoch.

Two kinds. Where every pair is a difference of one potential (the default flow), a batch is all points at once and an
epoch is one step. Otherwise a batch is explicit pairs: measured ones and, with the GP as teacher, as many between
points of the served range.

An optimiser step takes a mega-batch of pairs, in micro-batches whose gradients add up. The mega-batch is drawn as a
whole and then cut, and each micro-batch counts by its share of the mega-batch's weight: every pair has the same part in
a step however it is cut, also where the last micro-batch is smaller.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from geonode.config import GeodesicConfig
from geonode.data.pairs import PairSampler, all_pairs, keyed_generator
from geonode.errors import InputError
from geonode.flow.arctable import ArcLengthTable
from geonode.training.problem import Problem
from geonode.training.terms.batch import PairsBatch, PointsBatch
from geonode_runtime.wording import argument

_WAVELENGTHS, _PAIRS = 1, 2  # streams: draws of different kinds never share a generator
_FIXED = -1  # the epoch of draws that never change


class StepCounts(NamedTuple):
    """How an epoch is cut: micro-batches in it, micro-batches of a full optimiser step, measured pairs of a micro-batch
    and of an optimiser step (the last of either may hold fewer)."""

    steps: int
    accumulate: int
    micro_batch: int
    batch: int


def step_counts(levels: int, config: GeodesicConfig) -> StepCounts:
    """How an epoch of n ``levels`` is cut.

    An epoch takes every measured pair once; where a mega-batch (``batch_size``) is larger than that, an epoch is one
    mega-batch, in which pairs repeat.

    Raises:
        InputError: a micro-batch where a step takes all points at once.
    """
    pairs = levels * (levels - 1)
    batch = config.training.batch_size or pairs
    micro = min(config.training.micro_batch or batch, batch)
    if config.all_pairs:
        if config.training.micro_batch is not None:
            raise InputError(
                f"{argument('micro_batch', config.training.micro_batch)} cuts batches of pairs, and here a step "
                "takes all pairs at "
                "once, as differences of one potential; set batch_size too, or leave micro_batch out and take the "
                f"wavelengths in parts ({argument('recompute')})."
            )
        return StepCounts(1, 1, pairs, pairs)
    accumulate = -(-batch // micro)
    full, rest = divmod(max(pairs, batch), batch)
    return StepCounts(full * accumulate + -(-rest // micro), accumulate, micro, batch)


class BatchSource:
    """``batch(epoch, step)`` for a problem on its device; the same key always gives the same batch.

    Args:
        problem: stacked problem, already on the device.
        table: arc-length table of the model to be trained.
        config: `batch_size`, `micro_batch`, `wavelengths_per_step` and the flow decide what a step holds.
        seed: first part of the key.
        rank, world: this process and how many share each step, by wavelength; ``share`` is this one's weight.

    Raises:
        InputError: fewer wavelengths in a step than processes.
    """

    def __init__(
        self,
        problem: Problem,
        table: ArcLengthTable,
        config: GeodesicConfig,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self.problem, self.config, self.seed = problem, config, seed
        self.rank, self.world = rank, world
        self.device = problem.target.device
        self.phi = table.phi(problem.points).to(problem.target)
        levels = problem.levels.shape[1]
        self.steps_per_epoch, self.accumulate, self.micro_batch, self.mega_batch = step_counts(levels, config)
        self.pairs = levels * (levels - 1)
        self.sampler = PairSampler(levels, self.pairs, seed, self.device)
        # each level among the ascending points, the first of equal ones: a padded level stands for the last real one
        self.level_points = torch.searchsorted(problem.points, problem.level_coordinates).clamp(
            max=problem.points.shape[1] - 1
        )

    @property
    def updates_per_epoch(self) -> int:
        """Optimiser steps in an epoch."""
        return -(-self.steps_per_epoch // self.accumulate)

    @property
    def share(self) -> float:
        """Factor on this process's loss, so that the processes' mean is the loss of the whole step."""
        width = self.problem.target.shape[2]
        used = min(self.config.training.wavelengths_per_step or width, width)
        return shard(torch.arange(used), self.rank, self.world)[1]

    def ends_update(self, step: int) -> bool:
        """Whether micro-batch ``step`` of an epoch is the last of its optimiser step."""
        return (step + 1) % self.accumulate == 0 or step + 1 == self.steps_per_epoch

    def draw(self, epoch: int, step: int) -> tuple[Tensor, ...]:
        """What one ``step`` (of a micro-batch) of one ``epoch`` draws, the same whenever it is asked for.

        [K] numbers of wavelengths where not all are used; for explicit pairs then [M, B] points where they start and
        where they end, and [M] the micro-batch's share of its mega-batch. `gather` makes the batch of it.

        Raises:
            InputError: no such step in an epoch.
        """
        if not 0 <= step < self.steps_per_epoch:
            raise InputError(f"step is {step}, but an epoch has steps 0 to {self.steps_per_epoch - 1}.")
        number, part = divmod(step, self.accumulate)
        width = self.problem.target.shape[2]
        index = draw_wavelengths(
            width, self.config.training.wavelengths_per_step, self.seed, epoch, number, self.device
        )
        if self.world > 1:
            everything = torch.arange(width, device=self.device) if index is None else index
            index, _ = shard(everything, self.rank, self.world)
        drawn = () if index is None else (index,)
        if self.config.all_pairs:
            return drawn
        ends = self._mega_batch(epoch, number)
        rows = slice(part * self.micro_batch, (part + 1) * self.micro_batch)
        weights = [self._weight(*pair) for pair in ends]
        here, whole = torch.cat([w[:, rows] for w in weights], 1), torch.cat(weights, 1)
        share = here.sum(1) / whole.sum(1)
        starts = torch.cat([start[:, rows] for start, _ in ends], 1)
        return *drawn, starts, torch.cat([end[:, rows] for _, end in ends], 1), share

    def _mega_batch(self, epoch: int, number: int) -> list[tuple[Tensor, Tensor]]:
        """Points [M, B] where the pairs of an optimiser step start and end: the measured ones, then the teacher's."""
        first = number * self.mega_batch
        last = min(first + self.mega_batch, max(self.pairs, self.mega_batch))
        source, end = self.sampler.batch(epoch, 0)  # all of them, in this epoch's order
        chosen = torch.arange(first, last, device=self.device) % self.pairs
        pairs = [(self.level_points[:, source[chosen]], self.level_points[:, end[chosen]])]
        if self.config.training.teacher:
            count = self.problem.points.shape[1]
            free = draw_points(count, last - first, self.seed, epoch, number, self.device)
            pairs.append((free[0].expand(self.problem.models, -1), free[1].expand(self.problem.models, -1)))
        return pairs

    def _weight(self, starts: Tensor, ends: Tensor) -> Tensor:
        return self.problem.weight.gather(1, starts) * self.problem.weight.gather(1, ends)

    def gather(self, *drawn: Tensor) -> PointsBatch | PairsBatch:
        """The batch of what `draw` gave, ``drawn``: on the device, without a look at any value."""
        problem = self.problem
        *index, starts, ends, _ = (*drawn, None, None, None) if self.config.all_pairs else drawn
        index = index[0] if index else None
        target = problem.target if index is None else problem.target[:, :, index]
        if starts is None or ends is None:
            return PointsBatch(self.phi, target, problem.weight, index, problem.gamma)
        return PairsBatch(
            start=problem.points.gather(1, starts),
            end=problem.points.gather(1, ends),
            source=_rows(target, starts),
            target=_rows(target, ends),
            weight=self._weight(starts, ends),
            phi=_rows(self.phi, torch.cat([starts, ends], 1)),
            index=index,
            gamma=problem.gamma,
        )

    def portion(self, *drawn: Tensor) -> Tensor:
        """[M] the share that a micro-batch has in its optimiser step, from what `draw` gave, ``drawn``; ones where a
        step is one batch."""
        return self.problem.weight.new_ones(self.problem.models) if self.config.all_pairs else drawn[-1]

    def batch(self, epoch: int, step: int) -> PointsBatch | PairsBatch:
        """The batch of one ``step`` of one ``epoch``; arguments and errors as for `draw`."""
        return self.gather(*self.draw(epoch, step))

    @cached_property
    def evaluation_draws(self) -> list[tuple[tuple[Tensor, ...], Tensor]]:
        """What `gather` makes the batches of an evaluation from, and the share [M] of each in it: always the same.

        All points; or every measured pair once and, with a teacher, as many between points of the served range. All
        wavelengths, as many at a time as a step takes; the same on every process.
        """
        width = self.problem.target.shape[2]
        columns = torch.arange(width, device=self.device).split(self.config.training.wavelengths_per_step or width)
        if self.config.all_pairs:
            one = self.problem.weight.new_ones(self.problem.models)
            return [((index,), one * (len(index) / width)) for index in columns]
        starts, ends = _decoded(self.level_points)
        if self.config.training.teacher:
            free = draw_points(self.problem.points.shape[1], self.pairs, self.seed, _FIXED, 0, self.device)
            starts, ends = (torch.cat([a, b.expand(len(a), -1)], 1) for a, b in zip((starts, ends), free, strict=True))
        whole = self._weight(starts, ends).sum(1)
        size = self.micro_batch * (2 if self.config.training.teacher else 1)
        draws = []
        for start, end in zip(starts.split(size, 1), ends.split(size, 1), strict=True):
            share = self._weight(start, end).sum(1) / whole
            draws += [((index, start, end, share), share * (len(index) / width)) for index in columns]
        return draws

    def evaluation(self) -> Iterator[tuple[PointsBatch | PairsBatch, Tensor]]:
        """The batches of `evaluation_draws` with their shares."""
        for drawn, share in self.evaluation_draws:
            yield self.gather(*drawn), share


def _decoded(level_points: Tensor) -> tuple[Tensor, Tensor]:
    """Points [M, n(n − 1)] where all ordered pairs of levels start and end, from the point [M, n] of each level."""
    source, target = all_pairs(level_points.shape[1], level_points.device)
    return level_points[:, source], level_points[:, target]


def _rows(spectra: Tensor, index: Tensor) -> Tensor:
    """Rows ``index`` [M, B] of [M, P, W] → [M, B, W]."""
    return spectra.gather(1, index[..., None].expand(-1, -1, spectra.shape[2]))


def draw_wavelengths(
    width: int, count: int | None, seed: int, epoch: int, step: int, device: torch.device | str = "cpu"
) -> Tensor | None:
    """Indices of ``count`` of ``width`` wavelengths without replacement; None where all are used."""
    if count is None or count >= width:
        return None
    generator = keyed_generator(seed, epoch, step, _WAVELENGTHS, device=device)
    return torch.randperm(width, generator=generator, device=device)[:count]


def draw_points(
    size: int, count: int, seed: int, epoch: int, step: int, device: torch.device | str = "cpu"
) -> tuple[Tensor, Tensor]:
    """``count`` pairs (start, end) of point numbers below ``size``, stratified so that every region is visited."""
    generator = keyed_generator(seed, epoch, step, _PAIRS, device=device)
    # a type of its own: in float64 Lightning changes the default, and with it what would be drawn
    uniform = torch.rand(2, count, generator=generator, device=device, dtype=torch.float32)
    order = torch.randperm(count, generator=generator, device=device)
    start = (torch.arange(count, device=device) + uniform[0]) / count
    end = (order + uniform[1]) / count
    return (start * size).long().clamp(max=size - 1), (end * size).long().clamp(max=size - 1)


def shard(index: Tensor, rank: int, world: int) -> tuple[Tensor, float]:
    """This rank's part of the wavelengths ``index`` [K], and the factor that makes ranks' averages those of the whole.

    Raises:
        InputError: fewer wavelengths than processes.
    """
    if len(index) < world:
        raise InputError(
            f"A step uses {len(index)} wavelengths, fewer than the {world} processes that share it; start fewer."
        )
    part = index[rank::world]
    return part, len(part) * world / len(index)
