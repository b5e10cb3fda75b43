"""What each model of a stack has to itself while all are trained together: learning rates, loss scale, early stopping,
and the way back from a loss that is no number. All of it lives on the device and nothing waits for it there: a model
that rests, overflows or is set back is masked, and the others go on.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from geonode.config import GeodesicConfig
from geonode.errors import TrainingError
from geonode_kernels import FlatAdamW

LOOK = 5  # epochs between looks at weights and losses
LIMIT = 3  # roll-backs of one model
_GROWTH = 2000  # steps without overflow until a loss scale doubles (torch.amp.GradScaler's)
_SMALLEST_SCALE = 2.0**-10  # a loss scale below this is not overflow but a gradient that is no number


@dataclass
class Outcome:
    """How the training of M models went, on the host.

    epochs [M] each was trained for; rollbacks [M] to the last good state; skipped [M] steps whose gradient was not
    finite; given_up [M] True where roll-backs did not help.
    """

    epochs: Tensor
    rollbacks: Tensor
    skipped: Tensor
    given_up: Tensor

    @staticmethod
    def join(parts: list[Outcome]) -> Outcome:
        """Of several stacks as of one."""
        return Outcome(*(torch.cat([getattr(part, name) for part in parts]) for name in Outcome.__dataclass_fields__))

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
        config: learning rates and loss scaling.
        rates: [M, 2] learning rates of metric and flow of each model; None takes the configured ones for all.
        patience: epochs without a better data loss after which a model rests; None: never.
        tolerance: relative gain that counts as better.
    """

    def __init__(
        self,
        optimizer: FlatAdamW,
        config: GeodesicConfig,
        rates: Tensor | None = None,
        patience: int | None = None,
        tolerance: float = 1e-3,
    ) -> None:
        self.optimizer, self.config = optimizer, config
        self.patience, self.tolerance = patience, tolerance
        zero = torch.zeros_like(optimizer.active)
        self.base = optimizer.rates.clone() if rates is None else rates.to(optimizer.rates)
        self.scaled = config.precision == "16-mixed"
        if self.scaled:
            optimizer.scale.fill_(config.scaler_init)
        self.factor, self.best = zero + 1.0, zero + torch.inf
        self.clean, self.since, self.seen, self.epochs = zero.clone(), zero.clone(), zero.clone(), zero.clone()
        self.rollbacks, self.skipped, self.bad = zero.clone(), zero.clone(), zero > 0
        self._model = optimizer.slots // 2  # of each element of the flat buffers
        self._good = [tensor.clone() for tensor in optimizer.state_tensors()]

    def state_tensors(self) -> list[Tensor]:
        """What a step changes beside the optimiser's own."""
        return [self.clean, self.seen, self.skipped, self.bad, self.optimizer.scale]

    def begin_epoch(self, factor: Tensor | float) -> None:
        """Set the rates of an epoch: the schedule's factor, and each model's own."""
        self.optimizer.rates.copy_(self.base * self.factor[:, None] * factor)

    def after_loss(self, total: Tensor, data: Tensor) -> None:
        """Note a micro-batch's losses [M] (without loss scale)."""
        self.seen += data.detach()
        self.bad |= ~torch.isfinite(total.detach())

    def update(self) -> Tensor:
        """The optimiser's step, and the loss scales that follow from it; norms [M, 2] of the gradients."""
        norms = self.optimizer.update()
        finite = torch.isfinite(norms).all(1)
        self.skipped += ~finite & (self.optimizer.active > 0)
        if self.scaled:
            scale = self.optimizer.scale
            self.clean.copy_(torch.where(finite, self.clean + 1.0, 0.0))
            grows = self.clean >= _GROWTH
            scale.mul_(torch.where(finite, 1.0 + grows.to(scale), self.config.scaler_backoff))
            self.clean.masked_fill_(grows, 0.0)
            self.bad |= scale < _SMALLEST_SCALE
        else:
            self.bad |= ~finite
        return norms

    def end_epoch(self, epoch: int, last: bool) -> None:
        """Early stopping, and every few epochs the look at what is finite."""
        active = self.optimizer.active
        self.epochs += active
        if self.patience is not None:
            better = self.seen < self.best * (1.0 - self.tolerance)
            self.best.copy_(torch.where(better, self.seen, self.best))
            self.since.copy_(torch.where(better, 0.0, self.since + 1.0))
            active.mul_(self.since < self.patience)
        self.seen.zero_()
        if last or (epoch + 1) % LOOK == 0:
            self._look()

    def outcome(self) -> Outcome:
        """How it went; waits for the device."""
        rollbacks = self.rollbacks.cpu().long()
        given_up = rollbacks > LIMIT
        return Outcome(self.epochs.cpu().long(), rollbacks.clamp(max=LIMIT), self.skipped.cpu().long(), given_up)

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
            self.optimizer.scale.copy_(torch.where(self.bad, self.config.scaler_init, self.optimizer.scale))
        self.bad.zero_()
