"""Pre-train twenty captured float64 steps of two batches on the GPUs there are: one process, or two under torchrun.

torchrun --nproc-per-node 2 two_gpus_run.py FOLDER
python two_gpus_run.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from geonode.prior.captured import CapturedLoss
from geonode.prior.settings import PretrainSettings
from geonode.prior.training import PretrainModule, pretrain
from geonode.training.launch import is_main_process

STEPS = 20


def run(folder: Path) -> PretrainModule:
    """The run; its weights are in FOLDER/last.ckpt."""
    settings = PretrainSettings(tokens=24 * 16 * 48, precision="64-true").with_changes(
        steps=STEPS, warmup=5, decay=5, accumulate=2, validate_every=10**6
    )
    return pretrain(settings, folder, accelerator="cuda")


if __name__ == "__main__":
    done = run(Path(sys.argv[1]))
    if is_main_process():
        print(f"done {done.trainer.global_step} {done.seen} captured {isinstance(done._loss, CapturedLoss)}")
