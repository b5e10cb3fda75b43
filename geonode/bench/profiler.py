"""A torch.profiler trace of one case, for chrome://tracing and TensorBoard."""

from __future__ import annotations

from pathlib import Path

import torch

from geonode.bench.case import Case, Setting
from geonode.errors import InputError
from geonode_runtime.files import write_atomically, write_text


def record(case: Case, setting: Setting, folder: str | Path, steps: int = 5) -> list[Path]:
    """Profile ``steps`` calls at the case's first size; returns the files written.

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
    size = next(iter(case.sizes(setting)))
    work = case.build(setting, size)
    work.run(0)
    activities = [torch.profiler.ProfilerActivity.CPU]
    if setting.device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        for i in range(steps):
            work.run(i % work.rotations)
        if setting.device == "cuda":
            torch.cuda.synchronize()
    trace = folder / f"{case.name}.pt.trace.json"  # the name TensorBoard's profiler plug-in looks for
    write_atomically(trace, profile.export_chrome_trace)
    order = "self_device_time_total" if setting.device == "cuda" else "self_cpu_time_total"
    table = folder / f"{case.name}.txt"
    write_text(table, profile.key_averages().table(sort_by=order, row_limit=40))
    return [trace, table, *_tensorboard(profile, folder, order)]


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
