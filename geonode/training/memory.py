"""Training that fits: the largest step found by trying, and a smaller one where memory runs out all the same."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import torch

from geonode.config import GeodesicConfig
from geonode.errors import DeviceError
from geonode.training.batches import BatchSource, step_counts
from geonode.training.chunks import select
from geonode.training.loss import build_losses
from geonode.training.problem import Problem
from geonode_runtime.wording import argument

Result = TypeVar("Result")
MOST_PARTS = 64
"""Of the wavelengths, into which a step is cut at most."""
# pairs of a thread and a stream that multiply matrices in a training by captured steps: the calling thread on the
# ordinary stream, both it and autograd's on the stream that warms up and on the one that records
_WORKSPACES = 5


def workspace_bytes(device: torch.device | str) -> int:
    """What cuBLAS holds on a CUDA device, however small the model: a workspace for each thread's handle and stream, in
    torch's allocator.

    32 MiB from compute capability 9.0 on, else 8.1 MiB (``CUBLAS_WORKSPACE_CONFIG`` :4096:2:16:8; torch's
    ``aten/src/ATen/cuda/CublasHandlePool.cpp``). Nothing on other devices.
    """
    if torch.device(device).type != "cuda":
        return 0
    return workspaces_of(torch.cuda.get_device_capability(device)[0])


def workspaces_of(major: int) -> int:
    """`workspace_bytes` by the major compute capability."""
    return _WORKSPACES * ((32 * 2**20) if major >= 9 else (2 * 4096 + 8 * 16) * 2**10)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out, on a GPU or a CPU."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and ("out of memory" in text or "can't allocate memory" in text)


def largest_that_fits(attempt: Callable[[int], object], highest: int, start: int = 1) -> int:
    """The largest size up to ``highest`` for which ``attempt(size)`` does not run out of memory.

    Doubles from ``start`` until it fails, then halves the gap to within an eighth. After every failure the device's
    cache is emptied. Other errors are raised as they are.

    Raises:
        DeviceError: not even one fits.
    """
    fits, fails = 0, highest + 1
    size = min(start, highest)
    while True:
        if _tried(attempt, size):
            fits = size
        else:
            fails = size
        if fits == highest:
            return highest
        if fails <= 1:
            raise DeviceError("Not even a batch of one fits into memory; use a smaller model or another device.")
        if fails > highest and fits:
            size = min(2 * fits, highest)
        elif not fits:
            size = fails // 2
        elif fails - fits <= max(1, fits // 8):
            return fits
        else:
            size = (fits + fails) // 2


@dataclass(frozen=True)
class Size:
    """How much of a training is on its device at a time.

    Attributes:
        models: of the stack.
        config: whose ``micro_batch`` says how many pairs.
        recompute: parts of the wavelengths whose activations are computed again in the backward pass; 0 keeps them.
    """

    models: int
    config: GeodesicConfig
    recompute: int = 0

    def smaller(self, levels: int, cut_steps: bool) -> Size:
        """The next smaller one: a smaller step where ``cut_steps`` allows it and there is one, else half the models.

        Raises:
            DeviceError: there is none.
        """
        if cut_steps and self.config.all_pairs and self.recompute < MOST_PARTS:
            return replace(self, recompute=max(2, 2 * self.recompute))
        if cut_steps and not self.config.all_pairs:
            micro = step_counts(levels, self.config).micro_batch
            if micro > 1:
                return replace(self, config=with_micro_batch(self.config, micro // 2, levels))
        if self.models > 1:
            return replace(self, models=self.models // 2)
        more = "use a smaller model or another device" if cut_steps else f"use {argument('batch', 'auto')}"
        raise DeviceError(f"Not even one model fits into memory; {more}.")

    def __str__(self) -> str:
        if self.config.all_pairs:
            step = f"{self.recompute} parts of the wavelengths" if self.recompute else "whole steps"
        else:
            step = (
                f"micro-batches of {self.config.training.micro_batch}"
                if self.config.training.micro_batch
                else "whole batches"
            )
        return f"{self.models} models at a time, {step}"


def shrinking(
    action: Callable[[Size], Result], size: Size, levels: int, cut_steps: bool, say: Callable[[str], object]
) -> Result:
    """``action(size)``; where memory runs out, again with `Size.smaller`, until it runs or there is none.

    Raises:
        DeviceError: not even the smallest fits.
    """
    while True:
        try:
            return action(size)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        release()
        size = size.smaller(levels, cut_steps)
        say(f"Out of memory: anew with {size}.")


def fitted(problem: Problem, size: Size) -> Size:
    """The largest micro-batch up to that of ``size`` or the batch, or the fewest parts of the wavelengths from those of
    ``size`` on, with which one step of a stack fits, found by trying.

    The mega-batch stays what it was: gradients add up to it. Where every pair is a difference of one potential there
    are no micro-batches, and the wavelengths are taken in parts whose activations are computed again.

    Args:
        problem: on its device; the first ``size.models`` of its models are tried.
        size: what is wanted.

    Raises:
        DeviceError: not even the smallest step fits.
    """
    problem, levels = select(problem, 0, size.models), problem.levels.shape[1]
    if size.config.all_pairs:
        return shrinking(lambda one: (try_step(problem, one), one)[1], size, levels, True, lambda _: None)
    counts = step_counts(levels, size.config)
    found = largest_that_fits(
        lambda micro: try_step(problem, replace(size, config=with_micro_batch(size.config, micro, levels))),
        counts.batch,
        counts.micro_batch,
    )
    return replace(size, config=with_micro_batch(size.config, found, levels))


def with_micro_batch(config: GeodesicConfig, micro: int, levels: int) -> GeodesicConfig:
    """Settings with micro-batches of up to ``micro`` pairs; where a batch size is set, of its largest such divisor."""
    batch = config.training.batch_size
    size = min(micro, batch or levels * (levels - 1))
    while batch and batch % size:
        size -= 1
    return config.replace(micro_batch=size)


def try_step(problem: Problem, size: Size) -> None:
    """One forward and backward pass, with an optimiser's state beside it."""
    config = size.config
    ode = problem.build_model(config, config.training.seed)
    state = [torch.zeros_like(p) for p in ode.parameters() for _ in range(3)]  # gradient and two moments
    batch = BatchSource(problem, ode.table, config, config.training.seed).batch(0, 0)
    build_losses(recompute=size.recompute)(ode, batch, config.loss.at(1.0))["total"].sum().backward()
    del state


def _tried(attempt: Callable[[int], object], size: int) -> bool:
    try:
        attempt(size)
        return True
    except Exception as error:
        if not is_out_of_memory(error):
            raise
    release()
    return False


def release() -> None:
    """Give back what nothing holds any more, the device's cache included."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
