"""How many threads a piece of work is worth.

Threads of torch and of BLAS wait for each other by spinning. A step over a few thousand numbers takes longer to share
out than to do, and on a machine with many cores, or with other work on it, the waiting costs several times the work.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

PER_THREAD = 1_000_000
"""Numbers that one step has to compute for each further thread."""


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


def cores() -> int:
    """Cores that this process may use, which in a container or under a scheduler are fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
