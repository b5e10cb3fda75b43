"""Training that fits: the largest stack or micro-batch found by trying, and running out of memory survived."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import TypeVar

import torch

from geonode.errors import DeviceError

Result = TypeVar("Result")
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


def shrinking(action: Callable[[int], Result], size: int, say: Callable[[str], object]) -> Result:
    """``action(size)``; where memory runs out, again with half the size, until it runs or one does not fit.

    Raises:
        DeviceError: not even one fits.
    """
    while True:
        try:
            return action(size)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            if size == 1:
                raise DeviceError(
                    "Not even a batch of one fits into memory; use a smaller model or another device."
                ) from None
        release()
        size //= 2
        say(f"Out of memory: going on with {size} at a time.")


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
