"""From standards to a trained stack: by the loop on one device, by Lightning where several processes need it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geonode.calibration import GeodesicGP
from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset
from geonode.device import resolve_device
from geonode.errors import InputError
from geonode.flow import CoupledSpectralODE
from geonode.training.checkpoint import CheckpointFolder, fingerprint
from geonode.training.control import Outcome
from geonode.training.ensemble import train
from geonode.training.launch import launched, require_strategy
from geonode.training.leave_out import Folds, build_stack
from geonode.training.monitoring import Monitoring, Probe, TrainingLog, Watcher
from geonode.training.precision import dtype_of
from geonode.training.problem import Problem
from geonode.training.profiling import StepProfile
from geonode.training.wandb_log import WandbLog
from geonode_runtime.wording import argument


@dataclass(frozen=True)
class Trained:
    """A trained stack on the host.

    Attributes:
        ode: the model, each of its rows in its best state.
        problem: what it was trained on.
        outcome: how it went, its losses epoch by epoch included.
    """

    ode: CoupledSpectralODE
    problem: Problem
    outcome: Outcome


def train_standards(
    dataset: SpectralDataset,
    gp: GeodesicGP,
    config: GeodesicConfig,
    folds: Folds | None = None,
    *,
    device: str = "auto",
    progress: Callable[[int, int], None] | None = None,
    log_dir: str | Path | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    strategy: str = "auto",
    callbacks: Sequence[Any] = (),
    batch: str | None = None,
    compiled: bool = False,
    recompute: int = 0,
    profile: str | Path | None = None,
    probe: Probe | None = None,
    watcher: Watcher | None = None,
    wandb: bool = False,
) -> Trained:
    """Train the ensemble (and with ``folds`` that of each fold) on standards.

    One process without a strategy or callbacks of its own trains by the loop (`geonode.training.train`); Lightning
    trains where torchrun or SLURM launched several, or where a strategy or callback is asked for. The step is the same.

    Args:
        dataset: the standards.
        gp: their geodesic GP.
        config: choices of model and training, its seed included.
        folds: levels that are left out in turn besides.
        device: ``auto``, ``cpu``, ``cuda`` or ``mps``.
        progress: called as ``progress(epoch, epochs)``.
        log_dir: folder of TensorBoard and CSV logs; None writes none.
        checkpoint: folder for checkpoints; None writes none.
        resume: go on from the newest intact one there.
        strategy: one of `geonode.training.launch.STRATEGIES`.
        callbacks: Lightning callbacks.
        batch, compiled, recompute: as for `geonode.training.train`.
        profile: folder for torch.profiler's table and trace of a few steps; None profiles nothing.
        probe: gives the device's counters.
        watcher: is told of losses, rates and counters every few epochs.
        wandb: the numbers of the logs go to Weights & Biases too, offline, in ``log_dir`` (extra ``wandb``).

    Raises:
        InputError: an unknown strategy or ``batch``, ``resume`` without a folder, or a folder of another training;
            ``wandb`` without a folder, without its package or under Lightning.
        DeviceError: a device or precision that cannot be had.
        Interrupted: SIGTERM stopped the training; its state is in ``checkpoint``.
        TrainingError: the loss did not stay finite, roll-backs with smaller steps included.
    """
    require_strategy(strategy, checkpoints=checkpoint is not None or resume)
    if resume and checkpoint is None:
        raise InputError(f"{argument('resume', True)} needs {argument('checkpoint')}, the folder to resume from.")
    options = {"batch": batch, "compiled": compiled, "recompute": recompute}
    job = launched()
    if wandb and log_dir is None:
        raise InputError(f"{argument('wandb', True)} needs {argument('log_dir')}, the folder of the offline run.")
    if wandb and (strategy != "auto" or callbacks or (job is not None and job[1] > 1)):
        raise InputError(
            f"{argument('wandb', True)} is for trainings on one device; under Lightning give your own Trainer "
            "lightning.pytorch.loggers.WandbLogger, or leave it out."
        )
    if strategy != "auto" or callbacks or (job is not None and job[1] > 1):
        from geonode.training.lightning.standards import train_under_lightning

        return train_under_lightning(
            dataset, gp, config, folds, device, strategy, list(callbacks), log_dir, profile, probe, watcher,
            progress=progress, checkpoint=checkpoint, resume=resume, **options,
        )  # fmt: skip
    problem = build_stack(gp, folds, dataset.wavelengths, config)
    problem = problem.to(resolve_device(device), dtype_of(config))
    seed = config.training.seed
    keep = None if checkpoint is None else CheckpointFolder(checkpoint, fingerprint(dataset, config, seed))
    # first what may not be installed: nothing is left behind where it is not
    also = WandbLog(str(log_dir), json.loads(config.to_json())) if wandb else None
    log = None if log_dir is None else TrainingLog(log_dir)
    watch = Monitoring(log, probe, watcher, also) if log is not None or watcher is not None else None
    outcomes: list[Outcome] = []
    with nullcontext() if also is None else closing(also):
        ode = train(
            problem,
            config,
            seed,
            progress,
            report=outcomes.append,
            keep=keep,
            resume=resume,
            watch=watch,
            stops=True,
            profile=None if profile is None else StepProfile(profile, config.training.epochs),
            **options,
        )
    return Trained(ode.cpu().eval(), problem.to("cpu", dtype_of(config)), outcomes[0])
