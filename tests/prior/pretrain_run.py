"""Pre-train something tiny in float64, alone or under torchrun: the same steps either way.

    torchrun --nproc-per-node 2 pretrain_run.py FOLDER [STEPS]
    python pretrain_run.py FOLDER [STEPS]

Three batches a step: they share out unevenly between two processes. The state of step 2 stays in FOLDER/last-2.ckpt.
"""

from __future__ import annotations

import dataclasses
import shutil
import sys
from pathlib import Path
from typing import Any

from geonode.prior.network import NetworkSize
from geonode.prior.settings import PretrainSettings, cpu_settings
from geonode.prior.training import PretrainModule, pretrain
from geonode.training.launch import is_main_process


def settings(steps: int = 4, **changes: Any) -> PretrainSettings:
    """Of the run."""
    tiny = dataclasses.replace(
        cpu_settings(), size=NetworkSize(width=16, blocks=1, heads=2), tokens=6 * 10 * 16, precision="64-true"
    )
    kinds = {"wavelengths": 16, "anchors": 12, "validate_every": 2, "levels": {4: 1.0, 5: 1.0}, "accumulate": 3}
    return tiny.with_changes(steps=steps, warmup=1, decay=0, **{**kinds, **changes})


def run(folder: Path, steps: int = 4, **options: Any) -> PretrainModule:
    """The run, whose first state is kept apart."""

    def report(line: dict[str, Any]) -> None:
        if "validation" in line and line["step"] == 4 and (folder / "last.ckpt").is_file():  # before it is written over
            shutil.copy(folder / "last.ckpt", folder / "last-2.ckpt")

    return pretrain(settings(steps), folder, accelerator="cpu", report=report, **options)


if __name__ == "__main__":
    done = run(Path(sys.argv[1]), *map(int, sys.argv[2:]))
    if is_main_process():
        print(f"done {done.trainer.global_step} {done.seen}")
