"""The loop over a stack: the training step of `geonode.training.loss`, its gradients, and one optimiser for M models.

On a CUDA device the step is recorded once as a CUDA graph and replayed: what changes from step to step (numbers of
drawn wavelengths and pairs, loss weights) is copied into the graph's inputs. Elsewhere it is simply called.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from geonode.config import GeodesicConfig
from geonode.errors import DeviceError
from geonode.flow import CoupledSpectralODE
from geonode.training.batches import BatchSource
from geonode.training.control import Outcome, StackControl
from geonode.training.loss import Losses, learning_rate, losses, parameter_groups
from geonode.training.precision import half_of
from geonode_kernels import CapturedStep, FlatAdamW, triton_available

BACKENDS = ("auto", "triton", "torch")
_DATA = "reconstruction"


def use_captured(backend: str, source: BatchSource, config: GeodesicConfig) -> bool:
    """Whether to train by captured steps: ``auto`` where they can be had, ``triton`` always, ``torch`` never.

    Raises:
        DeviceError: ``triton`` where something stands in the way, or an unknown backend.
    """
    if backend not in BACKENDS:
        raise DeviceError(f"backend={backend!r} is unknown; choose one of {', '.join(BACKENDS)}.")
    if backend == "torch":
        return False
    reason = obstacle(source, config)
    if backend == "triton" and reason:
        raise DeviceError(f"Training steps cannot be captured: {reason}; use backend='auto' or 'torch'.")
    return reason is None


def obstacle(source: BatchSource, config: GeodesicConfig) -> str | None:
    """Why steps of this training cannot be captured; None where they can."""
    if source.device.type != "cuda":
        return f"the problem is on {source.device.type}, and a CUDA graph needs a CUDA device"
    if not triton_available():
        return "Triton is not installed"
    if source.problem.target.dtype != torch.float32:
        return f"the problem is {source.problem.target.dtype}, and kernels work in float32"
    if config.solver != "quadrature" or config.path == "shooting":
        return f"solver={config.solver!r} with path={config.path!r} decides its steps by looking at values"
    return None


class LossStep:
    """Loss terms of one step as a function of what the step draws: what a graph can be made of.

    Args:
        ode: the model. source: of its batches, which are gathered inside the step.
        config: which terms have weight, and the precision.
        function: `losses`, or a compiled or recomputing form of it.
    """

    def __init__(
        self, ode: CoupledSpectralODE, source: BatchSource, config: GeodesicConfig, function: Losses = losses
    ) -> None:
        self.ode, self.source, self.function = ode, source, function
        self.names = [name for name, weight in config.loss.at(1.0).items() if weight > 0.0 or name == _DATA]
        self.dtype = half_of(config)
        like = source.problem.target
        schedule = [config.loss.at(epoch / config.epochs) for epoch in range(config.epochs)]
        rows = [[row[name] for name in self.names] for row in schedule]
        self.weights = torch.tensor(rows, dtype=like.dtype).to(like.device)  # [epochs, terms]
        self.factors = like.new_tensor([learning_rate(epoch / config.epochs) for epoch in range(config.epochs)])

    def inputs(self, epoch: int, step: int) -> list[Tensor]:
        """What `__call__` takes for this step of this epoch."""
        return [self.weights[epoch], *self.source.draw(epoch, step)]

    def __call__(self, weights: Tensor, *drawn: Tensor) -> Tensor:
        """Weighted terms [terms, M], in the order of ``names``."""
        batch = self.source.gather(*drawn)
        kind = batch.target.device.type
        with torch.autocast(kind, self.dtype, enabled=self.dtype is not None, cache_enabled=False):
            terms = self.function(self.ode, batch, dict.fromkeys(self.names, 1.0))
        return torch.stack([terms[name] for name in self.names]) * weights[:, None]


class StackSteps:
    """The steps of a stack's training: the model, its optimiser, and what steers each model.

    Args:
        capture: record steps as CUDA graphs where the device is one.
        rates, patience: see `geonode.training.control.StackControl`.
        function: `losses`, or a compiled or recomputing form of it.
    """

    def __init__(
        self,
        ode: CoupledSpectralODE,
        source: BatchSource,
        config: GeodesicConfig,
        capture: bool = True,
        rates: Tensor | None = None,
        patience: int | None = None,
        function: Losses = losses,
    ) -> None:
        groups = [{**g, "clip": getattr(config, f"{g['name']}_clip")} for g in parameter_groups(ode)]
        self.optimizer = FlatAdamW(groups, weight_decay=config.weight_decay, backend="auto" if capture else "torch")
        if rates is not None and len(groups) == 1:
            rates = rates[:, 1:].expand(-1, 2)  # without a metric network there is the flow's rate alone
        self.source = source
        self.control = StackControl(self.optimizer, config, rates, patience)
        self.loss = LossStep(ode, source, config, function)
        # gradients gathered so far too: a step in the middle of a mega-batch may be the one that is being recorded
        self._state = [*self.optimizer.state_tensors(), self.optimizer.gradient, *self.control.state_tensors()]
        self._capture = capture and source.device.type == "cuda"
        self._recorded: dict[Any, CapturedStep] = {}

    def take(self, epoch: int, number: int) -> Tensor:
        """Draw that batch and go by it; at the end of a mega-batch the models move. Norms [M, 2] of the gradients."""
        if number == 0:
            self.control.begin_epoch(self.loss.factors[epoch])
        inputs = self.loss.inputs(epoch, number)
        first = number % self.source.accumulate == 0
        last = (number + 1) % self.source.accumulate == 0 or number + 1 == self.source.steps_per_epoch
        if not self._capture:
            return self._step(first, last, *inputs)
        key = (first, last, *(tensor.shape for tensor in inputs))
        if key not in self._recorded:
            self._recorded[key] = CapturedStep(partial(self._step, first, last), inputs, self._state)
        return self._recorded[key](*inputs)

    def _step(self, first: bool, last: bool, *inputs: Tensor) -> Tensor:
        terms = self.loss(*inputs)
        total = terms.sum(0)
        scaled = (total * self.optimizer.scale).sum() / self.source.accumulate
        gradients = torch.autograd.grad(scaled, self.optimizer.parameters, allow_unused=True, materialize_grads=True)
        self.control.after_loss(total, terms[self.loss.names.index(_DATA)])
        self.optimizer.gather(gradients, add=not first)
        return self.control.update() if last else self.optimizer.norms


def captured_step(
    ode: CoupledSpectralODE, source: BatchSource, config: GeodesicConfig
) -> tuple[Callable[[int, int], Tensor], FlatAdamW]:
    """``take(epoch, number)``, which draws that batch and replays one whole step on it, and the optimiser it updates.

    ``take`` returns the gradient norms [M, 2] before clipping. The model's parameters lie in the optimiser's buffer.
    """
    steps = StackSteps(ode, source, config)
    return steps.take, steps.optimizer


def train_stack(
    ode: CoupledSpectralODE,
    source: BatchSource,
    config: GeodesicConfig,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Outcome:
    """Train every model of a stack in place; ``options`` as for `StackSteps`."""
    steps = StackSteps(ode, source, config, **options)
    for epoch in range(config.epochs):
        for number in range(source.steps_per_epoch):
            steps.take(epoch, number)
        steps.control.end_epoch(epoch, epoch + 1 == config.epochs)
        if progress is not None:
            progress(epoch + 1, config.epochs)
    for parameter in steps.optimizer.parameters:  # out of the flat buffer, each into memory of its own
        parameter.data = parameter.detach().clone()
    ode.eval()
    return steps.control.outcome()
