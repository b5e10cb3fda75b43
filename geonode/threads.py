"""How many threads a piece of work is worth.

Threads of torch and of BLAS wait for each other by spinning. A step over a few thousand numbers takes longer to share
out than to do, and on a machine with many cores, or with other work on it, the waiting costs several times the work.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

PER_THREAD = 1_000_000
"""Numbers that one step has to compute for each further thread."""

Function = TypeVar("Function", bound=Callable[..., Any])


@contextmanager
def threads_for(numbers: int) -> Iterator[int]:
    """Inside, torch and BLAS use one thread for every `PER_THREAD` numbers: at least one, and never more than they had.

    Args:
        numbers: how many numbers one step of the work computes.

    Yields:
        The number of threads.
    """
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    count = min(before, max(1, numbers // PER_THREAD))
    if count == before:
        yield count
        return
    with threadpool_limits(count):
        torch.set_num_threads(count)
        try:
            yield count
        finally:
            torch.set_num_threads(before)


def threads_by_standards(function: Function) -> Function:
    """``function(dataset, …)`` with the threads that its standards are worth: spectra² × wavelengths, the pairs that
    one step of a training looks at."""

    @functools.wraps(function)
    def inside(dataset: Any, *arguments: Any, **options: Any) -> Any:
        spectra, wavelengths = dataset.spectra.shape
        with threads_for(spectra**2 * wavelengths):
            return function(dataset, *arguments, **options)

    return inside  # type: ignore[return-value]
