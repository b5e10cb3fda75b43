"""Trainings under Lightning that can be stopped and resumed: its checkpoints in the loop's files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins.io.checkpoint_io import CheckpointIO
from lightning.pytorch.callbacks import Callback

from geonode.errors import InputError, TrainingError
from geonode.training.checkpoint import (
    CheckpointFolder,
    StopOnSigterm,
    interrupted,
    load_checkpoint,
    save_checkpoint,
)
from geonode.training.control import LOOK
from geonode.training.lightning.strategies import is_sharded
from geonode_runtime.wording import argument


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


class KeepCheckpoints(Callback):
    """Checkpoints every few epochs, and a clean stop on SIGTERM.

    After ``every`` epochs, and after the last, the state is written to ``keep``. On SIGTERM the epoch is finished and
    written, where there is a folder; then training stops. Where a strategy cuts parameters across devices, nothing can
    be written or set back, so a loss that is not finite ends the training.

    Args:
        keep: where checkpoints go; None writes none.
        every: epochs between them.

    Raises:
        InputError: ``every`` is below one.
    """

    def __init__(self, keep: CheckpointFolder | None = None, every: int = LOOK) -> None:
        if every < 1:
            raise InputError(f"every={every} must be at least 1.")
        self.keep, self.every = keep, every
        self.stopped_at: int | None = None
        self._stop = StopOnSigterm()
        self._kept_by = ""  # what would have kept a training that is stopped

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        """What the checkpoint belongs to, where `newest_checkpoint` looks for it."""
        if self.keep is not None:
            checkpoint |= {"belongs_to": self.keep.belongs_to, "kind": self.keep.kind}

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Listen for SIGTERM in place of Lightning, which would stop in mid-epoch and exit with 0.

        Lightning puts the former handler back when it ends.
        """
        self._stop.__enter__()
        if is_sharded(trainer.strategy):
            self._kept_by = f"with {argument('strategy', 'ddp')} and "

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Write, and stop where that is asked for."""
        asked = self._stop.asked
        if trainer.world_size > 1:  # one rank's signal stops all of them after the same epoch
            asked = trainer.strategy.reduce_boolean_decision(asked, all=False)
        epoch = trainer.current_epoch + 1
        if not asked and epoch % self.every and epoch < trainer.max_epochs:
            return
        if is_sharded(trainer.strategy):
            self._require_finite(trainer)
        if self.keep is not None:
            trainer.save_checkpoint(self.keep.path(epoch))
            if trainer.is_global_zero:
                self.keep.prune()
        if asked and epoch < trainer.max_epochs:
            self.stopped_at, trainer.should_stop = epoch, True

    def require_finished(self) -> None:
        """After training.

        Raises:
            Interrupted: SIGTERM stopped it before its last epoch.
        """
        if self.stopped_at is not None:
            raise interrupted(self.stopped_at, None if self.keep is None else self.keep.folder, self._kept_by)

    def _require_finite(self, trainer: Any) -> None:
        values = [v for name, v in trainer.callback_metrics.items() if name.startswith("loss/")]
        finite = not values or bool(torch.stack([torch.isfinite(v).all() for v in values]).all())
        if trainer.world_size > 1:
            finite = trainer.strategy.reduce_boolean_decision(finite, all=True)
        if not finite:
            raise TrainingError(
                f"The loss is not finite after epoch {trainer.current_epoch + 1}, and weights that are cut across "
                "devices cannot be set back; lower metric_lr and flow_lr, or use strategy 'ddp', which goes back by "
                "itself."
            )
