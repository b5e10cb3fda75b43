"""`geonode.training.standards.train_standards` under Lightning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from geonode.calibration import GeodesicGP
from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset
from geonode.training.leave_out import Folds
from geonode.training.lightning.datamodule import SpectralDataModule
from geonode.training.lightning.monitor import Monitor
from geonode.training.lightning.trainer import train_module
from geonode.training.monitoring import Probe, Watcher
from geonode.training.standards import Trained


def train_under_lightning(
    dataset: SpectralDataset,
    gp: GeodesicGP,
    config: GeodesicConfig,
    folds: Folds | None,
    device: str,
    strategy: str,
    callbacks: list[Any],
    log_dir: str | Path | None,
    profile: str | Path | None,
    probe: Probe | None,
    watcher: Watcher | None,
    **options: Any,
) -> Trained:
    """Train on standards; arguments and errors as for `geonode.training.standards.train_standards`."""
    data = SpectralDataModule(dataset, config, folds=folds, gp=gp)
    if log_dir is not None or watcher is not None:
        callbacks = [*callbacks, Monitor(probe, watcher=watcher)]
    if profile is not None:
        from lightning.pytorch.profilers import PyTorchProfiler

        options["profiler"] = PyTorchProfiler(dirpath=profile, filename="profile", export_to_chrome=True)
    module = train_module(
        data, config, device=device, strategy=strategy, callbacks=callbacks, log_dir=log_dir, **options
    )
    assert module.outcome is not None  # it has ended
    return Trained(module.ode, data.problem.to("cpu", module.problem.target.dtype), module.outcome)
