"""SM activity and rate of mega-batch training: every ordered pair of 46 standards at 601 wavelengths in each step.

    python benchmarks/mega_batch.py [--flow path_independent] [--members 1] [--steps 2000] [--json result.json]

The step is `geonode.training`'s own, captured, its pairs drawn on the device. Counters (NVML GPM) cover the steps
alone, from a warm start. With --flow velocity the metric network is evaluated at every node of every path.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from geonode.calibration import GeodesicGP
from geonode.commands.common import nvml_probe
from geonode.config import GeodesicConfig
from geonode.data import simulate_assay
from geonode.training import BatchSource, build_problem
from geonode.training.steps import StackSteps, use_captured
from geonode_runtime.files import write_text


def run(flow: str, members: int, steps: int, precision: str) -> dict[str, object]:
    """Rate and device counters of ``steps`` mega-batch steps."""
    assay = simulate_assay(np.linspace(0.0, 60.0, 46).tolist())
    pairs = 46 * 45
    config = GeodesicConfig(
        flow=flow,  # type: ignore[arg-type]
        batch_size=pairs,
        teacher=False,
        wavelengths_per_step=None,
        epochs=steps,
        members=members,
        precision=precision,  # type: ignore[arg-type]
    )
    gp = GeodesicGP().fit_levels(assay.levels, assay.level_means())
    problem = build_problem([gp] * members, assay.wavelengths, config).to("cuda", torch.float32)
    ode = problem.build_model(config, 0)
    source = BatchSource(problem, ode.table, config)
    captured = use_captured("auto", source, ode)
    train = StackSteps(ode, source, config, capture=captured)
    for number in range(5):
        train.take(number, 0)
    torch.cuda.synchronize()
    probe = nvml_probe()
    begin = time.perf_counter()
    for number in range(steps):
        train.take(number, 0)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    counters = None if probe is None else probe()
    trajectories = members * pairs * len(assay.wavelengths)
    return {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "flow": flow,
        "precision": precision,
        "models": members,
        "pairs": pairs,
        "wavelengths": len(assay.wavelengths),
        "captured": captured,
        "ms_per_step": 1e3 * seconds / steps,
        "trajectories_per_s": trajectories * steps / seconds,
        "peak_memory_gb": torch.cuda.max_memory_allocated() / 1e9,  # the recording's: a replay allocates nothing
        "device_counters": counters,
    }


def main() -> None:
    """Run and print; ``--json`` also writes the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flow", default="path_independent", choices=["path_independent", "velocity"])
    parser.add_argument("--members", type=int, default=1)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--precision", default="32-true", choices=["32-true", "bf16-mixed", "16-mixed"])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    text = json.dumps(run(options.flow, options.members, options.steps, options.precision), indent=2) + "\n"
    if options.json is not None:
        write_text(options.json, text)
    print(text, end="")


if __name__ == "__main__":
    main()
