"""`GeodesicSpectralModule`: the loop's training step under Lightning, for several devices and one's own Trainers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import lightning as L
import torch
from lightning.pytorch.strategies import SingleDeviceStrategy
from torch import Tensor

from geonode.config import GeodesicConfig
from geonode.training.batches import BatchSource
from geonode.training.control import Outcome, Reduce, is_evaluation
from geonode.training.lightning.strategies import is_sharded, whole_parameters
from geonode.training.loss import build_losses, learning_rate, parameter_groups
from geonode.training.monitoring import samples_in
from geonode.training.precision import dtype_of, require_precision
from geonode.training.problem import Problem
from geonode.training.steps import LossStep, StackSteps, data_loss, use_captured


class GeodesicSpectralModule(L.LightningModule):
    """M coupled spectral ODEs trained on one problem.

    Batches are drawn on the device by key (seed, epoch, step), so the loader only counts steps. On one device and under
    DDP the step is `geonode.training.steps.StackSteps`, as in `geonode.training.train`: accumulation, clipping,
    schedule, loss scale, roll-back and best state are its own, and the Trainer needs no settings for them
    (``precision`` is the configuration's too). The processes of DDP share a step by wavelength, and their gradients
    meet once before each update. Strategies that cut parameters (FSDP, DeepSpeed) take Lightning's own optimisation.

    Args:
        problem: from `SpectralDataModule.problem` or `build_problem`.
        config: the same that built the problem.
        seed: of initial weights and draws; None takes ``config.training.seed``.
        compiled, recompute: see `geonode.training.loss.build_losses`.

    Attributes: ``ode`` the model, ``history`` the losses of each epoch, ``outcome`` how the training went, once it has
    ended.

    Raises:
        DeviceError: ``16-mixed`` without a CUDA device, when training starts.
    """

    def __init__(
        self,
        problem: Problem,
        config: GeodesicConfig | None = None,
        seed: int | None = None,
        compiled: bool = False,
        recompute: int = 0,
    ) -> None:
        super().__init__()
        self.config = config or GeodesicConfig(flow="path_independent")
        self.seed = self.config.training.seed if seed is None else seed
        self.problem = problem.to("cpu", dtype_of(self.config))
        self.ode = self.problem.build_model(self.config, self.seed)
        self.history: list[dict[str, float]] = []
        self.outcome: Outcome | None = None
        self.samples_per_step = 0
        self._compiled, self._function = compiled, build_losses(compiled, recompute)
        self._source: BatchSource | None = None
        self._steps: StackSteps | None = None
        self._cut: _CutSteps | None = None
        self._resumed: dict[str, Tensor] | None = None
        trained = {id(p) for group in parameter_groups(self.ode, self.config.training) for p in group["params"]}
        for parameter in self.ode.parameters():  # DDP waits for the gradient of everything that asks for one
            parameter.requires_grad_(id(parameter) in trained)

    @property
    def automatic_optimization(self) -> bool:
        """True under strategies that cut parameters: only these step by Lightning's own optimisation."""
        return self._trainer is not None and is_sharded(self._trainer.strategy)

    def forward(self, source: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """Transport spectra: arguments as for `geonode.flow.CoupledSpectralODE.forward`."""
        return self.ode(source, start, end)

    def on_fit_start(self) -> None:
        """Move the problem to the training device once, and go on from the checkpoint that was read.

        Raises:
            DeviceError: ``precision="16-mixed"`` without a CUDA device.
        """
        require_precision(self.config, self.device)
        dtype = self.problem.target.dtype
        self.ode = self.ode.place(self.device, dtype)
        rank, world = self.global_rank, self.trainer.world_size
        problem = self.problem.to(self.device, dtype)
        source = BatchSource(problem, self.ode.table, self.config, self.seed, rank, world)
        self.samples_per_step = samples_in(source.batch(0, 0))
        self._source, self.outcome = source, None
        if is_sharded(self.trainer.strategy):
            self._cut = _CutSteps(self, source)
            return
        alone = isinstance(self.trainer.strategy, SingleDeviceStrategy) and not self._compiled
        capture = alone and use_captured("auto", source, self.ode)
        reduce = self._mean_over_processes(source.share) if world > 1 else None
        self._steps = StackSteps(self.ode, source, self.config, capture, function=self._function, reduce=reduce)
        if self._resumed is None:
            self._steps.begin()
        else:
            self._steps.control.load_state(self._resumed)
            self._resumed = None

    def training_step(self, batch: Any, batch_idx: int) -> Tensor | None:
        """One micro-batch; at the end of a mega-batch the models move, at the end of an epoch its losses are logged.

        ``batch`` is not used: the module makes its own from the epoch and ``batch_idx``, the step within it.

        Raises:
            RuntimeError: called before training started.
        """
        if self._cut is not None:
            return self._cut.loss(self.current_epoch, batch_idx)
        if self._steps is None or self._source is None:
            raise RuntimeError("training_step was called before training started.")
        self._steps.take(self.current_epoch, batch_idx)
        if self._source.ends_update(batch_idx):
            self.optimizers().step()  # pyright: ignore[reportAttributeAccessIssue] - counts the step that was taken
        if batch_idx + 1 == self._source.steps_per_epoch:
            self._steps.end_epoch(self.current_epoch)
            self._log_epoch(self._steps)
        return None

    def _log_epoch(self, steps: StackSteps) -> None:
        names = [f"loss/{name}" for name in steps.loss.names]
        names += [f"{kind}/{group}" for kind in ("gradient_norm", "learning_rate") for group in ("metric", "flow")]
        row = steps.control.history[:, self.current_epoch].mean(0)
        values = dict(zip(names, row.unbind(), strict=True))
        values["loss/total"] = row[: len(steps.loss.names)].sum()
        self.log_dict(values, batch_size=1)

    def on_train_epoch_end(self) -> None:
        """Where parameters are cut: keep what is best."""
        if self._cut is not None:
            self._cut.end_epoch(self.current_epoch)

    def configure_optimizers(self) -> Any:
        """What counts the steps; where parameters are cut, AdamW with the loop's schedule."""
        if not is_sharded(self.trainer.strategy):
            return _CountedSteps(parameter_groups(self.ode, self.config.training))
        training = self.config.training
        groups, epochs = parameter_groups(self.ode, training), training.epochs
        optimizer = torch.optim.AdamW(groups, weight_decay=training.weight_decay, fused=False)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: learning_rate(min(epoch / epochs, 1.0)))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "epoch"}}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """The state of optimiser and models, their best and their losses so far travel along."""
        if self._steps is not None:
            checkpoint["stack"] = self._steps.control.state()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """The inverse of `on_save_checkpoint`."""
        self._resumed = checkpoint.get("stack")

    def on_train_end(self) -> None:
        """Take each model's best state; see `finish`."""
        self.finish()

    def finish(self) -> None:
        """Take each model's best state, and turn the kept losses into numbers: one transfer, after the last step.

        Also where no step was left to take, because a finished training was resumed.

        Raises:
            TrainingError: the loss of some model did not stay finite.
        """
        if self.outcome is not None:
            return
        if self._cut is not None:
            self.outcome, self.ode = self._cut.finish()
        elif self._steps is not None:
            self.outcome = self._steps.finish()
        if self.outcome is not None:
            self.history = self.outcome.history
            for text in self.outcome.warnings():
                warnings.warn(text, stacklevel=2)
            self.outcome.require_finite()

    def _mean_over_processes(self, share: float) -> Reduce:
        """The loss of a whole step is the processes' mean, each weighted by its ``share`` of the wavelengths."""
        return lambda value: self.trainer.strategy.reduce(value * share, reduce_op="mean")  # type: ignore[return-value]


class _CountedSteps(torch.optim.Optimizer):
    """Stands before Lightning for the optimiser of `StackSteps`: its step is taken there (on a GPU inside the graph),
    and is only counted here."""

    def __init__(self, groups: list[dict[str, Any]]) -> None:
        super().__init__(groups, {})

    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Nothing but Lightning's hooks, in ``closure``."""
        return None if closure is None else closure()


class _CutSteps:
    """Losses, history and best state where a strategy cuts parameters across devices, and steps itself."""

    def __init__(self, module: GeodesicSpectralModule, source: BatchSource) -> None:
        self.module, self.source = module, source
        self.step = LossStep(module.ode, source, module.config, module._function)
        models, like = module.problem.models, source.problem.target
        self.sums = like.new_zeros(len(self.step.names), models)
        self.rows = like.new_zeros(models, module.config.training.epochs, len(self.step.names))
        self.best = self.start = like.new_full((models,), torch.inf)
        self.kept: dict[str, Tensor] = {}
        self.consider()
        self.start = self.best.clone()

    def loss(self, epoch: int, number: int) -> Tensor:
        """The micro-batch's part of the loss, times the micro-batches by which Lightning will divide it."""
        terms = self.step(*self.step.inputs(epoch, number)) * self.source.share
        self.sums = terms.detach() + (self.sums if number else 0.0)
        if number + 1 == self.source.steps_per_epoch:
            trainer = self.module.trainer
            whole = trainer.strategy.reduce(self.sums / self.source.updates_per_epoch, reduce_op="mean")
            self.rows[:, epoch] = whole.T  # type: ignore[union-attr]
            names = [f"loss/{name}" for name in self.step.names]
            values = dict(zip(names, whole.mean(1).unbind(), strict=True))  # type: ignore[union-attr]
            self.module.log_dict({**values, "loss/total": whole.sum(0).mean()}, batch_size=1)  # type: ignore[union-attr]
        return terms.sum() * self.module.trainer.accumulate_grad_batches

    def end_epoch(self, epoch: int) -> None:
        """Now and then: what is best."""
        if is_evaluation(epoch, self.module.config.training.epochs):
            self.consider()

    @torch.no_grad()
    def consider(self) -> None:
        """Keep the parameters of the models whose data loss is the lowest so far, whole on every process."""
        ode = self.module.ode
        with whole_parameters(self.module.trainer.strategy):
            loss = data_loss(ode, self.source)
            better = loss < self.best
            for name, value in ode.state_dict().items():
                now, before = value.detach().clone(), self.kept.get(name)
                if before is not None and now.shape[:1] == better.shape:
                    now = torch.where(better.reshape(-1, *([1] * (now.ndim - 1))), now, before)
                self.kept[name] = now
        self.best = torch.where(better, loss, self.best)

    def finish(self) -> tuple[Outcome, Any]:
        """How it went, and a whole model with the best parameters."""
        module = self.module
        ode = module.problem.build_model(module.config, module.seed)
        ode.load_state_dict({name: value.cpu() for name, value in self.kept.items()})
        none = torch.zeros(module.problem.models, dtype=torch.long)
        epochs = none + module.config.training.epochs
        losses = self.rows.double().cpu()
        start, best = self.start.double().cpu(), self.best.double().cpu()
        return Outcome(epochs, none, none, none > 0, start, best, losses, self.step.names), ode
