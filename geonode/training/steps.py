"""The steps of a stack: the loss of `geonode.training.loss`, its gradients, and one optimiser for M models.

On a CUDA device the step is recorded once as a CUDA graph and replayed: what changes from step to step (numbers of
drawn wavelengths and pairs, loss weights) is copied into the graph's inputs. Elsewhere it is simply called.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from geonode.config import GeodesicConfig
from geonode.errors import DeviceError, SolverError
from geonode.flow import CoupledSpectralODE
from geonode.training.batches import BatchSource
from geonode.training.control import Outcome, Reduce, StackControl
from geonode.training.loss import Losses, build_optimizer, learning_rate, losses, parameter_groups
from geonode.training.precision import half_of
from geonode_kernels import CapturedStep, triton_available
from geonode_runtime.wording import argument

BACKENDS = ("auto", "triton", "torch")
DATA = "reconstruction"


def use_captured(backend: str, source: BatchSource, ode: CoupledSpectralODE) -> bool:
    """Whether to train ``ode`` by captured steps: ``auto`` where they can be had, ``triton`` always, ``torch`` never.

    Raises:
        DeviceError: ``triton`` where something stands in the way, or an unknown backend.
    """
    if backend not in BACKENDS:
        raise DeviceError(f"{argument('backend', backend)} is unknown; choose one of {', '.join(BACKENDS)}.")
    if backend == "torch":
        return False
    reason = obstacle(source, ode)
    if backend == "triton" and reason:
        raise DeviceError(f"Training steps cannot be captured: {reason}; use {argument('backend', 'auto')} or 'torch'.")
    return reason is None


def obstacle(source: BatchSource, ode: CoupledSpectralODE) -> str | None:
    """Why steps of this training cannot be captured; None where they can."""
    if source.device.type != "cuda":
        return f"the problem is on {source.device.type}, and a CUDA graph needs a CUDA device"
    if not triton_available():
        return "Triton is not installed"
    if source.problem.target.dtype != torch.float32:
        return f"the problem is {source.problem.target.dtype}, and kernels work in float32"
    return ode.capture_refusal()


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
        self.names = [DATA, *(name for name, weight in config.loss.at(1.0).items() if weight > 0.0 and name != DATA)]
        self.dtype = half_of(config)
        like = source.problem.target
        schedule = [config.loss.at(epoch / config.training.epochs) for epoch in range(config.training.epochs)]
        rows = [[row[name] for name in self.names] for row in schedule]
        self.weights = torch.tensor(rows, dtype=like.dtype).to(like.device)  # [epochs, terms]
        self.factors = like.new_tensor(
            [learning_rate(epoch / config.training.epochs) for epoch in range(config.training.epochs)]
        )

    def inputs(self, epoch: int, step: int) -> list[Tensor]:
        """What `__call__` takes for this step of this epoch."""
        return [self.weights[epoch], *self.source.draw(epoch, step)]

    def __call__(self, weights: Tensor, *drawn: Tensor) -> Tensor:
        """Weighted terms [terms, M] in the order of ``names``, each times the micro-batch's share of its mega-batch."""
        batch = self.source.gather(*drawn)
        kind = batch.target.device.type
        with torch.autocast(kind, self.dtype, enabled=self.dtype is not None, cache_enabled=False):
            terms = self.function(self.ode, batch, dict.fromkeys(self.names, 1.0))
        return torch.stack([terms[name] for name in self.names]) * weights[:, None] * self.source.portion(*drawn)


class StackSteps:
    """The steps of a stack's training: the model, its optimiser, and what steers each model.

    Args:
        ode: the stack, trained in place; its parameters lie in the optimiser's buffer until `finish`.
        source: of its batches.
        config: of the training.
        capture: record steps as CUDA graphs where the device is one.
        rates, patience, reduce: see `geonode.training.control.StackControl`.
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
        reduce: Reduce | None = None,
    ) -> None:
        self.groups = [group["name"] for group in parameter_groups(ode, config.training)]
        self.optimizer = build_optimizer(ode, config.training, "auto" if capture else "torch")
        if rates is not None and len(self.groups) == 1:
            rates = rates[:, 1:].expand(-1, 2)  # without a metric network there is the flow's rate alone
        self.ode, self.source, self.config = ode, source, config
        self.loss = LossStep(ode, source, config, function)
        self.control = StackControl(self.optimizer, config, self.loss.names, rates, patience, reduce=reduce)
        # gradients gathered so far too: a step in the middle of a mega-batch may be the one that is being recorded
        self._state = [*self.optimizer.state_tensors(), self.optimizer.gradient, *self.control.state_tensors()]
        self._capture = capture and source.device.type == "cuda"
        self._recorded: dict[Any, CapturedStep] = {}
        self._evaluation: CapturedStep | None = None

    def begin(self) -> None:
        """Note the data loss before the first step: no training ends above it."""
        self.control.start.copy_(self.evaluate())
        self.control.consider(self.control.start)

    def epoch(self, epoch: int) -> None:
        """All steps of an epoch, and what follows them."""
        for number in range(self.source.steps_per_epoch):
            self.take(epoch, number)
        self.end_epoch(epoch)

    def end_epoch(self, epoch: int) -> None:
        """What follows the steps of an epoch: see `StackControl.end_epoch`."""
        self.control.end_epoch(epoch, self.source.updates_per_epoch, self.evaluate)

    def take(self, epoch: int, number: int) -> Tensor:
        """Draw that batch and go by it; at the end of a mega-batch the models move. Norms [M, 2] of the gradients."""
        if number == 0:
            self.control.begin_epoch(self.loss.factors[epoch])
        inputs = self.loss.inputs(epoch, number)
        first, last = number % self.source.accumulate == 0, self.source.ends_update(number)
        if not self._capture:
            return self._step(first, last, *inputs)
        key = (first, last, *(tensor.shape for tensor in inputs))
        if key not in self._recorded:
            self._recorded[key] = CapturedStep(partial(self._step, first, last), inputs, self._state)
        return self._recorded[key](*inputs)

    def evaluate(self) -> Tensor:
        """Data loss [M] of the models as they are, on `BatchSource.evaluation`; not finite where it cannot be had."""
        if not self._capture:
            return self._evaluate()
        if self._evaluation is None:
            _ = self.source.evaluation_draws  # drawn before recording: a graph would draw anew at each replay
            self._evaluation = CapturedStep(self._evaluate, state=[self.optimizer.flat])
        return self._evaluation()

    def finish(self) -> Outcome:
        """Take the best state, give the parameters memory of their own, and say how it went."""
        self.control.take_best()
        for parameter in self.optimizer.parameters:  # out of the flat buffer
            parameter.data = parameter.detach().clone()
        self.ode.eval()
        return self.control.outcome()

    def _step(self, first: bool, last: bool, *inputs: Tensor) -> Tensor:
        parameters = self.optimizer.parameters
        try:
            terms = self.loss(*inputs)
            scaled = (terms.sum(0) * self.optimizer.scale).sum()
            gradients = torch.autograd.grad(scaled, parameters, allow_unused=True, materialize_grads=True)
        except (AssertionError, SolverError) as error:
            if not is_divergence(error):
                raise
            # an adaptive solver found no step: a loss that is no number, for all models, which it solves together
            terms = self.optimizer.norms.new_full((len(self.loss.names), self.optimizer.models), torch.nan)
            gradients = [torch.full_like(parameter, torch.nan) for parameter in parameters]
        self.control.after_loss(terms)
        self.optimizer.gather(gradients, add=not first)
        return self.control.update() if last else self.optimizer.norms

    def _evaluate(self) -> Tensor:
        try:
            return data_loss(self.ode, self.source)
        except (AssertionError, SolverError) as error:
            if not is_divergence(error):
                raise
            return self.optimizer.norms.new_full((self.optimizer.models,), torch.inf)


@torch.no_grad()
def data_loss(ode: CoupledSpectralODE, source: BatchSource) -> Tensor:
    """Data loss [M] over all that is measured and taught, at all wavelengths, in the precision of the parameters."""
    total = torch.zeros_like(source.problem.weight[:, 0])
    for batch, share in source.evaluation():
        total = total + share * losses(ode, batch, {DATA: 1.0})[DATA]
    return total


def is_divergence(error: BaseException) -> bool:
    """Whether an adaptive solver says that it finds no step: torchdiffeq does so by assertions."""
    signs = ("underflow in dt", "non-finite values in state", "max_num_steps exceeded")
    return isinstance(error, SolverError) or any(sign in str(error) for sign in signs)
