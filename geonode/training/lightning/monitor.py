"""`Monitor`: what a training does while it runs, to the loggers of a Lightning Trainer."""

from __future__ import annotations

import time
from typing import Any

import torch
from lightning.pytorch.callbacks import Callback

from geonode.training.lightning.strategies import whole_parameters
from geonode.training.monitoring import Probe, Watcher, device_figures, model_figures


class Monitor(Callback):
    """Logs every few epochs, to whatever loggers the Trainer has (TensorBoard and CSV from `build_trainer`).

    What is logged is listed at `geonode.training.monitoring.Monitoring`; loss parts and gradient norms are logged by
    the module itself.

    Args:
        probe: called for the device's counters, for example power, memory and SM activity by NVML.
        every: epochs between records; the device is waited for only then.
        watcher: called with the latest of them all, for example to show them.
    """

    def __init__(self, probe: Probe | None = None, every: int = 5, watcher: Watcher | None = None) -> None:
        self.probe, self.every, self.watcher = probe, every, watcher
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
        epoch = trainer.current_epoch + 1
        if epoch % self.every and epoch < trainer.max_epochs:
            return
        if pl_module.device.type == "cuda":
            torch.cuda.synchronize(pl_module.device)
        seconds = max(time.perf_counter() - self._since, 1e-9)
        values = {"rate/steps_per_s": self._steps / seconds, "rate/samples_per_s": self._samples / seconds}
        with whole_parameters(trainer.strategy):
            values |= model_figures([(pl_module.ode, pl_module.problem)])
        values |= device_figures(pl_module.device, self.probe)
        for logger in trainer.loggers:
            logger.log_metrics(values, step=trainer.global_step)
        if self.watcher is not None:
            losses = {name: float(value) for name, value in trainer.callback_metrics.items()}
            self.watcher({"epoch": epoch, "epochs": trainer.max_epochs, **losses, **values})
        self._reset()

    def _reset(self) -> None:
        self._since, self._steps, self._samples = time.perf_counter(), 0, 0
