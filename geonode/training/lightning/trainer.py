"""The Lightning Trainer geonode uses: device choice, strategies, logging, checkpoints without pickle."""

from __future__ import annotations

import logging
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import lightning as L
from lightning.pytorch.callbacks import Callback, ModelCheckpoint

from geonode.config import GeodesicConfig
from geonode.device import resolve_device
from geonode.errors import InputError
from geonode.threads import threads_for
from geonode.training.batches import step_counts
from geonode.training.checkpoint import CheckpointFolder, fingerprint
from geonode.training.chunks import step_size
from geonode.training.compiling import compiler_failures
from geonode.training.launch import SHARDED, launched, require_strategy
from geonode.training.lightning.checkpoints import KeepCheckpoints, SafetensorsIO
from geonode.training.lightning.datamodule import SpectralDataModule
from geonode.training.lightning.module import GeodesicSpectralModule
from geonode.training.lightning.strategies import trainer_settings
from geonode.training.memory import Size, fitted, shrinking
from geonode.training.monitoring import require_log_folder
from geonode.training.precision import dtype_of, require_precision, set_up_for
from geonode_runtime.wording import argument


def build_trainer(
    config: GeodesicConfig,
    levels: int,
    device: str = "auto",
    progress: Callable[[int, int], None] | None = None,
    log_dir: str | Path | None = None,
    checkpoint_every: int | None = None,
    strategy: str = "auto",
    **options: Any,
) -> L.Trainer:
    """A Trainer for `GeodesicSpectralModule` on ``levels`` standards.

    Args:
        config: epochs and batch sizes are used; precision is the module's own.
        progress: called as ``progress(epoch, epochs)``; without it and with ``log_dir`` Lightning's own bar is shown.
        log_dir: where TensorBoard and CSV logs and checkpoints go; None writes nothing.
        checkpoint_every: epochs between checkpoints (needs ``log_dir``).
        strategy: one of `geonode.training.launch.STRATEGIES`.
        options: passed on to `lightning.Trainer` (``profiler="pytorch"``, for one); ``callbacks`` are added.

    Raises:
        InputError: an unknown strategy, or one that cuts parameters with checkpoints.
        DeviceError: a device that is not there, or fp16 where there is no CUDA device.
    """
    kind = resolve_device(device).type
    if strategy not in SHARDED:  # those have fewer precisions
        require_precision(config, kind)
    require_strategy(strategy, checkpoints=bool(checkpoint_every))
    callbacks: list[Callback] = [_Progress(progress)] if progress else []
    callbacks += options.pop("callbacks", [])
    loggers: list[Any] = []
    if log_dir is not None:
        require_log_folder(log_dir)
        from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger

        loggers = [CSVLogger(log_dir, name="csv"), TensorBoardLogger(log_dir, name="tensorboard")]
        if checkpoint_every:
            folder = Path(log_dir) / "checkpoints"
            callbacks.append(
                ModelCheckpoint(folder, "{epoch:06d}", every_n_epochs=checkpoint_every, save_top_k=-1, save_last=True)
            )
    placed = trainer_settings(strategy, kind, config)
    settings: dict[str, Any] = {
        "accelerator": {"cuda": "gpu"}.get(kind, kind),
        **placed,
        "use_distributed_sampler": False,  # every rank takes every step, and its own wavelengths of it
        "max_epochs": config.training.epochs,
        "callbacks": callbacks,
        "logger": loggers,
        "enable_checkpointing": bool(log_dir and checkpoint_every),
        "enable_progress_bar": log_dir is not None and progress is None,
        "enable_model_summary": False,
        "log_every_n_steps": 1,
        "plugins": [SafetensorsIO(), *placed.get("plugins", [])],
    }
    if strategy in SHARDED:  # elsewhere gradients are added up by the module, as in the loop
        settings["accumulate_grad_batches"] = step_counts(levels, config).accumulate
    return L.Trainer(**{**settings, **options})


def train_module(
    data: SpectralDataModule,
    config: GeodesicConfig,
    device: str = "auto",
    seed: int | None = None,
    resume: str | Path | bool | None = None,
    checkpoint: str | Path | None = None,
    batch: str | None = None,
    compiled: bool = False,
    recompute: int = 0,
    **options: Any,
) -> GeodesicSpectralModule:
    """Train on ``data`` under Lightning and return the trained module on the host.

    Args:
        config: choices of model and training. seed: of initial weights and draws; None takes ``config.training.seed``.
        checkpoint: folder for checkpoints; None writes none.
        resume: a checkpoint to go on from, or True for the newest intact one in ``checkpoint`` (from the start where
            there is none).
        batch: ``auto`` finds the largest micro-batch that fits the device (gradients add up to the mega-batch), and
            goes on with half of it where memory runs out all the same: from the last checkpoint, or from the start.
        compiled: losses through ``torch.compile``. recompute: parts of the wavelengths whose activations are computed
            again in the backward pass; 0 keeps them.
        options: passed on to `build_trainer`.

    Raises:
        InputError: ``checkpoint`` holds those of another training, or is given with a strategy that cuts parameters;
            ``batch`` is unknown.
        DeviceError: ``batch="auto"`` and not even one pair fits; ``compiled`` on a CPU without a C++ compiler.
        Interrupted: SIGTERM stopped the training; its state is in ``checkpoint``, where that is given.
        TrainingError: the loss did not stay finite, three roll-backs with smaller steps included (none where parameters
            are cut).
    """
    if batch not in (None, "auto"):
        raise InputError(f"{argument('batch', batch)} is not known; give 'auto', or set batch_size and micro_batch.")
    wanted = checkpoint is not None or bool(resume)
    require_strategy(options.get("strategy", "auto"), checkpoints=wanted)  # before anything is written
    job = launched()
    if batch == "auto" and job is not None and job[1] > 1:  # what fits one may not fit another, and all must step alike
        raise InputError(
            f"{argument('batch', 'auto')} finds what fits one process; with several, set micro_batch in the settings."
        )
    seed = config.training.seed if seed is None else seed
    keep = None
    if checkpoint is not None:
        keep = CheckpointFolder(checkpoint, fingerprint(data.dataset, config, seed), kind="lightning")
    elif resume is True:
        raise InputError(f"{argument('resume', True)} needs {argument('checkpoint')}, the folder to resume from.")
    tried: list[Size] = []

    def attempt(size: Size) -> GeodesicSpectralModule:
        tried.append(size)
        again = len(tried) > 1 and keep is not None
        where = keep.newest() if keep is not None and (resume is True or again) else resume
        where = None if isinstance(where, bool) else where
        return _train_once(data, size, device, seed, where, keep, compiled, **options)

    size = Size(data.problem.models, config, recompute)
    if batch == "auto":
        size = fitted(data.problem.to(resolve_device(device), dtype_of(config)), size)
    size = replace(size, models=1)  # all are trained at once here: only steps can be made smaller
    levels = len(data.dataset.levels)
    return shrinking(attempt, size, levels, batch == "auto", lambda text: warnings.warn(text, stacklevel=3))


def _train_once(
    data: SpectralDataModule,
    size: Size,
    device: str,
    seed: int,
    resume: str | Path | None,
    keep: CheckpointFolder | None,
    compiled: bool,
    **options: Any,
) -> GeodesicSpectralModule:
    """`train_module` with settings as they stand."""
    data, config = copy(data), size.config  # its loader counts steps by its own settings
    data.config = config
    module = GeodesicSpectralModule(data.problem, config, seed, compiled, size.recompute)
    stop = KeepCheckpoints(keep)
    with quiet_lightning():
        trainer = build_trainer(config, len(data.dataset.levels), device, **options)
        trainer.callbacks.append(stop)  # pyright: ignore[reportAttributeAccessIssue]
        numerics = set_up_for(config, resolve_device(device))
        threads = threads_for(step_size(data.problem, data.problem.models))
        with numerics, threads, compiler_failures() if compiled else nullcontext(), _interruptible():
            trainer.fit(module, data, ckpt_path=resume)
    stop.require_finished()
    module.finish()
    module.ode = module.ode.cpu().eval()
    return module


class _Progress(Callback):
    def __init__(self, report: Callable[[int, int], None]) -> None:
        self._report = report

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._report(trainer.current_epoch + 1, trainer.max_epochs)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, as everywhere: Lightning would silently end the process, a notebook's too, and
    have every later Ctrl-C ignored."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit as error:
        if not isinstance(error.__context__, KeyboardInterrupt):
            raise
        raise KeyboardInterrupt from None
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Without Lightning's banners and its advice on loader workers: the loader here only counts, so that is void."""
    logger = logging.getLogger("lightning.pytorch")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*does not have many workers.*")
            warnings.filterwarnings("ignore", message=".*isinstance.treespec, LeafSpec.*")  # Lightning 2.6 on 2.13
            yield
    finally:
        logger.setLevel(level)
