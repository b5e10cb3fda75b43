"""The Lightning Trainer geonode uses: device choice, precision, accumulation, logging, checkpoints without pickle."""

from __future__ import annotations

import logging
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from copy import copy
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint

from geonode.config import GeodesicConfig
from geonode.device import resolve_device
from geonode.errors import InputError
from geonode.training.batches import step_counts
from geonode.training.checkpoint import PATTERN, fingerprint, newest_checkpoint
from geonode.training.compiling import compiler_failures
from geonode.training.fitting import fitted, smaller
from geonode.training.launch import SHARDED, launched, require_strategy
from geonode.training.lightning.checkpoints import Recovery, SafetensorsIO
from geonode.training.lightning.datamodule import SpectralDataModule
from geonode.training.lightning.module import GeodesicSpectralModule
from geonode.training.lightning.strategies import trainer_settings
from geonode.training.memory import is_out_of_memory, release
from geonode.training.precision import require_precision


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
        config: epochs, precision and batch sizes are used.
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
        from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger

        loggers = [CSVLogger(log_dir, name="csv"), TensorBoardLogger(log_dir, name="tensorboard")]
        if checkpoint_every:
            folder = Path(log_dir) / "checkpoints"
            callbacks.append(
                ModelCheckpoint(folder, "{epoch:06d}", every_n_epochs=checkpoint_every, save_top_k=-1, save_last=True)
            )
    _, accumulate, _ = step_counts(levels, config)
    placed = trainer_settings(strategy, kind, config)
    precision = placed.pop("plugins", None) or _precision(config)
    settings: dict[str, Any] = {
        "accelerator": {"cuda": "gpu"}.get(kind, kind),
        **placed,
        "use_distributed_sampler": False,  # every rank takes every step, and its own wavelengths of it
        "max_epochs": config.epochs,
        "accumulate_grad_batches": accumulate,
        "callbacks": callbacks,
        "logger": loggers,
        "enable_checkpointing": bool(log_dir and checkpoint_every),
        "enable_progress_bar": log_dir is not None and progress is None,
        "enable_model_summary": False,
        "log_every_n_steps": 1,
        "plugins": [SafetensorsIO(), *precision],
    }
    if not precision:
        settings["precision"] = config.precision
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
        config: choices of model and training. seed: of initial weights and draws; None takes ``config.seed``.
        checkpoint: folder for checkpoints of `geonode.training.lightning.checkpoints.Recovery`; None writes none.
        resume: a checkpoint to go on from, or True for the newest intact one in ``checkpoint`` (from the start where
            there is none).
        batch: ``auto`` finds the largest micro-batch that fits the device (gradients accumulate to the mega-batch),
            and goes on with half of it, from the start, where memory runs out all the same.
        compiled: losses through ``torch.compile``. recompute: parts of the wavelengths whose activations are computed
            again in the backward pass; 0 keeps them.
        options: passed on to `build_trainer`.

    Raises:
        InputError: ``checkpoint`` holds those of another training, or is given with a strategy that cuts parameters;
            ``batch`` is unknown.
        DeviceError: ``batch="auto"`` and not even one pair fits; ``compiled`` on a CPU without a C++ compiler.
        Interrupted: SIGTERM stopped the training; its state is in ``checkpoint``, where that is given.
        TrainingError: the loss did not stay finite, three roll-backs with smaller steps included (none with DeepSpeed).
    """
    if batch not in (None, "auto"):
        raise InputError(f"batch={batch!r} is not known; give 'auto', or set batch_size and micro_batch.")
    wanted = checkpoint is not None or bool(resume)
    require_strategy(options.get("strategy", "auto"), checkpoints=wanted)  # before anything is written
    job = launched()
    if batch == "auto" and job is not None and job[1] > 1:  # what fits one may not fit another, and all must step alike
        raise InputError("batch='auto' finds what fits one process; with several, set micro_batch in the settings.")
    if batch is None:
        return _train_once(data, config, device, seed, resume, checkpoint, compiled, recompute, **options)
    data = copy(data)  # its loader counts steps by its own settings
    config, found = fitted(data.problem, config, resolve_device(device))
    recompute = max(recompute, found)
    while True:
        data.config = config
        try:
            return _train_once(data, config, device, seed, resume, checkpoint, compiled, recompute, **options)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        release()
        given_up = config
        config, recompute = smaller(config, recompute, len(data.dataset.levels))
        if checkpoint is not None and config != given_up:  # its checkpoints belong to no training any more
            for path in Path(checkpoint).glob(PATTERN):
                path.unlink(missing_ok=True)
        warnings.warn(f"Out of memory: anew with {_what(config, recompute)}.", stacklevel=2)


def _what(config: GeodesicConfig, recompute: int) -> str:
    return f"{recompute} parts of the wavelengths" if config.all_pairs else f"micro-batches of {config.micro_batch}"


def _train_once(
    data: SpectralDataModule,
    config: GeodesicConfig,
    device: str,
    seed: int | None,
    resume: str | Path | bool | None,
    checkpoint: str | Path | None,
    compiled: bool,
    recompute: int,
    **options: Any,
) -> GeodesicSpectralModule:
    """`train_module` with settings as they stand."""
    module = GeodesicSpectralModule(data.problem, config, seed, compiled, recompute)
    belongs_to = fingerprint(data.dataset, config, module.seed)
    recovery = Recovery(checkpoint, belongs_to=belongs_to)
    if checkpoint is not None:
        Path(checkpoint).mkdir(parents=True, exist_ok=True)
        # also where nothing is resumed: beside later epochs of another training its own would not be kept
        newest = newest_checkpoint(checkpoint, belongs_to)
    elif resume is True:
        raise InputError("resume=True needs checkpoint, the folder to resume from.")
    if resume is True:
        resume = newest
    with _quiet_lightning():
        trainer = build_trainer(config, len(data.dataset.levels), device, **options)
        trainer.callbacks.append(recovery)  # pyright: ignore[reportAttributeAccessIssue]
        with compiler_failures() if compiled else nullcontext(), _interruptible():
            trainer.fit(module, data, ckpt_path=resume or None)
    recovery.require_finished()
    module.ode = module.ode.cpu().eval()
    return module


def _precision(config: GeodesicConfig) -> list[Any]:
    """The fp16 plugin with the configured loss scaler; none for other precisions, which are named to the Trainer."""
    if config.precision != "16-mixed":
        return []
    from lightning.pytorch.plugins.precision import MixedPrecision

    scaler = torch.amp.GradScaler(
        "cuda", init_scale=config.scaler_init, backoff_factor=config.scaler_backoff, growth_interval=2000
    )
    return [MixedPrecision("16-mixed", "cuda", scaler)]


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
def _quiet_lightning() -> Iterator[None]:
    """Without Lightning's banners and its advice on loader workers: the loader here only counts, so that is void; nor
    with torch.compile's on cached functions, for those here (quadrature points) have no state."""
    logger = logging.getLogger("lightning.pytorch")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*does not have many workers.*")
            warnings.filterwarnings("ignore", message=".*isinstance.treespec, LeafSpec.*")  # Lightning 2.6 on 2.13
            warnings.filterwarnings("ignore", message="Dynamo detected a call to a `functools.lru_cache`.*")
            yield
    finally:
        logger.setLevel(level)
