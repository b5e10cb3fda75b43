"""A torch.profiler trace of a few steps of one case, small enough to open (ui.perfetto.dev, TensorBoard), and what the
step spends beside its work."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from geonode.bench import step_trace
from geonode.bench.case import Case, Setting, Work
from geonode.errors import InputError
from geonode_runtime.files import write_atomically, write_text

STEPS = 3
SETTLE = 12
"""Steps before those that are recorded: warm-up, compilation, the capture of a graph."""
MOST_EVENTS = 400_000
"""So many events a trace keeps, of about 250 bytes each before compression; viewers open that. A longer one is cut."""


def record(case: Case, setting: Setting, folder: str | Path) -> tuple[list[Path], dict[str, Any]]:
    """Profile a few steps at the case's first size.

    Args:
        case: what to profile.
        setting: where.
        folder: gets ``CASE.pt.trace.json.gz`` (the name that TensorBoard's plug-in looks for), ``CASE.txt``: operators
            by time, ``CASE.step.json``: the breakdown, and TensorBoard's scalars where that is installed.

    Returns:
        The files written, and the breakdown of `geonode.bench.step_trace`.

    Raises:
        InputError: the case cannot run here, or there is no folder of that name and none can be made.
    """
    reason = case.absent(setting)
    if reason:
        raise InputError(f"--profile: {case.name} cannot run here ({reason}).")
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--profile {folder}: {error.strerror}; name a folder to write in.") from None
    profile, events = traced(case.build(setting, next(iter(case.sizes(setting)))), setting)
    found = step_trace.breakdown(events)
    trace = folder / f"{case.name}.pt.trace.json.gz"
    found["cut"] = write_trace(trace, events)
    order = "self_device_time_total" if setting.device == "cuda" else "self_cpu_time_total"
    table, step = folder / f"{case.name}.txt", folder / f"{case.name}.step.json"
    write_text(table, profile.key_averages().table(sort_by=order, row_limit=40))
    write_text(step, json.dumps(found, indent=1) + "\n")
    return [trace, table, step, *_tensorboard(profile, folder, order)], found


def traced(
    work: Work, setting: Setting, steps: int = STEPS, warm_up: int = 2
) -> tuple[torch.profiler.profile, list[step_trace.Event]]:
    """A few steps under the profiler, each in an annotation, after ``warm_up``: what was recorded, and its events."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if setting.device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    profile = torch.profiler.profile(activities=activities)
    with quiet():
        if work.drive is not None:
            _driven(work, profile, steps, setting.device)
        else:
            for i in range(warm_up):
                work.run(i % work.rotations)
            _wait(setting.device)
            with profile:
                for i in range(steps):
                    with torch.profiler.record_function(step_trace.STEP):
                        work.run(i % work.rotations)
                _wait(setting.device)
        with tempfile.TemporaryDirectory() as place:
            path = str(Path(place) / "trace.json")
            profile.export_chrome_trace(path)
            return profile, step_trace.read(path)


def _driven(work: Work, profile: torch.profiler.profile, steps: int, device: str) -> None:
    """Steps of a loop of its own, which calls back after each."""
    assert work.drive is not None
    done, step = 0, torch.profiler.record_function(step_trace.STEP)

    def after() -> bool:
        nonlocal done, step
        done += 1
        if done > SETTLE:
            step.__exit__(None, None, None)
        if done == SETTLE:
            _wait(device)
            profile.start()
        if done == SETTLE + steps:
            _wait(device)
            profile.stop()
            return False
        if done >= SETTLE:
            step = torch.profiler.record_function(step_trace.STEP)
            step.__enter__()
        return True

    work.drive(after)


def write_trace(path: Path, events: list[step_trace.Event], most: int = MOST_EVENTS) -> int:
    """Write a trace that opens, gzipped; returns how many events were cut off behind the last that it keeps."""
    names = [e for e in events if e.get("ph") == "M"]
    timed = sorted((e for e in events if e.get("ph") != "M" and "ts" in e), key=lambda e: e["ts"])
    kept = names + timed[:most]
    text = json.dumps({"schemaVersion": 1, "traceEvents": kept}, separators=(",", ":"))
    write_atomically(path, lambda place: Path(place).write_bytes(gzip.compress(text.encode(), 6)))
    return len(timed) - min(len(timed), most)


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings that torch's profiler has for every short recording."""
    import warnings

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Pp]rofiler.*")
        yield


def _tensorboard(profile: torch.profiler.profile, folder: Path, order: str) -> list[Path]:
    """Time by operator as TensorBoard scalars, where TensorBoard is installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return []
    before = set(folder.glob("events.out.*"))
    with SummaryWriter(str(folder)) as writer:
        for row in sorted(profile.key_averages(), key=lambda r: -getattr(r, order))[:20]:
            writer.add_scalar(f"microseconds/{row.key.replace('/', '_')}", getattr(row, order))
    return sorted(set(folder.glob("events.out.*")) - before)
