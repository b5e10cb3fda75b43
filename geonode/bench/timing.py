"""Time of a call: medians and quantiles of raw samples, after warm-up, with inputs rotated.

CUDA: events around each call, the L2 cache overwritten before it, so that neither earlier inputs nor the host's queue
flatter. CPU and latencies: the wall clock.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch

Call = Callable[[int], Any]
LONG = 0.2  # a call of more seconds is measured once: its samples are its activity window too


def quantiles(samples: Sequence[float]) -> dict[str, float]:
    """Median with the 20 and 80 % quantiles, by linear interpolation between order statistics."""
    ordered = sorted(samples)
    if len(ordered) == 1:
        return {"median": ordered[0], "q20": ordered[0], "q80": ordered[0]}
    cuts = statistics.quantiles(ordered, n=10, method="inclusive")
    return {"median": statistics.median(ordered), "q20": cuts[1], "q80": cuts[7]}


def warm_up(run: Call, rotations: int, device: str, seconds: float = 0.1) -> float:
    """Call until ``seconds`` have passed (an idle card's clocks rise in that time); returns the last call's seconds."""
    begin, last, i = time.perf_counter(), 0.0, 0
    while i < 1 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        run(i % rotations)
        synchronize(device)
        last, i = time.perf_counter() - start, i + 1
    return last


def synchronize(device: str) -> None:
    """Wait for the device."""
    if device == "cuda":
        torch.cuda.synchronize()


def count_for(call_seconds: float, budget: float, least: int = 3, most: int = 200) -> int:
    """How many samples fit the budget; never fewer than ``least``."""
    return max(least, min(most, int(budget / max(call_seconds, 1e-7))))


def wall_samples(run: Call, rotations: int, device: str, budget: float) -> list[float]:
    """Milliseconds of each call by the wall clock, synchronised."""
    samples = []
    for i in range(count_for(warm_up(run, rotations, device), budget)):
        start = time.perf_counter()
        run(i % rotations)
        synchronize(device)
        samples.append(1e3 * (time.perf_counter() - start))
    return samples


def event_samples(run: Call, rotations: int, budget: float) -> list[float]:
    """Milliseconds of each call by CUDA events, the L2 cache overwritten in between."""
    last = warm_up(run, rotations, "cuda")
    size = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
    flush = torch.empty(max(2 * size, 1 << 26), dtype=torch.int8, device="cuda")
    events = []
    for i in range(count_for(last + 1e-4, budget)):
        flush.zero_()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run(i % rotations)
        end.record()
        events.append((start, end))
    torch.cuda.synchronize()
    return [start.elapsed_time(end) for start, end in events]


def median_ms(run: Call, rotations: int, device: str, budget: float) -> float:
    """The median alone: CUDA events on a GPU, else the wall clock; one call where a call is long."""
    if warm_up(run, rotations, device, 0.0) > LONG:
        found = long_calls(run, rotations, device, 0.0)
        if found is not None:
            return found["samples_ms"][0]
    if device == "cuda":
        return statistics.median(event_samples(run, rotations, budget))
    return statistics.median(wall_samples(run, rotations, device, budget))


def host_cost(run: Call, rotations: int, repeats: int = 20) -> float:
    """Median microseconds the host spends launching one call while the device is idle."""
    samples = []
    for i in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run(i % rotations)
        samples.append(1e6 * (time.perf_counter() - start))
    torch.cuda.synchronize()
    return statistics.median(samples)


def long_calls(run: Call, rotations: int, device: str, seconds: float) -> dict[str, Any] | None:
    """Calls too long to repeat, one after another until ``seconds`` have passed; None where the first is not long.

    Samples by the wall clock, host cost (until the call returns, before the device has finished), and the window.
    """
    samples: list[float] = []
    returned: list[float] = []
    begin = time.monotonic()
    while not samples or time.monotonic() - begin < seconds:
        start = time.perf_counter()
        run(len(samples) % rotations)
        returned.append(1e6 * (time.perf_counter() - start))
        synchronize(device)
        samples.append(1e3 * (time.perf_counter() - start))
        if samples[0] < 1e3 * LONG:
            return None
    window = {"begin": begin, "end": time.monotonic(), "calls": len(samples)}
    return {"samples_ms": samples, "host_us": statistics.median(returned), "window": window}


class Steps:
    """The steps of a loop that is not ours, by CUDA events at their ends; called after each, False once it is enough.

    The host is held eight to sixteen steps ahead, so that the queue neither drains nor grows. The first ``skip`` steps
    (compilation, recording) are left out.
    """

    def __init__(self, seconds: float, least: int = 20, skip: int = 10) -> None:
        self.seconds, self.least, self.skip = seconds, least, skip
        self._events: list[Any] = []
        self._host: list[float] = []
        self._count, self._left = 0, 0.0
        self.begin = self.end = time.monotonic()

    def __call__(self) -> bool:
        self._count += 1
        self._host.append(time.perf_counter() - self._left)
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        self._events.append(event)
        if self._count == self.skip:
            torch.cuda.synchronize()
            self.begin = time.monotonic()
        elif self._count % 8 == 0 and self._count > 8:
            self._events[-9].synchronize()
        more = self._count < self.skip + self.least or time.monotonic() - self.begin < self.seconds
        if not more:
            torch.cuda.synchronize()
            self.end = time.monotonic()
        self._left = time.perf_counter()
        return more

    def result(self, most: int = 400) -> dict[str, Any]:
        """Samples (at most so many of them, evenly), host cost, and the window."""
        ends = self._events[self.skip - 1 :]
        times = [a.elapsed_time(b) for a, b in pairwise(ends)]
        window = {"begin": self.begin, "end": self.end, "calls": len(times)}
        host = 1e6 * statistics.median(self._host[self.skip :])
        return {"samples_ms": times[:: -(-len(times) // most)], "host_us": host, "window": window}


def captured(run: Call, rotations: int, state: Sequence[Any]) -> Call:
    """One CUDA graph per input set; the returned call replays them."""
    from geonode_kernels import CapturedStep

    token = torch.zeros(1, device="cuda")
    graphs = [CapturedStep(lambda _, i=i: run(i), [token], state) for i in range(rotations)]
    return lambda i: graphs[i]()


def sustain(run: Call, rotations: int, device: str, seconds: float, call_seconds: float) -> tuple[float, float, int]:
    """Run without a pause for at least ``seconds``; (begin, end) on the monotonic clock and the number of calls.

    On CUDA the host stays one batch ahead and waits for the batch before: the queue neither drains nor grows.
    """
    batch = max(1, int(0.05 / max(call_seconds, 1e-7)))
    waiting: list[Any] = []
    calls, begin = 0, time.monotonic()
    while time.monotonic() - begin < seconds:
        for _ in range(batch):
            run(calls % rotations)
            calls += 1
        if device == "cuda":
            event = torch.cuda.Event()
            event.record()
            waiting.append(event)
            if len(waiting) > 1:
                waiting.pop(0).synchronize()
    synchronize(device)
    return begin, time.monotonic(), calls
