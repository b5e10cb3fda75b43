"""A training made to fit its device: the largest micro-batch, or the fewest recomputed parts, found by trying."""

from __future__ import annotations

import torch

from geonode.config import GeodesicConfig
from geonode.errors import DeviceError
from geonode.training.batches import BatchSource, step_counts
from geonode.training.loss import build_losses
from geonode.training.memory import is_out_of_memory, largest_that_fits, release
from geonode.training.precision import dtype_of
from geonode.training.problem import Problem

_MOST_PARTS = 64


def fitted(problem: Problem, config: GeodesicConfig, device: torch.device | str) -> tuple[GeodesicConfig, int]:
    """Settings with the largest micro-batch that fits on ``device``, and the parts to recompute (0: none).

    The mega-batch stays what it was: gradients accumulate to it. Where every pair is a difference of one potential
    there are no micro-batches, and the wavelengths are taken in parts whose activations are computed again.

    Raises:
        DeviceError: not even a batch of one fits.
    """
    dtype = dtype_of(config)
    problem = problem.to(device, dtype)
    levels = problem.levels.shape[1]
    if config.all_pairs:
        return config, _parts(problem, config)
    _, _, micro = step_counts(levels, config)
    batch = min(config.batch_size or levels * (levels - 1), levels * (levels - 1))
    found = largest_that_fits(lambda size: _try(problem, with_micro_batch(config, batch, size), 0), batch, micro)
    return with_micro_batch(config, batch, found), 0


def smaller(config: GeodesicConfig, recompute: int, levels: int) -> tuple[GeodesicConfig, int]:
    """The next smaller settings, after memory ran out all the same.

    Raises:
        DeviceError: there are none.
    """
    if config.all_pairs:
        if recompute >= _MOST_PARTS:
            raise DeviceError("Not even one part of the wavelengths fits into memory; use a smaller model or device.")
        return config, max(2, 2 * recompute)
    _, _, micro = step_counts(levels, config)
    if micro == 1:
        raise DeviceError("Not even a batch of one fits into memory; use a smaller model or another device.")
    batch = min(config.batch_size or levels * (levels - 1), levels * (levels - 1))
    return with_micro_batch(config, batch, micro // 2), recompute


def with_micro_batch(config: GeodesicConfig, batch: int, size: int) -> GeodesicConfig:
    """Settings with mega-batches of ``batch`` pairs in micro-batches of the largest divisor up to ``size``."""
    divisor = next(number for number in range(min(size, batch), 0, -1) if batch % number == 0)
    return config.replace(batch_size=batch, micro_batch=divisor)


def _parts(problem: Problem, config: GeodesicConfig) -> int:
    parts = 0
    while True:
        try:
            _try(problem, config, parts)
            return parts
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        release()
        _, parts = smaller(config, parts, problem.levels.shape[1])


def _try(problem: Problem, config: GeodesicConfig, recompute: int) -> None:
    """One forward and backward pass, with an optimiser's state beside it."""
    ode = problem.build_model(config, config.seed)
    state = [torch.zeros_like(p) for p in ode.parameters() for _ in range(3)]  # gradient and two moments
    batch = BatchSource(problem, ode.table, config, config.seed).batch(0, 0)
    build_losses(recompute=recompute)(ode, batch, config.loss.at(1.0))["total"].sum().backward()
    del state
