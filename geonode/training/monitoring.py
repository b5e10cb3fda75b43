"""What a training does while it runs: losses and norms of every epoch, rates, range of the metric, solver outcomes, and
the device's own counters, to CSV, TensorBoard and whoever watches."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from geonode.errors import InputError
from geonode.flow import CoupledSpectralODE
from geonode.geodesic import Status, shoot
from geonode.training.batches import PairsBatch, PointsBatch
from geonode.training.problem import Problem
from geonode_runtime.files import write_text
from geonode_runtime.wording import argument

if TYPE_CHECKING:
    from geonode.training.steps import StackSteps
    from geonode.training.wandb_log import WandbLog

Probe = Callable[[], dict[str, float]]
Watcher = Callable[[dict[str, float]], None]
_WAVELENGTHS = 8  # of those in use, for the solver's outcomes


def require_log_folder(folder: str | Path) -> None:
    """Nothing, where TensorBoard can write into ``folder``.

    Raises:
        InputError: its name is no UTF-8, which TensorBoard does not take.
    """
    try:
        str(folder).encode("utf-8")
    except UnicodeEncodeError:
        shown = str(folder).encode("utf-8", errors="backslashreplace").decode()
        raise InputError(
            f"The name of the log folder {shown} is no UTF-8, and TensorBoard writes into no such folder; give "
            f"{argument('log_dir')} another."
        ) from None


class TrainingLog:
    """Numbers by name and step, in ``csv/version_N/metrics.csv`` and ``tensorboard/version_N`` of a folder; N is new.

    Args:
        folder: made where it does not exist.

    Raises:
        InputError: TensorBoard is not installed, or cannot write there (see `require_log_folder`).
    """

    def __init__(self, folder: str | Path) -> None:
        require_log_folder(folder)
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise InputError("Logs need TensorBoard: pip install tensorboard, or train without a log folder.") from None

        tables = Path(folder) / "csv"
        taken = [int(p.name[8:]) for p in tables.glob("version_*") if p.name[8:].isdigit()]
        name = f"version_{max(taken, default=-1) + 1}"
        self.path = tables / name / "metrics.csv"
        self.path.parent.mkdir(parents=True)
        self._rows: list[dict[str, float]] = []
        self._events: Any = SummaryWriter(str(Path(folder) / "tensorboard" / name))

    def add(self, step: int, values: dict[str, float]) -> None:
        """Numbers at an optimiser ``step``."""
        self._rows.append({"step": step, **values})
        for name, value in values.items():
            self._events.add_scalar(name, value, step)

    def flush(self) -> None:
        """Write the table anew, whole or not at all: later rows may have columns that earlier ones lack."""
        text = StringIO()
        table = csv.DictWriter(text, list(dict.fromkeys(name for row in self._rows for name in row)))
        table.writeheader()
        table.writerows(self._rows)
        write_text(self.path, text.getvalue())
        self._events.flush()


class Monitoring:
    """Gathers what a training does, every few epochs, and hands it on. The device is waited for only then.

    ``loss/<term>``, ``gradient_norm/<group>`` and ``learning_rate/<group>`` of every epoch (means over the models),
    ``evaluation/data_loss`` (over all data, the best so far); ``rate/steps_per_s``, ``rate/samples_per_s`` (spectra of
    ordered pairs, of every model), ``metric/low`` and ``metric/high`` (g̃ on its table: 1 is the warp alone),
    ``solver/<status>`` (geodesics between neighbouring levels by outcome, where paths are found by shooting),
    ``device/<name>`` from ``probe``, and on a CUDA device ``device/peak_memory_bytes``.

    Args:
        log: where they are written; None writes nothing.
        also: a second log of the same numbers, at Weights & Biases (`geonode.training.wandb_log`).
        probe: called for the device's counters, for example power, memory and SM activity by NVML.
        watcher: called with the latest of them all, for example to show them.
    """

    def __init__(
        self,
        log: TrainingLog | None = None,
        probe: Probe | None = None,
        watcher: Watcher | None = None,
        also: WandbLog | None = None,
    ) -> None:
        self.log, self.probe, self.watcher, self.also = log, probe, watcher, also
        self._told, self._since = 0, 0.0

    def begin(self, epoch: int) -> None:
        """Start the clock, where ``epoch`` epochs are done."""
        self._told, self._since = epoch, time.perf_counter()

    def look(self, done: int, epochs: int, stacks: Sequence[StackSteps]) -> None:
        """After ``done`` of ``epochs``: tell of all since the last look.

        Args:
            done: epochs done.
            epochs: of the whole training.
            stacks: the steps of every stack that is trained side by side.
        """
        first = stacks[0]
        if first.source.device.type == "cuda":
            torch.cuda.synchronize(first.source.device)
        seconds = max(time.perf_counter() - self._since, 1e-9)
        updates = first.source.updates_per_epoch
        latest: dict[str, float] = {}
        for epoch in range(self._told, done):
            latest = _epoch(epoch, stacks)
            if epoch + 1 < done:
                self._add((epoch + 1) * updates, latest)
        rate = (done - self._told) * first.source.steps_per_epoch / seconds
        samples = sum(samples_in(stack.source.batch(0, 0)) for stack in stacks)
        latest |= {"rate/steps_per_s": rate, "rate/samples_per_s": rate * samples}
        latest |= model_figures([(stack.ode, stack.source.problem) for stack in stacks])
        latest |= device_figures(first.source.device, self.probe)
        self._add(done * updates, latest)
        if self.log is not None:
            self.log.flush()
        if self.watcher is not None:
            self.watcher({"epoch": done, "epochs": epochs, **latest})
        self.begin(done)

    def _add(self, step: int, values: dict[str, float]) -> None:
        if self.log is not None:
            self.log.add(step, values)
        if self.also is not None:
            self.also.add(step, values)


def _epoch(epoch: int, stacks: Sequence[StackSteps]) -> dict[str, float]:
    """Losses, norms and rates of an epoch: means over all models."""
    first = stacks[0]
    rows = torch.cat([stack.control.history[:, epoch] for stack in stacks]).double()
    losses, rest = rows.mean(0).tolist()[: len(first.control.names)], rows.mean(0).tolist()[len(first.control.names) :]
    values = {f"loss/{name}": value for name, value in zip(first.control.names, losses, strict=True)}
    values["loss/total"] = sum(losses)
    for group, norm, rate in zip(first.groups, rest[:2], rest[2:], strict=False):
        values |= {f"gradient_norm/{group}": norm, f"learning_rate/{group}": rate}
    values["evaluation/data_loss"] = float(torch.cat([stack.control.best for stack in stacks]).mean())
    return values


def samples_in(batch: PointsBatch | PairsBatch) -> int:
    """Spectra that one step learns from: ordered pairs of its points, or its pairs, of every model."""
    models, count = batch.target.shape[:2]
    return models * count * (count - 1) if isinstance(batch, PointsBatch) else models * count


def model_figures(models: Sequence[tuple[CoupledSpectralODE, Problem]]) -> dict[str, float]:
    """Range of the metric and, where paths are found by shooting, the solver's outcomes, over all ``models``."""
    ranges = [metric_range(ode) for ode, _ in models]
    values = {
        "metric/low": min(found["metric/low"] for found in ranges),
        "metric/high": max(found["metric/high"] for found in ranges),
    }
    if models[0][0].path.name == "shooting":
        counts = [solver_counts(ode, problem) for ode, problem in models]
        values |= {f"solver/{name}": float(sum(found[name] for found in counts)) for name in counts[0]}
    return values


def device_figures(device: torch.device, probe: Probe | None) -> dict[str, float]:
    """The device's counters by ``probe``, and on a CUDA device the peak of allocated memory."""
    values = {} if probe is None else {f"device/{name}": value for name, value in probe().items()}
    if device.type == "cuda":
        values["device/peak_memory_bytes"] = float(torch.cuda.max_memory_allocated(device))
    return values


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
        newton_steps=ode.path.newton_steps,
        ode_steps=ode.path.ode_steps,
    )
    counts = torch.bincount(solution.status.flatten(), minlength=len(Status)).tolist()
    return {status.name.lower(): counts[status] for status in Status}
