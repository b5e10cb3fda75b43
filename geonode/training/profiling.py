"""torch.profiler around a few epochs of a training: a table and a Chrome trace small enough to open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from geonode_runtime.files import write_atomically, write_text

_ACTIVE = 3  # epochs
_ROWS = 40


class StepProfile:
    """A context in which `step`, called after each epoch, decides what is recorded: the second to the fourth epoch.

    Args:
        folder: of ``profile.txt`` and ``profile.json`` (for chrome://tracing or ui.perfetto.dev).
        epochs: of the training; of fewer than four the rest is recorded, of a single one that.
    """

    def __init__(self, folder: str | Path, epochs: int) -> None:
        self.folder, self.epochs = Path(folder), epochs
        self._profiler: Any = None

    def __enter__(self) -> StepProfile:
        from torch.profiler import ProfilerActivity, profile, schedule

        activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * torch.cuda.is_available()
        warmup = min(1, self.epochs - 1)
        times = schedule(wait=0, warmup=warmup, active=min(_ACTIVE, self.epochs - warmup), repeat=1)
        self._profiler = profile(activities=activities, schedule=times, on_trace_ready=self._write)
        self._profiler.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._profiler.__exit__(*error)

    def step(self) -> None:
        """An epoch has ended."""
        self._profiler.step()

    def _write(self, profiler: Any) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        key = "self_cuda_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
        write_text(self.folder / "profile.txt", profiler.key_averages().table(sort_by=key, row_limit=_ROWS) + "\n")
        write_atomically(self.folder / "profile.json", profiler.export_chrome_trace)
