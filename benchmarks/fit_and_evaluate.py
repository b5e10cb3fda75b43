"""Time of a training step in `geonode fit` and in the loop inside `geonode evaluate`: one engine, so the same.

    python benchmarks/fit_and_evaluate.py [--epochs 60] [--rounds 1] [--wavelengths 601] [--json result.json]

A step is that of one model: wall-clock time between the ends of consecutive epochs, times the threads that train side
by side, over the models; medians over the epochs, and over the rounds, in which the three take turns. `fit` trains the
members of the ensemble, once with logs and checkpoints; `evaluate` trains one model for each fold and inner fold.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import geonode
from geonode.calibration import GeodesicGP
from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset, simulate_assay
from geonode.training import fit_node_folds
from geonode.training.chunks import workers_for
from geonode_runtime.files import write_text


def step_seconds(run: Callable[[Callable[..., None]], object], models: int) -> dict[str, float]:
    """Median wall-clock and processor seconds of one model's step; ``run(progress)`` trains, an epoch a step."""
    wall, processor = [], []

    def progress(*_: object) -> None:
        wall.append(time.perf_counter())
        processor.append(time.process_time())

    run(progress)
    beside = workers_for(models, "cpu")
    return {
        "wall": beside * statistics.median(np.diff(wall)) / models,
        "processor": statistics.median(np.diff(processor)) / models,
    }


def by_fit(assay: SpectralDataset, config: GeodesicConfig, logged: bool) -> dict[str, float]:
    """`geonode.fit`, where ``logged`` with logs and checkpoints."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"log_dir": f"{folder}/log", "checkpoint": f"{folder}/run"} if logged else {}
        return step_seconds(
            lambda progress: geonode.fit(assay, config, device="cpu", progress=progress, **options),
            config.training.members,
        )


def by_evaluate(assay: SpectralDataset, config: GeodesicConfig) -> dict[str, float]:
    """The stack that `geonode evaluate` trains: every level left out, and every other beside it."""
    levels, means = assay.levels, assay.level_means()
    n = len(levels)
    left_out = [(i,) for i in range(n)] + [(i, j) for i in range(n) for j in range(n) if i != j]
    keep = [np.delete(np.arange(n), list(out)) for out in left_out]
    gps = [GeodesicGP().fit_levels(levels[k], means[k]) for k in keep]
    targets = [levels[[out[-1]]] for out in left_out]
    return step_seconds(
        lambda progress: fit_node_folds(gps, targets, assay.wavelengths, config, progress=progress), len(gps)
    )


def main() -> None:
    """Both, and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--wavelengths", type=int, default=601)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    assay = simulate_assay(wavelengths=np.linspace(300.0, 900.0, options.wavelengths).tolist())
    config = GeodesicConfig(flow="path_independent", epochs=options.epochs)
    ways: dict[str, Callable[[], dict[str, float]]] = {
        "fit": lambda: by_fit(assay, config, logged=False),
        "fit, logs and checkpoints": lambda: by_fit(assay, config, logged=True),
        "evaluate": lambda: by_evaluate(assay, config),
    }
    rounds = [{name: measure() for name, measure in ways.items()} for _ in range(options.rounds)]
    found = {
        name: {kind: statistics.median(one[name][kind] for one in rounds) for kind in ("wall", "processor")}
        for name in ways
    }
    ratios = {
        name: {kind: found[name][kind] / found["evaluate"][kind] for kind in ("wall", "processor")}
        for name in found
        if name != "evaluate"
    }
    result = {
        "ms": {name: {kind: round(1e3 * value, 2) for kind, value in row.items()} for name, row in found.items()},
        "fit / evaluate": ratios,
        "threads": torch.get_num_threads(),
        "load": os.getloadavg(),
    }
    text = json.dumps(result, indent=2) + "\n"
    print(text, end="")
    if options.json is not None:
        write_text(options.json, text)


if __name__ == "__main__":
    main()
