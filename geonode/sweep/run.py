"""Running jobs: the process and the flow are fitted without a level, whose spectrum is predicted and compared.

Jobs that differ in fold and learning rates alone are one stacked training.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from geonode.bundle import checksums, environment
from geonode.calibration import GeodesicGP
from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset
from geonode.device import resolve_device
from geonode.errors import Interrupted
from geonode.flow import CoupledSpectralODE
from geonode.model import GeodesicModel
from geonode.sweep.jobs import Job, data_of
from geonode.training import build_problem, predict, train
from geonode.training.checkpoint import CheckpointFolder
from geonode.training.chunks import copy_models, select
from geonode.training.leave_out import build_stack, restore
from geonode.training.precision import dtype_of
from geonode.training.problem import Problem, fit_gp

Keep = Callable[[Job, GeodesicModel], None]


def run_job(job: Job, device: str = "auto", keep: Keep | None = None, **options: Any) -> dict[str, Any]:
    """Train and score; a row of the sweep's table. RMSE in the unit of the signal, NRMSE over all level means' spread.

    Arguments and errors as for `run_stack`.
    """
    return run_stack([job], device, keep, **options)[0]


def run_stack(
    jobs: Sequence[Job],
    device: str = "auto",
    keep: Keep | None = None,
    *,
    checkpoints: str | Path | None = None,
    stops: bool = False,
) -> list[dict[str, Any]]:
    """The rows of one list of `geonode.sweep.stacks`, trained together, each as it would be alone.

    Args:
        jobs: of one set of standards and one predictor.
        device: ``auto``, ``cpu``, ``cuda`` or ``mps``.
        keep: given every job with its trained model, which knows all standards but the one left out.
        checkpoints: folder for the state of the training while it lasts; a list that was interrupted goes on from
            there. None keeps none.
        stops: finish the epoch on SIGTERM and raise `Interrupted`.

    Returns:
        One row a job; ``seconds`` are shared.

    Raises:
        DeviceError: a device that is not there. InputError: other standards than the sweep was started with.
        Interrupted: SIGTERM stopped the training. TrainingError: the loss of one of them did not stay finite.
    """
    start = time.perf_counter()
    dataset = data_of(jobs[0])
    levels, means = dataset.levels, dataset.level_means()
    left_out = [int(np.flatnonzero(levels == job.fold)[0]) for job in jobs]
    kept = {k: dataset.without_level(k) for k in dict.fromkeys(left_out)}
    gps = {k: fit_gp(rest) for k, rest in kept.items()}
    configs = [GeodesicConfig.from_json(job.config) for job in jobs]
    config, ode = configs[0], None
    if config.predictor == "gp":
        spectra = np.stack([gps[k].predict([job.fold]).mean[0] for job, k in zip(jobs, left_out, strict=True)])
    else:
        rows = [k for k in left_out for _ in range(config.members)]
        problem = build_problem([gps[k] for k in rows], dataset.wavelengths, config, list(levels[rows][:, None]))
        if len(jobs) > 1 and not config.all_pairs and bool((problem.weight == 0).any()):
            # padded: pairs would be drawn among another number of points than alone
            return [run_job(job, device, keep, checkpoints=checkpoints, stops=stops) for job in jobs]
        problem = problem.to(resolve_device(device), dtype_of(config))
        with _state_in(checkpoints, jobs) as folder:
            ode = _train(jobs, configs, problem, folder, stops)
        found = predict(ode, problem, torch.from_numpy(levels[rows][:, None])).cpu().double().numpy()
        spectra = found.reshape(len(jobs), config.members, -1).mean(1)
    for number, (job, own, k) in enumerate(zip(jobs, configs, left_out, strict=True)):
        if keep is not None:
            keep(job, _model(kept[k], own, gps[k], job.fold, _state(ode, number, config.members)))
    seconds = (time.perf_counter() - start) / len(jobs)
    errors = spectra - means[left_out]
    return [_row(job, error, float(means.std()), seconds) for job, error in zip(jobs, errors, strict=True)]


@contextmanager
def _state_in(checkpoints: str | Path | None, jobs: Sequence[Job]) -> Iterator[CheckpointFolder | None]:
    """A folder for the state of these jobs' training, removed when it has ended, but not where it was interrupted."""
    if checkpoints is None:
        yield None
        return
    name = hashlib.sha256(" ".join(job.key for job in jobs).encode()).hexdigest()[:16]
    folder = Path(checkpoints) / name
    try:
        yield CheckpointFolder(folder, belongs_to=name, keep=2)
    except (Interrupted, KeyboardInterrupt):
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def _train(
    jobs: Sequence[Job],
    configs: Sequence[GeodesicConfig],
    problem: Problem,
    folder: CheckpointFolder | None,
    stops: bool,
) -> CoupledSpectralODE:
    """The jobs' models, trained as one stack, each from its own seed and with its own learning rates."""
    config = configs[0]
    rates = torch.tensor([[c.metric_lr, c.flow_lr] for c in configs]).repeat_interleave(config.members, 0)
    whole = _fresh(problem, config, jobs)
    return train(
        problem, config, jobs[0].seed, ode=whole, rates=rates, keep=folder, resume=folder is not None, stops=stops
    )


def _state(ode: CoupledSpectralODE | None, number: int, members: int) -> dict[str, torch.Tensor] | None:
    """Trained parameters of one job's models out of the stack; None where there is no flow."""
    if ode is None:
        return None
    rows = slice(number * members, (number + 1) * members)
    return {name: parameter.detach()[rows].cpu().clone() for name, parameter in ode.named_parameters()}


def _fresh(problem: Problem, config: GeodesicConfig, jobs: Sequence[Job]) -> CoupledSpectralODE:
    """The stack before training: the members of each job from its own seed."""
    whole = problem.build_model(config, jobs[0].seed)
    for number, job in enumerate(jobs[1:], 1):
        part = select(problem, number * config.members, config.members)
        copy_models(whole, part.build_model(config, job.seed), number * config.members, config.members, back=True)
    return whole


def _model(
    dataset: SpectralDataset,
    config: GeodesicConfig,
    gp: GeodesicGP,
    fold: float,
    state: dict[str, torch.Tensor] | None,
) -> GeodesicModel:
    """A fitted model of the standards without the one left out, whose concentration it serves; ``state`` are its
    trained parameters."""
    low, high = float(dataset.levels.min()), float(dataset.levels.max())
    beyond = max(low - fold, fold - high, 0.0) / (high - low)
    config = config.replace(margin=max(config.margin, beyond))
    problem = ode = None
    if state is not None:  # as it is made again from a bundle
        problem = build_stack(gp, None, dataset.wavelengths, config).to("cpu", dtype_of(config))
        ode = restore(problem, config, state)
    model = GeodesicModel(dataset, config, gp, problem, ode)
    model.made = {"environment": environment(), "files": checksums(dataset.files), "left_out": fold}
    return model


def _row(job: Job, error: np.ndarray, spread: float, seconds: float) -> dict[str, Any]:
    rmse = float(np.sqrt(np.mean(error**2)))
    return {
        "job": job.key,
        **({"set": job.data_set} if job.data_set else {}),
        "fold": job.fold,
        "seed": job.seed,
        **job.setting,
        "rmse": rmse,
        "nrmse": rmse / spread,
        "seconds": seconds,
        "worker": f"{platform.node()}:{os.getpid()}",
    }
