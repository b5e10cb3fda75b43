"""Jobs of a sweep: a level left out, the rest trained on, the left-out spectrum predicted and compared.

Jobs that differ in fold and learning rates alone are one stacked training.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset, load_standards
from geonode.errors import GeonodeError

if TYPE_CHECKING:
    from geonode.flow import CoupledSpectralODE
    from geonode.training import Problem

_RATES = {"metric_lr", "flow_lr"}


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


def stacks(jobs: Sequence[Job], most: int) -> list[list[Job]]:
    """Jobs in lists of up to ``most`` that one stacked training can hold.

    Those of the same standards whose settings differ in learning rates alone; and of one seed, where it draws what all
    models of a stack share (wavelengths, pairs).
    """
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        settings = json.loads(job.config)
        config = GeodesicConfig.from_json(job.config)
        common = {name: value for name, value in settings.items() if name not in _RATES}
        width = load_data(job.source).shape[1]
        drawn = not config.all_pairs or (config.wavelengths_per_step or width) < width
        key = json.dumps([job.source, common, job.seed if drawn else None], sort_keys=True)
        groups.setdefault(key, []).append(job)
    return [group[i : i + most] for group in groups.values() for i in range(0, len(group), most)]


def run_job(job: Job, device: str = "auto") -> dict[str, Any]:
    """Train and score; a row of the sweep's table. RMSE in the unit of the signal, NRMSE over all level means' spread.

    Raises:
        DeviceError: a device that is not there. TrainingError: the loss did not stay finite.
    """
    return run_stack([job], device)[0]


def run_stack(jobs: Sequence[Job], device: str = "auto") -> list[dict[str, Any]]:
    """The rows of one list of `stacks`, trained together, each as it would be alone; ``seconds`` are shared.

    Raises:
        DeviceError: a device that is not there. TrainingError: the loss of one of them did not stay finite.
    """
    from geonode.calibration import GeodesicGP
    from geonode.calibration.leave_out import levels_kept
    from geonode.device import resolve_device
    from geonode.training import build_problem, predict, train

    start = time.perf_counter()
    dataset = load_data(jobs[0].source)
    order = np.argsort(dataset.levels)
    levels, means = dataset.levels[order], dataset.level_means()[order]
    index = np.argsort(order)[dataset.level_index]
    left_out = [int(np.flatnonzero(levels == job.fold)[0]) for job in jobs]
    gps = {}
    for k in dict.fromkeys(left_out):
        training = levels_kept(len(levels), k)
        (gps[k],) = GeodesicGP().fit_folds(levels, means, [training], dataset.replicate_deviations(), index)
    configs = [GeodesicConfig.from_json(job.config) for job in jobs]
    config = configs[0]
    rows = [k for k in left_out for _ in range(config.members)]
    asked = levels[rows][:, None]
    dtype = torch.float64 if config.precision == "64-true" else torch.float32
    problem = build_problem([gps[k] for k in rows], dataset.wavelengths, config, list(asked))
    if len(jobs) > 1 and not config.all_pairs and bool((problem.weight == 0).any()):
        return [run_job(job, device) for job in jobs]  # padded: pairs would be drawn among another number of points
    problem = problem.to(resolve_device(device), dtype)
    rates = torch.tensor([[c.metric_lr, c.flow_lr] for c in configs]).repeat_interleave(config.members, 0)
    ode = train(problem, config, jobs[0].seed, ode=_fresh(problem, config, jobs), rates=rates)
    spectra = predict(ode, problem, torch.from_numpy(asked)).cpu().double().numpy()[:, 0]
    errors = spectra.reshape(len(jobs), config.members, -1).mean(1) - means[left_out]
    seconds = (time.perf_counter() - start) / len(jobs)
    return [_row(job, error, float(means.std()), seconds) for job, error in zip(jobs, errors, strict=True)]


def sentence(job: Job, cause: BaseException) -> str:
    """Which job failed and why: one sentence without its full stop."""
    where = [f"fold {job.fold:g}", f"seed {job.seed}", *(f"{name}={value}" for name, value in job.setting.items())]
    why = " ".join(str(cause).split("\n")[0].split()).rstrip(".")
    if not isinstance(cause, GeonodeError):  # its text alone need not say what it is, and may be empty
        why = f"{type(cause).__name__}: {why}" if why else type(cause).__name__
    return f"{', '.join(where)}: {why}"


def _fresh(problem: Problem, config: GeodesicConfig, jobs: Sequence[Job]) -> CoupledSpectralODE:
    """The stack before training: the members of each job from its own seed."""
    from geonode.training.chunks import copy_models, select

    whole = problem.build_model(config, jobs[0].seed)
    for number, job in enumerate(jobs[1:], 1):
        part = select(problem, number * config.members, config.members)
        copy_models(whole, part.build_model(config, job.seed), number * config.members, config.members, back=True)
    return whole


def _row(job: Job, error: np.ndarray, spread: float, seconds: float) -> dict[str, Any]:
    rmse = float(np.sqrt(np.mean(error**2)))
    return {
        "job": job.key,
        "fold": job.fold,
        "seed": job.seed,
        **job.setting,
        "rmse": rmse,
        "nrmse": rmse / spread,
        "seconds": seconds,
        "worker": f"{platform.node()}:{os.getpid()}",
    }
