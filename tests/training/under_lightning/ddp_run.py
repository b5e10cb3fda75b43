"""Train under torchrun, or alone, and write the losses of every epoch and the final weights.

    torchrun --nproc-per-node 2 ddp_run.py OUT.ckpt FLOW DEVICE [EPOCHS [MEMBERS]] [WORDS]
    python ddp_run.py OUT.ckpt FLOW DEVICE [EPOCHS [MEMBERS]] [WORDS]

WORDS: full, float32, unclipped, or a strategy. Without float32 in float64 (DeepSpeed: always float32). ddp with one
process is what two are compared with for speed, for one left to itself captures its steps; unclipped is what strategies
that cut parameters are compared with. Several flows, or several strategies, with commas between them: one after
another, for one start of the processes, into OUT-FLOW.ckpt or OUT-STRATEGY-FLOW.ckpt.
``full`` is the assay's 601 wavelengths with the default network sizes. The main process prints a line of JSON: seconds
of training and all-reduces. Both are counted from the second epoch on.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch.callbacks import Callback

from geonode.config import GeodesicConfig
from geonode.data import simulate_assay
from geonode.training import SafetensorsIO, SpectralDataModule, train_module
from geonode.training.launch import SHARDED, STRATEGIES, is_main_process
from geonode.training.lightning.monitor import Monitor
from geonode.training.problem import Problem

SMALL = {"metric_hidden": (8, 8), "flow_hidden": 12, "table_nodes": 16, "collocation": 8, "wavelengths_per_step": 7}


class Counter(Callback):
    """Counts all-reduces of gradients, and the time from the second epoch on."""

    def __init__(self) -> None:
        self.reduced, self.begin, self.seconds = 0, 0.0, 0.0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        steps = pl_module._steps
        if steps is None or steps.control.reduce is None:
            return
        reduce = steps.control.reduce

        def counted(value: torch.Tensor) -> torch.Tensor:
            self.reduced += value is steps.optimizer.gradient
            return reduce(value)

        steps.control.reduce = counted

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        if trainer.current_epoch == 1:
            self.begin = time.perf_counter()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if pl_module.device.type == "cuda":
            torch.cuda.synchronize()
        self.seconds = time.perf_counter() - self.begin


def start_away() -> None:
    """Models start away from their least-squares optimum: there the best state would be the start."""
    fresh = Problem.build_model

    def build(self: Problem, *arguments: Any) -> Any:
        ode = fresh(self, *arguments)
        draws = torch.Generator().manual_seed(7)
        with torch.no_grad():
            for parameter in [*ode.metric.parameters(), *ode.flow.parameters()]:
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=draws, dtype=torch.float64).to(parameter))
        return ode

    Problem.build_model = build  # type: ignore[method-assign]


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
) -> dict[str, float]:
    """One training, kept in ``out`` by the main process: seconds and all-reduces."""
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
    return {"seconds": counter.seconds, "reduced": counter.reduced}


def of_flow(out: Path, flow: str) -> Path:
    """Where one flow, or strategy, of several is kept."""
    return out.with_name(f"{out.stem}-{flow}.ckpt")


if __name__ == "__main__":
    start_away()
    numbers = [int(text) for text in sys.argv[4:] if text.isdigit()]
    target, flows = Path(sys.argv[1]), sys.argv[2].split(",")
    asked = next((word.split(",") for word in sys.argv[4:] if set(word.split(",")) <= set(STRATEGIES)), ["auto"])
    for strategy, name in itertools.product(asked, flows):
        place = target if len(asked) == 1 else of_flow(target, strategy)
        counts = main(
            place if len(flows) == 1 else of_flow(place, name),
            name,
            sys.argv[3],
            *numbers,
            full="full" in sys.argv,
            strategy=strategy,
            precision="32-true" if "float32" in sys.argv else "64-true",
            unclipped="unclipped" in sys.argv,
        )
        if is_main_process():
            print(json.dumps(counts))
