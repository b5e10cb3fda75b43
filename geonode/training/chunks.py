"""A stack too large for a CPU's cache, trained as chunks of models side by side: one thread a chunk, one core a thread.

Models of a stack never touch each other, so the chunks are the same training, and their threads wait for each other
only at the end of an epoch. They are counted by cores (`workers_for`), whatever the size of a step; the threads that
share out one step, which wait for each other in every product of it, by that size (`step_size`, `geonode.threads`). On
a GPU the whole stack is one batch; on a CPU a batch of many models only moves its activations through memory (measured:
48 models of the default size cost 46 ms a step and model as one batch, half of it in the kernel for page faults, and
19 ms one at a time).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor

from geonode.config import GeodesicConfig
from geonode.flow import CoupledSpectralODE
from geonode.metric import WarpMetric
from geonode.training.problem import Problem

Item = TypeVar("Item")
Result = TypeVar("Result")
CACHE = 2**21
"""Bytes that one layer's activations of a chunk may take: about one core's second-level cache."""


def chunk_size(problem: Problem, config: GeodesicConfig, models: int | None = None) -> int:
    """Models a CPU trains at a time; all of them on any other device. ``models`` like those of ``problem``, where there
    are not as many as it has."""
    models = problem.models if models is None else models
    if problem.target.device.type != "cpu":
        return models
    width = min(config.training.wavelengths_per_step or problem.target.shape[2], problem.target.shape[2])
    hidden = max(*config.metric.hidden, config.flow.hidden)
    layer = config.metric.table_nodes * width * hidden * problem.target.element_size()
    return max(1, min(models, CACHE // layer))


def step_size(problem: Problem, models: int) -> int:
    """Numbers that a step of ``models`` of ``problem`` computes: of each, pairs of levels × wavelengths."""
    return models * problem.levels.shape[1] ** 2 * problem.target.shape[2]


def select(problem: Problem, first: int, count: int) -> Problem:
    """Models ``first`` … ``first + count − 1`` of a stacked problem as a problem of their own."""
    rows = slice(first, first + count)
    warp = problem.warp
    part = WarpMetric(warp.logits[rows], warp.c0[rows], warp.c_min[rows], warp.c_max[rows], trainable=False)
    tensors = {
        name: value[rows]
        for name, value in vars(problem).items()
        if isinstance(value, Tensor) and name != "wavelengths"
    }
    return dataclasses.replace(problem, warp=part, **tensors)


def select_model(ode: CoupledSpectralODE, problem: Problem, first: int) -> CoupledSpectralODE:
    """Models from ``first`` on of a stacked model, as many as ``problem`` (from `select`) has: copies."""
    part = CoupledSpectralODE(
        problem.wavelengths,
        ode.config,
        problem.warp,
        problem.models,
        problem.low,
        problem.high,
    )
    part = part.place(problem.target.device, problem.target.dtype)
    copy_models(ode, part, first, problem.models, back=False)
    return part


@contextmanager
def side_by_side(workers: int) -> Iterator[Callable[[Callable[[Item], Result], Sequence[Item]], list[Result]]]:
    """``each(action, items)`` inside the block: ``action`` of every item, on ``workers`` threads with a core each.

    Where one thread is enough it is this one, with those that torch has.
    """
    if workers <= 1:
        yield lambda action, items: [action(item) for item in items]
        return
    threads = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(workers, initializer=lambda: torch.set_num_threads(1)) as pool:  # of each thread
            yield lambda action, items: list(pool.map(action, items))
    finally:
        torch.set_num_threads(threads)


def workers_for(stacks: int, device: torch.device | str) -> int:
    """Threads that train ``stacks`` side by side: torch's number of threads on a CPU, one elsewhere. To be asked before
    `geonode.threads.threads_for` limits that number."""
    return min(torch.get_num_threads(), stacks) if torch.device(device).type == "cpu" else 1


@torch.no_grad()
def copy_models(whole: CoupledSpectralODE, part: CoupledSpectralODE, first: int, count: int, back: bool) -> None:
    """Parameters of models ``first`` … ``first + count − 1`` of ``whole`` to ``part``, or ``back`` from it."""
    own = dict(part.named_parameters())
    for name, parameter in whole.named_parameters():
        row = parameter[first : first + count]
        if back:
            row.copy_(own[name])
        else:
            own[name].copy_(row)
