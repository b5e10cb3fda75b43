"""A stack too large for a CPU's cache, trained as chunks of models side by side: one thread a chunk, one core a thread.

Models of a stack never touch each other, so the chunks are the same training. On a GPU the whole stack is one batch; on
a CPU a batch of many models only moves its activations through memory (measured: 48 models of the default size cost
46 ms a step and model as one batch, half of it in the kernel for page faults, and 19 ms one at a time).
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch
from torch import Tensor

from geonode.config import GeodesicConfig
from geonode.flow import CoupledSpectralODE
from geonode.metric import WarpMetric
from geonode.training.control import Outcome
from geonode.training.problem import Problem, place

Progress = Callable[[int, int], None]
Result = TypeVar("Result")
CACHE = 2**21
"""Bytes that one layer's activations of a chunk may take: about one core's second-level cache."""


def chunk_size(problem: Problem, config: GeodesicConfig, models: int | None = None) -> int:
    """Models a CPU trains at a time; all of them on any other device. ``models`` like those of ``problem``, where there
    are not as many as it has."""
    models = problem.models if models is None else models
    if problem.target.device.type != "cpu":
        return models
    width = min(config.wavelengths_per_step or problem.target.shape[2], problem.target.shape[2])
    hidden = max(*config.metric_hidden, config.flow_hidden)
    layer = config.table_nodes * width * hidden * problem.target.element_size()
    return max(1, min(models, CACHE // layer))


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
        problem.wavelengths, ode.config, problem.warp, problem.models, problem.low, problem.high, ode.config.seed
    )
    part = place(part, problem.target.device, problem.target.dtype)
    copy_models(ode, part, first, problem.models, back=False)
    return part


def train_chunks(
    train: Callable[[CoupledSpectralODE, Problem, slice, Progress | None], Outcome],
    problem: Problem,
    config: GeodesicConfig,
    ode: CoupledSpectralODE,
    size: int,
    progress: Progress | None = None,
) -> Outcome:
    """``train(ode, problem, rows, progress)`` on chunks of ``size`` models, in place of ``ode``; ``rows``: which."""
    starts = range(0, problem.models, size)
    workers = min(torch.get_num_threads(), len(starts)) if problem.target.device.type == "cpu" else 1
    lock, done = threading.Lock(), 0

    def advance(_: int, __: int) -> None:
        nonlocal done
        with lock:
            done += 1
            if progress is not None and done % len(starts) == 0:
                progress(done // len(starts), config.epochs)

    def one(first: int) -> Outcome:
        part = select(problem, first, min(size, problem.models - first))
        own = select_model(ode, part, first)
        outcome = train(own, part, slice(first, first + part.models), advance)
        copy_models(ode, own, first, part.models, back=True)
        return outcome

    outcomes = side_by_side(one, starts, workers)
    ode.eval()
    return Outcome.join(outcomes)


def side_by_side(action: Callable[[int], Result], items: Iterable[int], workers: int) -> list[Result]:
    """``action`` of every item, on ``workers`` threads with a core each; one alone has all of torch's."""
    threads = torch.get_num_threads()

    def one(item: int) -> Result:
        if workers > 1:
            torch.set_num_threads(1)  # of this thread
        return action(item)

    try:
        with ThreadPoolExecutor(workers) as pool:
            return [finished.result() for finished in [pool.submit(one, item) for item in items]]
    finally:
        torch.set_num_threads(threads)


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
