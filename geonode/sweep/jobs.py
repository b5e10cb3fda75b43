"""One job of a sweep: a level left out, the rest trained on, the left-out spectrum predicted and compared."""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset, load_standards


@dataclass(frozen=True)
class Job:
    """Everything a worker needs; ``key`` names the job by content: standards, settings, seed and fold."""

    key: str
    source: str  # JSON: where the standards are
    config: str  # JSON: GeodesicConfig
    seed: int
    fold: float
    setting: dict[str, Any]


@lru_cache(maxsize=4)
def load_data(source: str) -> SpectralDataset:
    """The standards of a spec; read once a process."""
    where = json.loads(source)
    folder = Path(where["folder"])
    tables = where["concentrations"]
    return load_standards(
        [folder / name for name in where["data"]],
        select=where["select"],
        concentration_unit=where["unit"],
        concentrations=None if tables is None else folder / tables,
        column=where["column"],
    )


def run_job(job: Job, device: str = "auto") -> dict[str, Any]:
    """Train and score; a row of the sweep's table. RMSE in the unit of the signal, NRMSE over all level means' spread.

    Raises:
        DeviceError: a device that is not there.
    """
    from geonode.calibration import GeodesicGP
    from geonode.training import fit_node_folds, resolve_device

    start = time.perf_counter()
    dataset = load_data(job.source)
    order = np.argsort(dataset.levels)
    levels, means = dataset.levels[order], dataset.level_means()[order]
    rank = np.argsort(order)
    left_out = int(np.flatnonzero(levels == job.fold)[0])
    training = np.delete(np.arange(len(levels)), left_out)
    index = rank[dataset.level_index]
    (gp,) = GeodesicGP().fit_folds(levels, means, [training], dataset.replicate_deviations(), index)
    config = GeodesicConfig.from_json(job.config)
    gps, targets = [gp] * config.members, [levels[[left_out]]] * config.members
    spectra = fit_node_folds(gps, targets, dataset.wavelengths, config, job.seed, device=resolve_device(device))
    error = np.mean([spectrum[0] for spectrum in spectra], axis=0) - means[left_out]
    rmse = float(np.sqrt(np.mean(error**2)))
    return {
        "job": job.key,
        "fold": job.fold,
        "seed": job.seed,
        **job.setting,
        "rmse": rmse,
        "nrmse": rmse / float(means.std()),
        "seconds": time.perf_counter() - start,
        "worker": f"{platform.node()}:{os.getpid()}",
    }
