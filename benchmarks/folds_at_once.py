"""Six-fold leave-one-out × 8 seeds × 500 epochs on 6 × 601 spectra as one batch of 48 models.

    python benchmarks/folds_at_once.py [--device cuda] [--seeds 8] [--epochs 500] [--compile] [--json result.json]

Measured from a warm start (one short training of the same shapes comes first): fitting the six Gaussian processes,
stacking the problem, training, and predicting every held-out level with every model. Then a few models are trained
alone in float64 for a few epochs, and their weights are compared with the same models' of the batch.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from geonode.calibration import GeodesicGP
from geonode.commands.common import nvml_probe
from geonode.config import GeodesicConfig
from geonode.data import simulate_assay
from geonode.training import Problem, build_problem, predict, train
from geonode.training.chunks import select
from geonode_runtime.files import write_text


def stacked_problem(config: GeodesicConfig, seeds: int, device: str, dtype: torch.dtype) -> tuple[Problem, np.ndarray]:
    """The 6 × ``seeds`` models' problem, the folds outermost, and the held-out level of each model."""
    assay = simulate_assay()
    levels, means = assay.levels, assay.level_means()
    training = [np.delete(np.arange(len(levels)), i) for i in range(len(levels))]
    deviations = assay.replicate_deviations() if len(assay.spectra) > len(levels) else None
    index = assay.level_index if deviations is not None else None
    gps = GeodesicGP().fit_folds(levels, means, training, deviations, index)
    held_out = np.repeat(levels, seeds)
    targets = [held_out[[m]] for m in range(len(held_out))]
    stacked = [gp for gp in gps for _ in range(seeds)]
    return build_problem(stacked, assay.wavelengths, config, targets).to(device, dtype), held_out


def difference_to_alone(
    config: GeodesicConfig, seeds: int, device: str, models: list[int], dtype: torch.dtype = torch.float64
) -> dict[str, float]:
    """Largest difference between the batch and the models trained one at a time: of any weight, and of the predicted
    spectra relative to their spread. In float64 step by step; in float32 as it is trained, captured on a GPU."""
    backend = "torch" if dtype == torch.float64 else "auto"
    config = config.replace(precision="64-true" if dtype == torch.float64 else "32-true")
    problem, held_out = stacked_problem(config, seeds, device, dtype)
    stacked = train(problem, config, backend=backend)
    together = dict(stacked.named_parameters())
    spectra = predict(stacked, problem, torch.from_numpy(held_out[:, None]))
    largest = {"weights": 0.0, "spectra": 0.0}
    for m in models:
        row = select(problem, m, 1)
        alone = train(row, config, ode=row.build_model(config, config.seed + m), backend=backend)
        for name, parameter in alone.named_parameters():
            if not name.startswith("warp."):
                difference = float((together[name][m] - parameter[0]).detach().abs().max())
                largest["weights"] = max(largest["weights"], difference)
        own = predict(alone, row, torch.from_numpy(held_out[[m], None]))
        difference = float(((own[0] - spectra[m]).abs().max() / row.scale.max()).detach())
        largest["spectra"] = max(largest["spectra"], difference)
    return largest


def run(device: str, seeds: int, epochs: int, alone_epochs: int, compiled: bool = False) -> dict[str, Any]:
    """Times in seconds and errors of one run."""
    config = GeodesicConfig(flow="path_independent", epochs=epochs)
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None

    def timed(action: Any) -> tuple[float, Any]:
        wait()
        start = time.perf_counter()
        value = action()
        wait()
        return time.perf_counter() - start, value

    warm = config.replace(epochs=3)
    cold, _ = timed(lambda: train(stacked_problem(warm, seeds, device, torch.float32)[0], warm, compiled=compiled))
    prepare, (problem, held_out) = timed(lambda: stacked_problem(config, seeds, device, torch.float32))
    before = time.process_time()
    probe = nvml_probe() if device == "cuda" else None
    training, ode = timed(lambda: train(problem, config, compiled=compiled))
    counters = None if probe is None else probe()
    cores = time.process_time() - before
    asked = torch.from_numpy(held_out[:, None])
    prediction, spectra = timed(lambda: predict(ode, problem, asked).cpu().double().numpy()[:, 0])
    means = simulate_assay().level_means()
    members = spectra.reshape(len(means), seeds, -1).mean(1)
    result: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if device == "cuda" else f"{platform.machine()}, {os.cpu_count()} cores",
        "torch": torch.__version__,
        "load": os.getloadavg()[0],
        "models": len(held_out),
        "spectra": list(means.shape),
        "epochs": epochs,
        "compiled": compiled,
        "cold_s": cold,
        "prepare_s": prepare,
        "train_s": training,
        "train_cpu_s": cores,
        "device_counters_of_training": counters,
        "predict_s": prediction,
        "total_s": prepare + training + prediction,
        "rmse_by_level": [float(np.sqrt(np.mean(row**2))) for row in members - means],
    }
    if alone_epochs:
        picked = sorted({0, len(held_out) // 2, len(held_out) - 1})
        result["alone_epochs"] = alone_epochs
        short = config.replace(epochs=alone_epochs)
        result["largest_difference_to_alone"] = difference_to_alone(short, seeds, device, picked)
        if device == "cuda":
            single = difference_to_alone(short, seeds, device, picked, torch.float32)
            result["largest_difference_to_alone_float32_captured"] = single
    return result


def main() -> None:
    """Run and print; ``--json`` also writes the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--alone-epochs", type=int, default=10, help="epochs of the comparison; 0 leaves it out")
    parser.add_argument("--compile", action="store_true", help="losses through torch.compile (built in the warm start)")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    text = (
        json.dumps(run(options.device, options.seeds, options.epochs, options.alone_epochs, options.compile), indent=2)
        + "\n"
    )
    if options.json is not None:
        write_text(options.json, text)
    print(text, end="")


if __name__ == "__main__":
    main()
