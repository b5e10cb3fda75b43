"""torch.profiler around a few epochs of a training: a table and a Chrome trace small enough to open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from geonode_runtime.files import write_atomically, write_text

_SCHEDULE = {"wait": 1, "warmup": 1, "active": 3}  # epochs
_ROWS = 40


class StepProfile:
    """A context in which `step`, called after each epoch, decides what is recorded: the third to the fifth epoch.

    Args:
        folder: of ``profile.txt`` and ``profile.json`` (for chrome://tracing or ui.perfetto.dev).
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._profiler: Any = None

    def __enter__(self) -> StepProfile:
        from torch.profiler import ProfilerActivity, profile, schedule

        activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * torch.cuda.is_available()
        self._profiler = profile(
            activities=activities, schedule=schedule(**_SCHEDULE, repeat=1), on_trace_ready=self._write
        )
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
