"""Train in a child that is killed (SIGKILL) at random moments, resume each time, compare with the uninterrupted run.

    python kill_and_resume.py FOLDER KILLS SEED

Prints a line of JSON: kills in mid-training, torn files met, whether the final weights are equal to the bit. The
children are forks of one process, so that a kill costs no start of an interpreter.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch

from geonode.config import GeodesicConfig
from geonode.data import simulate_assay
from geonode.training import SafetensorsIO, SpectralDataModule, train_module
from geonode.training.checkpoint import newest_checkpoint

EPOCHS = 30


def main(folder: Path, kills: int, seed: int) -> None:
    torch.set_num_threads(1)
    assay = simulate_assay(wavelengths=np.linspace(300.0, 700.0, 21).tolist())
    config = GeodesicConfig(
        metric_hidden=(8, 8), flow_hidden=12, table_nodes=16, collocation=8, epochs=EPOCHS, wavelengths_per_step=7
    )
    data = SpectralDataModule(assay, config)
    _ = data.problem  # before the first fork
    result, checkpoints = folder / "weights.ckpt", folder / "run"

    def train(target: Path, **options: object) -> None:
        module = train_module(data, config, "cpu", **options)  # type: ignore[arg-type]
        weights = {name: p.detach() for name, p in module.ode.named_parameters()}
        SafetensorsIO().save_checkpoint(weights, target)

    start = time.monotonic()
    train(folder / "whole.ckpt")
    duration = time.monotonic() - start
    draw, killed, unreadable = random.Random(seed), 0, 0
    for _ in range(20 * kills):
        child = os.fork()
        if child == 0:
            train(result, checkpoint=checkpoints, resume=True)
            os._exit(0)
        if killed < kills:
            time.sleep(draw.uniform(0.05, 0.6) * duration)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            killed += 1
            unreadable += _unreadable(checkpoints)
        elif killed < kills:  # it had finished: begin anew
            for file in [*checkpoints.glob("*"), result]:
                file.unlink(missing_ok=True)
        else:
            break
    io = SafetensorsIO()
    whole, resumed = io.load_checkpoint(folder / "whole.ckpt"), io.load_checkpoint(result)
    equal = whole.keys() == resumed.keys() and all(torch.equal(whole[name], resumed[name]) for name in whole)
    print(json.dumps({"killed": killed, "unreadable": unreadable, "equal": equal}))


def _unreadable(folder: Path) -> int:
    """1 where a finished checkpoint cannot be read."""
    with warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("always")
        newest_checkpoint(folder)
    return sum("passed over" in str(item.message) for item in met)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
