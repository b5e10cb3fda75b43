"""Train under torchrun, or alone, and write the losses of every epoch and the final weights.

    torchrun --nproc-per-node 2 ddp_run.py OUT.ckpt FLOW DEVICE [EPOCHS [MEMBERS]] [WORDS]
    python ddp_run.py OUT.ckpt FLOW DEVICE [EPOCHS [MEMBERS]] [WORDS]

WORDS: full, float32, unclipped, or a strategy. Without float32 in float64 (DeepSpeed: always float32). ddp with one
process is what two are compared with for speed, for one left to itself captures its steps; unclipped is what strategies
that cut parameters are compared with. Several flows with commas between them: one after another, into OUT-FLOW.ckpt,
for one start of the processes.
``full`` is the assay's 601 wavelengths with the default network sizes. The main process prints a line of JSON: seconds
of training and all-reduces. Both are counted from the second epoch on.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.strategies import DDPStrategy

from geonode.config import GeodesicConfig
from geonode.data import simulate_assay
from geonode.training import SafetensorsIO, SpectralDataModule, train_module
from geonode.training.launch import SHARDED, STRATEGIES, is_main_process
from geonode.training.lightning.monitor import Monitor

SMALL = {"metric_hidden": (8, 8), "flow_hidden": 12, "table_nodes": 16, "collocation": 8, "wavelengths_per_step": 7}


class Counter(Callback):
    """Counts all-reduces of gradients, and the time from the second epoch on."""

    def __init__(self) -> None:
        self.reduced, self.begin, self.seconds = 0, 0.0, 0.0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

        if trainer.world_size > 1 and type(trainer.strategy) is DDPStrategy:  # Lightning's DeepSpeed is a kind of DDP

            def hook(state, bucket):  # torch wants its own annotations or none
                self.reduced += 1
                return allreduce_hook(state, bucket)

            trainer.strategy.model.register_comm_hook(None, hook)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        if trainer.current_epoch == 1:
            self.begin = time.perf_counter()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if pl_module.device.type == "cuda":
            torch.cuda.synchronize()
        self.seconds = time.perf_counter() - self.begin


def main(
    out: Path,
    flow: str,
    device: str,
    epochs: int = 6,
    members: int = 2,
    full: bool = False,
    strategy: str = "auto",
    precision: Any = "64-true",
    unclipped: bool = False,
) -> None:
    changes: dict[str, Any] = {} if full else dict(SMALL)
    if strategy in SHARDED or unclipped:
        changes.update(metric_clip=0.0, flow_clip=0.0)
    if strategy.startswith("deepspeed"):
        precision = "32-true"
    if flow == "velocity":
        changes.update(batch_size=8, micro_batch=4)
    config = GeodesicConfig(flow=flow, epochs=epochs, precision=precision, members=members, **changes)
    assay = simulate_assay() if full else simulate_assay(wavelengths=np.linspace(300.0, 700.0, 21).tolist())
    counter = Counter()
    # the monitor looks at weights that FSDP has cut
    options = {"strategy": strategy, "callbacks": [counter, *([Monitor()] if strategy in SHARDED else [])]}
    module = train_module(SpectralDataModule(assay, config), config, device, **options)
    if is_main_process():
        tree = {"history": module.history, "weights": {name: p.detach() for name, p in module.ode.named_parameters()}}
        SafetensorsIO().save_checkpoint(tree, out)
        print(json.dumps({"seconds": counter.seconds, "reduced": counter.reduced}))


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[4:] if text.isdigit()]
    target, flows = Path(sys.argv[1]), sys.argv[2].split(",")
    for name in flows:
        main(
            target if len(flows) == 1 else target.with_name(f"{target.stem}-{name}.ckpt"),
            name,
            sys.argv[3],
            *numbers,
            full="full" in sys.argv,
            strategy=next((name for name in STRATEGIES if name in sys.argv), "auto"),
            precision="32-true" if "float32" in sys.argv else "64-true",
            unclipped="unclipped" in sys.argv,
        )
