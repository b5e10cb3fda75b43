"""Batches of one problem, drawn on its device: nothing is copied from the host inside an epoch.

Two kinds. Where every pair is a difference of one potential (the default flow), a batch is all points at once and an
epoch is one step. Otherwise a batch is explicit pairs: the measured ones without replacement, and, with the GP as
teacher, as many between points of the served range.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from geonode.config import GeodesicConfig
from geonode.data.pairs import PairSampler, keyed_generator
from geonode.errors import InputError
from geonode.flow.arctable import ArcLengthTable
from geonode.training.problem import Problem

_WAVELENGTHS, _PAIRS = 1, 2  # streams: draws of different kinds never share a generator


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


def step_counts(levels: int, config: GeodesicConfig) -> tuple[int, int, int]:
    """(micro-batches in an epoch, micro-batches per optimiser step, pairs per micro-batch) for n levels.

    A batch never holds more pairs than there are; an epoch always ends on an optimiser step.
    """
    pairs = levels * (levels - 1)
    batch = min(config.batch_size or pairs, pairs)
    micro = min(config.micro_batch or batch, batch)
    if config.all_pairs:
        return 1, 1, micro
    return -(-pairs // micro), -(-batch // micro), micro


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
        self.steps_per_epoch, self.accumulate, micro_batch = step_counts(problem.levels.shape[1], config)
        self.micro_batch = micro_batch
        self.sampler = PairSampler(problem.levels.shape[1], micro_batch, seed, self.device)
        # each level among the ascending points, the first of equal ones: a padded level stands for the last real one
        self.level_points = torch.searchsorted(problem.points, problem.level_coordinates).clamp(
            max=problem.points.shape[1] - 1
        )

    @property
    def share(self) -> float:
        """Factor on this process's loss, so that the processes' mean is the loss of the whole step."""
        width = self.problem.target.shape[2]
        used = min(self.config.wavelengths_per_step or width, width)
        return shard(torch.arange(used), self.rank, self.world)[1]

    def draw(self, epoch: int, step: int) -> tuple[Tensor, ...]:
        """What one ``step`` (of a micro-batch) of one ``epoch`` draws, the same whenever it is asked for.

        [K] numbers of wavelengths where not all are used; for explicit pairs then [M, B] points where they start and
        where they end. `gather` makes the batch of it.

        Raises:
            InputError: explicit pairs, and no such step in an epoch.
        """
        width = self.problem.target.shape[2]
        index = draw_wavelengths(width, self.config.wavelengths_per_step, self.seed, epoch, step, self.device)
        if self.world > 1:
            everything = torch.arange(width, device=self.device) if index is None else index
            index, _ = shard(everything, self.rank, self.world)
        drawn = () if index is None else (index,)
        if self.config.all_pairs:
            return drawn
        source, end = self.sampler.batch(epoch, step)
        starts, ends = self.level_points[:, source], self.level_points[:, end]
        if self.config.teacher:
            free = draw_points(self.problem.points.shape[1], self.micro_batch, self.seed, epoch, step, self.device)
            starts = torch.cat([starts, free[0].expand(self.problem.models, -1)], 1)
            ends = torch.cat([ends, free[1].expand(self.problem.models, -1)], 1)
        return *drawn, starts, ends

    def gather(self, *drawn: Tensor) -> PointsBatch | PairsBatch:
        """The batch of what `draw` gave, ``drawn``: on the device, without a look at any value."""
        problem = self.problem
        *index, starts, ends = (*drawn, None, None) if self.config.all_pairs else drawn
        index = index[0] if index else None
        target = problem.target if index is None else problem.target[:, :, index]
        if starts is None or ends is None:
            return PointsBatch(self.phi, target, problem.weight, index, problem.gamma)
        return PairsBatch(
            start=problem.points.gather(1, starts),
            end=problem.points.gather(1, ends),
            source=_rows(target, starts),
            target=_rows(target, ends),
            weight=problem.weight.gather(1, starts) * problem.weight.gather(1, ends),
            phi=_rows(self.phi, torch.cat([starts, ends], 1)),
            index=index,
            gamma=problem.gamma,
        )

    def batch(self, epoch: int, step: int) -> PointsBatch | PairsBatch:
        """The batch of one ``step`` of one ``epoch``; arguments and errors as for `draw`."""
        return self.gather(*self.draw(epoch, step))


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
