"""What a training does while it runs: rates, range of the metric, solver outcomes, and the device's own counters."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from lightning.pytorch.callbacks import Callback

from geonode.flow import CoupledSpectralODE
from geonode.geodesic import Status, shoot
from geonode.training.batches import PointsBatch
from geonode.training.lightning.strategies import whole_parameters
from geonode.training.problem import Problem

_WAVELENGTHS = 8  # of those in use, for the solver's outcomes


class Monitor(Callback):
    """Logs every few epochs, to whatever loggers the Trainer has (TensorBoard and CSV from `build_trainer`).

    ``rate/steps_per_s``, ``rate/samples_per_s`` (spectra of ordered pairs, of every model), ``metric/low`` and
    ``metric/high`` (g̃ on its table: 1 is the warp alone), ``solver/<status>`` (geodesics between neighbouring levels by
    outcome, where the path is found by shooting), ``device/<name>`` from ``probe``, and on a CUDA device
    ``device/peak_memory_bytes``. Loss parts and gradient norms are logged by the module itself.

    Args:
        probe: called for the device's counters, for example power, memory and SM activity by NVML.
        every: epochs between records; the device is waited for only then.
    """

    def __init__(self, probe: Callable[[], dict[str, float]] | None = None, every: int = 5) -> None:
        self.probe, self.every = probe, every
        self._since = 0.0
        self._steps = self._samples = 0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Start the clock."""
        self._reset()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Count the step."""
        self._steps += 1
        self._samples += pl_module.samples_per_step

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Log, where it is time."""
        if (trainer.current_epoch + 1) % self.every and trainer.current_epoch + 1 < trainer.max_epochs:
            return
        if pl_module.device.type == "cuda":
            torch.cuda.synchronize(pl_module.device)
        seconds = max(time.perf_counter() - self._since, 1e-9)
        values = {"rate/steps_per_s": self._steps / seconds, "rate/samples_per_s": self._samples / seconds}
        with whole_parameters(trainer.strategy):
            values.update(metric_range(pl_module.ode))
            if pl_module.config.path == "shooting":
                counts = solver_counts(pl_module.ode, pl_module.problem)
                values.update({f"solver/{name}": float(count) for name, count in counts.items()})
        if self.probe is not None:
            values.update({f"device/{name}": value for name, value in self.probe().items()})
        if pl_module.device.type == "cuda":
            values["device/peak_memory_bytes"] = float(torch.cuda.max_memory_allocated(pl_module.device))
        for logger in trainer.loggers:
            logger.log_metrics(values, step=trainer.global_step)
        self._reset()

    def _reset(self) -> None:
        self._since, self._steps, self._samples = time.perf_counter(), 0, 0


def samples_in(batch: Any) -> int:
    """Spectra that one step learns from: ordered pairs of its points, or its pairs, of every model."""
    models, count = batch.target.shape[:2]
    return models * count * (count - 1) if isinstance(batch, PointsBatch) else models * count


@torch.no_grad()
def metric_range(ode: CoupledSpectralODE) -> dict[str, float]:
    """Lowest and highest g̃ on the table, all models and wavelengths."""
    log_metric = ode.on_table().log_metric
    low, high = torch.stack([log_metric.min(), log_metric.max()]).exp().tolist()
    return {"metric/low": low, "metric/high": high}


@torch.no_grad()
def solver_counts(ode: CoupledSpectralODE, problem: Problem) -> dict[str, int]:
    """Outcomes of shooting between neighbouring levels at a few wavelengths, by name of the status."""
    u = problem.level_coordinates.to(ode.wavelength)
    picked = ode.wavelength[torch.linspace(0, len(ode.wavelength) - 1, _WAVELENGTHS, device=u.device).long()]
    shape = (*u[:, 1:].shape, len(picked))
    solution = shoot(
        ode.metric_in_u(),
        u[:, :-1, None].expand(shape).contiguous(),
        u[:, 1:, None].expand(shape).contiguous(),
        picked.expand(shape),
        newton_steps=ode.config.newton_steps,
        ode_steps=ode.config.ode_steps,
    )
    counts = torch.bincount(solution.status.flatten(), minlength=len(Status)).tolist()
    return {status.name.lower(): counts[status] for status in Status}
