"""What each model of a stack has to itself while all are trained together: learning rates, loss scale, early stopping,
the best state so far, and the way back from a loss that is no number. All of it lives on the device and nothing waits
for it there: a model that rests, overflows or is set back is masked, and the others go on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from geonode.config import GeodesicConfig
from geonode.errors import TrainingError
from geonode_kernels import FlatAdamW

LOOK = 5  # epochs between looks at weights and losses
LIMIT = 3  # roll-backs of one model
_EVALUATIONS = 8  # of the data loss in a training, about: each takes as long as one or two steps
_GROWTH = 2000  # steps without overflow until a loss scale doubles (torch.amp.GradScaler's)
_SMALLEST_SCALE = 2.0**-10  # a loss scale below this is not overflow but a gradient that is no number

Reduce = Callable[[Tensor], Tensor]
"""The mean over the processes that share a training, of a tensor that each of them has."""


def is_look(epoch: int, epochs: int) -> bool:
    """Whether weights and losses are looked at after ``epoch`` (counted from 0): every few, and after the last."""
    return (epoch + 1) % LOOK == 0 or epoch + 1 == epochs


def is_evaluation(epoch: int, epochs: int) -> bool:
    """Whether the data loss is evaluated after ``epoch``: at some looks, evenly spread, and after the last."""
    between = LOOK * max(1, -(-epochs // (LOOK * _EVALUATIONS)))
    return (epoch + 1) % between == 0 or epoch + 1 == epochs


@dataclass
class Outcome:
    """How the training of M models went, on the host.

    Attributes:
        epochs: [M] each was trained for.
        rollbacks: [M] to the last good state.
        skipped: [M] steps whose gradient was not finite.
        given_up: [M] True where roll-backs did not help.
        start: [M] data loss (`BatchSource.evaluation`) before the first step.
        best: [M] the lowest one met, which is that of the trained model.
        losses: [M, epochs, terms] of each epoch, in the order of ``terms``.
        terms: their names.
    """

    epochs: Tensor
    rollbacks: Tensor
    skipped: Tensor
    given_up: Tensor
    start: Tensor
    best: Tensor
    losses: Tensor
    terms: list[str]

    @property
    def history(self) -> list[dict[str, float]]:
        """Of each epoch the loss terms by name and their sum, means over the models."""
        rows = self.losses.mean(0).tolist()
        return [{**dict(zip(self.terms, row, strict=True)), "total": sum(row)} for row in rows]

    @staticmethod
    def join(parts: list[Outcome]) -> Outcome:
        """Of several stacks as of one.

        Args:
            parts: of the stacks, in the order of their models.
        """
        names = ("epochs", "rollbacks", "skipped", "given_up", "start", "best", "losses")
        joined = {name: torch.cat([getattr(part, name) for part in parts]) for name in names}
        return Outcome(**joined, terms=parts[0].terms)

    def require_finite(self) -> None:
        """Refuse a training in which some model never found a finite loss.

        Raises:
            TrainingError: naming the models.
        """
        if bool(self.given_up.any()):
            bad = ", ".join(str(m) for m in self.given_up.nonzero().flatten().tolist())
            raise TrainingError(
                f"The loss of model {bad} (of {len(self.given_up)}) is not finite, and {LIMIT} roll-backs with half "
                "the learning rate each did not help; lower metric_lr and flow_lr, or train in 32-true."
            )

    def warnings(self) -> list[str]:
        """A sentence for each model that was set back."""
        return [
            f"The loss of model {m} was not finite: back to its last good state with half the learning rate "
            f"({count} of {LIMIT} roll-backs)."
            for m, count in enumerate(self.rollbacks.tolist())
            if count
        ]


class StackControl:
    """The vectors [M] that steer the optimiser of a stack.

    Args:
        optimizer: whose ``rates``, ``scale`` and ``active`` are steered.
        config: learning rates, loss scaling, and the number of epochs.
        terms: names of the loss terms.
        rates: [M, 2] learning rates of metric and flow of each model; None takes the configured ones for all.
        patience: epochs without a better data loss after which a model rests; None: never.
        tolerance: relative gain that counts as better.
        reduce: the mean over processes that share each step; None where this is the only one.
    """

    def __init__(
        self,
        optimizer: FlatAdamW,
        config: GeodesicConfig,
        terms: list[str],
        rates: Tensor | None = None,
        patience: int | None = None,
        tolerance: float = 1e-3,
        reduce: Reduce | None = None,
    ) -> None:
        self.optimizer, self.config, self.names = optimizer, config, terms
        self.patience, self.tolerance, self.reduce = patience, tolerance, reduce
        zero = torch.zeros_like(optimizer.active)
        self.base = optimizer.rates.clone() if rates is None else rates.to(optimizer.rates)
        self.scaled = config.training.precision == "16-mixed"
        if self.scaled:
            optimizer.scale.fill_(config.training.scaler_init)
        self.factor, self.lowest = zero + 1.0, zero + torch.inf
        self.clean, self.since, self.epochs = zero.clone(), zero.clone(), zero.clone()
        self.rollbacks, self.skipped, self.bad = zero.clone(), zero.clone(), zero > 0
        self.terms = zero.new_zeros(len(terms), len(zero))  # of this epoch so far
        self.history = zero.new_zeros(len(zero), config.training.epochs, len(terms) + 4)  # terms, two norms, two rates
        self.start, self.best, self.evaluated = zero + torch.inf, zero + torch.inf, zero + torch.inf
        self._model = optimizer.slots // 2  # of each element of the flat buffers
        self._good = [tensor.clone() for tensor in optimizer.state_tensors()]
        self._kept = optimizer.flat.clone()  # the parameters with the lowest data loss

    def state_tensors(self) -> list[Tensor]:
        """What a step changes beside the optimiser's own."""
        return [self.clean, self.terms, self.skipped, self.bad, self.optimizer.scale]

    def begin_epoch(self, factor: Tensor | float) -> None:
        """Set the rates of an epoch: the schedule's factor, and each model's own."""
        self.optimizer.rates.copy_(self.base * self.factor[:, None] * factor)
        self.terms.zero_()

    def after_loss(self, terms: Tensor) -> None:
        """Note a micro-batch's terms [terms, M], each its part of the optimiser step (without loss scale)."""
        terms = terms.detach()
        self.terms += terms
        self.bad |= ~torch.isfinite(terms.sum(0))

    def update(self) -> Tensor:
        """The optimiser's step, and the loss scales that follow from it; norms [M, 2] of the gradients."""
        if self.reduce is not None:
            self.optimizer.gradient.copy_(self.reduce(self.optimizer.gradient))
        norms = self.optimizer.update()
        finite = torch.isfinite(norms).all(1)
        self.skipped += ~finite & (self.optimizer.active > 0)
        if self.scaled:
            scale = self.optimizer.scale
            self.clean.copy_(torch.where(finite, self.clean + 1.0, 0.0))
            grows = self.clean >= _GROWTH
            scale.mul_(torch.where(finite, 1.0 + grows.to(scale), self.config.training.scaler_backoff))
            self.clean.masked_fill_(grows, 0.0)
            self.bad |= scale < _SMALLEST_SCALE
        else:
            self.bad |= ~finite
        return norms

    def end_epoch(self, epoch: int, updates: int, evaluate: Callable[[], Tensor] | None = None) -> None:
        """History, early stopping, every few epochs the look at what is finite, and now and then what is best.

        Args:
            epoch: which, from 0.
            updates: optimiser steps in it.
            evaluate: gives the data loss [M] of the models as they are.
        """
        if self.reduce is not None:  # each process saw its own wavelengths
            self.terms.copy_(self.reduce(self.terms))
            self.bad.copy_(self.reduce(self.bad.to(self.terms)) > 0.0)
        active = self.optimizer.active
        self.epochs += active
        self.history[:, epoch] = torch.cat([self.terms.T / updates, self.optimizer.norms, self.optimizer.rates], 1)
        if self.patience is not None:
            seen = self.terms[0]
            better = seen < self.lowest * (1.0 - self.tolerance)
            self.lowest.copy_(torch.where(better, seen, self.lowest))
            self.since.copy_(torch.where(better, 0.0, self.since + 1.0))
            active.mul_(self.since < self.patience)
        if is_look(epoch, self.config.training.epochs):
            self._look()
        if evaluate is not None and is_evaluation(epoch, self.config.training.epochs):
            self.consider(evaluate())

    @torch.no_grad()
    def consider(self, loss: Tensor) -> None:
        """Keep the parameters of the models whose data loss [M] is the lowest so far."""
        self.evaluated.copy_(loss)
        better = self.evaluated < self.best  # false where it is no number
        self.best.copy_(torch.where(better, self.evaluated, self.best))
        self._kept.copy_(torch.where(better[self._model], self.optimizer.flat, self._kept))

    @torch.no_grad()
    def take_best(self) -> None:
        """Put the kept parameters in place of the last ones."""
        found = torch.isfinite(self.best)[self._model]
        self.optimizer.flat.copy_(torch.where(found, self._kept, self.optimizer.flat))

    def outcome(self) -> Outcome:
        """How it went; waits for the device."""
        rollbacks = self.rollbacks.cpu().long()
        given_up = rollbacks > LIMIT
        losses = self.history[..., : len(self.names)].double().cpu()
        vectors = self.epochs.cpu().long(), rollbacks.clamp(max=LIMIT), self.skipped.cpu().long(), given_up
        return Outcome(*vectors, self.start.double().cpu(), self.best.double().cpu(), losses, self.names)

    def state(self) -> dict[str, Tensor]:
        """All that goes on from one epoch to the next, by name: [M, …] each, one row a model."""
        vectors = {name: getattr(self, name) for name in _VECTORS}
        vectors |= {"scale": self.optimizer.scale, "active": self.optimizer.active, "base": self.base}
        vectors |= {"powers": self.optimizer.powers, "good/powers": self._good[3], "history": self.history}
        for name, buffer in self._buffers().items():
            vectors |= {f"{name}/{i}": view for i, view in enumerate(self.optimizer.views(buffer))}
        return vectors

    @torch.no_grad()
    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go on from what `state` gave: ``state`` has rows for exactly these models."""
        for name, own in self.state().items():
            own.copy_(state[name])

    def _buffers(self) -> dict[str, Tensor]:
        own = self.optimizer
        good = dict(zip(("good/flat", "good/mean", "good/square"), self._good, strict=False))
        return {"flat": own.flat, "mean": own.mean, "square": own.square, **good, "kept": self._kept}

    @torch.no_grad()
    def _look(self) -> None:
        """Set bad models back to the last good state with half the rate; what is good now is the good state."""
        views = self.optimizer.views(self.optimizer.flat)
        self.bad |= ~torch.stack([torch.isfinite(view).all(1) for view in views]).all(0)
        self.bad &= self.optimizer.active > 0
        for tensor, good in zip(self.optimizer.state_tensors(), self._good, strict=True):
            back = self.bad[self._model] if tensor.ndim == 1 else self.bad[:, None]
            tensor.copy_(torch.where(back, good, tensor))
            good.copy_(tensor)
        self.factor.mul_(torch.where(self.bad, 0.5, 1.0))
        self.rollbacks += self.bad
        self.optimizer.active.mul_(self.rollbacks <= LIMIT)
        if self.scaled:
            self.optimizer.scale.copy_(torch.where(self.bad, self.config.training.scaler_init, self.optimizer.scale))
        self.bad.zero_()


_VECTORS = (
    "factor", "lowest", "clean", "since", "epochs", "rollbacks", "skipped", "bad", "start", "best", "evaluated",
)  # fmt: skip
