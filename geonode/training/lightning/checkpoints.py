"""Training that survives: checkpoints to resume from to the bit, SIGTERM, and losses that stop being numbers."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins.io.checkpoint_io import CheckpointIO
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.utilities import rank_zero_warn
from torch import Tensor

from geonode.errors import InputError, Interrupted, TrainingError
from geonode.training.checkpoint import PATTERN, load_checkpoint, save_checkpoint
from geonode.training.lightning.strategies import is_sharded, keeps_its_own_weights


class SafetensorsIO(CheckpointIO):
    """Lightning's checkpoints by `geonode.training.checkpoint`: safetensors with JSON, without pickle."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        """Write ``checkpoint`` to ``path``; errors as for `geonode.training.checkpoint.save_checkpoint`."""
        save_checkpoint(checkpoint, path)

    def load_checkpoint(self, path: str | Path, map_location: Any = None, weights_only: bool | None = None) -> Any:
        """Read a checkpoint; errors as for `geonode.training.checkpoint.load_checkpoint`."""
        return load_checkpoint(path, map_location if isinstance(map_location, (str, torch.device)) else "cpu")

    def remove_checkpoint(self, path: str | Path) -> None:
        """Delete a checkpoint; a missing one is not an error."""
        Path(path).unlink(missing_ok=True)


class Recovery(Callback):
    """Checkpoints every few epochs, stops cleanly on SIGTERM, and rolls back a training that is no longer finite.

    After ``every`` epochs weights and losses are looked at (the only time the device is waited for). Where all are
    finite, they are kept as the last good state, and written to ``folder``. Else the last good state comes back with
    half the learning rate, training goes on with the next epoch, and the user is told; after three times it gives up.
    Under DeepSpeed it gives up at once. On SIGTERM the epoch is finished and, with ``folder``, written; then training
    stops.

    Args:
        folder: where checkpoints go; None writes none, and only rolls back.
        every: epochs between looks. keep: checkpoints left standing. belongs_to: `fingerprint` of the training.
    """

    LIMIT = 3

    def __init__(
        self, folder: str | Path | None = None, every: int = 5, keep: int = 3, belongs_to: str | None = None
    ) -> None:
        if every < 1 or keep < 1:
            raise InputError(f"every={every} and keep={keep} must be at least 1.")
        self.folder = None if folder is None else Path(folder)
        self.every, self.keep, self.belongs_to = every, keep, belongs_to
        self.rollbacks, self.stopped_at = 0, None
        self._kept_by = "with --checkpoint"  # what would have kept a training that is stopped
        self._asked_to_stop = False
        self._good: tuple[int, list[Tensor], list[dict[str, Any]]] | None = None

    @property
    def state_key(self) -> str:
        """The name its state has in a checkpoint."""
        return "Recovery"

    def state_dict(self) -> dict[str, Any]:
        """Goes into each checkpoint."""
        return {"rollbacks": self.rollbacks}

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        """What the checkpoint belongs to, where `newest_checkpoint` looks for it."""
        checkpoint["belongs_to"] = self.belongs_to

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Comes out of the checkpoint resumed from."""
        self.rollbacks = state_dict["rollbacks"]

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Listen for SIGTERM in place of Lightning, which would stop in mid-epoch and exit with 0; the start is the
        first good state.

        Lightning puts the former handler back when it ends.
        """
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._on_sigterm)
        if is_sharded(trainer.strategy):
            self._kept_by = "with strategy 'ddp' and --checkpoint"
        self._remember(trainer)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Look, keep or roll back, write, stop: in this order."""
        asked = self._asked_to_stop
        if trainer.world_size > 1:  # one rank's signal stops all of them after the same epoch
            asked = trainer.strategy.reduce_boolean_decision(asked, all=False)
        epoch = trainer.current_epoch + 1
        if not asked and epoch % self.every and epoch < trainer.max_epochs:
            return
        if not self._finite(trainer):
            self._roll_back(trainer)
        else:
            self._remember(trainer)
        if self.folder is not None:
            trainer.save_checkpoint(self.folder / f"epoch-{epoch:06d}.ckpt")
            if trainer.is_global_zero:
                for old in sorted(self.folder.glob(PATTERN))[: -self.keep]:
                    old.unlink(missing_ok=True)
        if asked and epoch < trainer.max_epochs:
            self.stopped_at, trainer.should_stop = epoch, True

    def require_finished(self) -> None:
        """After training.

        Raises:
            Interrupted: SIGTERM stopped it before its last epoch.
        """
        if self.stopped_at is None:
            return
        if self.folder is None:
            raise Interrupted(
                f"Stopped by SIGTERM after epoch {self.stopped_at}, and nothing is kept; {self._kept_by} it would be."
            )
        raise Interrupted(
            f"Stopped by SIGTERM after epoch {self.stopped_at}, which is kept in {self.folder}; "
            "give the same command with --resume to go on."
        )

    def _on_sigterm(self, *_: Any) -> None:
        self._asked_to_stop = True

    def _finite(self, trainer: Any) -> bool:
        values = [p.detach() for group in trainer.optimizers[0].param_groups for p in group["params"]]
        values += [v for name, v in trainer.callback_metrics.items() if name.startswith("loss/")]
        finite = bool(torch.stack([torch.isfinite(v).all() for v in values]).all())
        return trainer.strategy.reduce_boolean_decision(finite, all=True) if trainer.world_size > 1 else finite

    def _parameters(self, trainer: Any) -> list[Tensor]:
        return [p for group in trainer.optimizers[0].param_groups for p in group["params"]]

    def _remember(self, trainer: Any) -> None:
        parameters = self._parameters(trainer)
        state = trainer.optimizers[0].state
        kept = [
            {k: v.detach().clone() if isinstance(v, Tensor) else v for k, v in state[p].items()} for p in parameters
        ]
        self._good = (trainer.current_epoch, [p.detach().clone() for p in parameters], kept)

    @torch.no_grad()
    def _roll_back(self, trainer: Any) -> None:
        epoch = trainer.current_epoch + 1
        if keeps_its_own_weights(trainer.strategy):
            raise TrainingError(
                f"The loss is not finite after epoch {epoch}, and DeepSpeed's weights cannot be set back; lower "
                "metric_lr and flow_lr, or use strategy 'ddp', which goes back by itself."
            )
        if self.rollbacks >= self.LIMIT or self._good is None:
            raise TrainingError(
                f"The loss is not finite after epoch {epoch}, and {self.LIMIT} roll-backs with half the learning rate "
                "each did not help; lower metric_lr and flow_lr, or train in 32-true instead of mixed precision."
            )
        self.rollbacks += 1
        good, values, states = self._good
        optimizer = trainer.optimizers[0]
        for parameter, value, state in zip(self._parameters(trainer), values, states, strict=True):
            parameter.copy_(value)
            optimizer.state[parameter] = {k: v.clone() if isinstance(v, Tensor) else v for k, v in state.items()}
        for group in optimizer.param_groups:
            group["lr"], group["initial_lr"] = 0.5 * group["lr"], 0.5 * group["initial_lr"]
        for item in trainer.lr_scheduler_configs:
            item.scheduler.base_lrs = [0.5 * rate for rate in item.scheduler.base_lrs]
        rank_zero_warn(
            f"The loss is not finite after epoch {epoch}: back to the weights of epoch {good}, "
            f"with half the learning rate (roll-back {self.rollbacks} of {self.LIMIT})."
        )
