"""How a pre-training ends early: a clean stop on SIGTERM, and a sentence where another process is lost."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Self

import torch

from geonode.errors import Interrupted, TrainingError
from geonode.training.checkpoint import StopOnSigterm

_PATIENCE = 10.0
"""Seconds after SIGTERM in which all processes should have agreed to stop. A launcher that has lost one of them sends
it to the others, which then wait for the lost one in a reduction that never ends; half a minute later it kills them."""


class Stopping(StopOnSigterm):
    """Inside the block SIGTERM is noted; of several processes, one that does not get on then says so and leaves.

    The block stands around Lightning's run, which puts back the handler that it found as soon as it ends or fails: a
    SIGTERM in the moments after that would otherwise end a process that has lost a partner before it has said so.

    Args:
        checkpoint: where the state is kept.
        processes: how many train together.
    """

    def __init__(self, checkpoint: Path, processes: int) -> None:
        super().__init__()
        self._checkpoint, self._processes = checkpoint, processes
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """The training has ended, one way or another."""
        if self._timer is not None:
            self._timer.cancel()
        if self._before is not None and self._processes > 1 and isinstance(error, TrainingError):
            # It ends with a sentence that is still to be written, and the launcher's SIGTERM may come before that.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        else:
            super().__exit__()

    def listen(self) -> None:
        """In place of Lightning, whose own handler begins with a broadcast; called once it has set that."""
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._note)

    def _note(self, *_: object) -> None:
        if not self.asked and self._processes > 1:
            self._timer = threading.Timer(_PATIENCE, self._leave)
            self._timer.daemon = True
            self._timer.start()
        super()._note()

    def _leave(self) -> None:
        print(f"geonode: {lost(self._checkpoint)}", file=sys.stderr, flush=True)
        os._exit(143)  # the main thread is in a reduction and hears nothing

    def stopped(self, step: int) -> Interrupted:
        """What is raised after the stop."""
        return Interrupted(
            f"Stopped by SIGTERM after step {step}, which is kept in {self._checkpoint}; give it to --resume to go on."
        )


def lost(checkpoint: Path) -> str:
    """What is said where another process is gone."""
    kept = f"go on from {checkpoint} with --resume" if checkpoint.is_file() else "nothing was kept yet: begin again"
    return (
        f"Another process of this pre-training is gone, so this one ends; {kept}, with as many processes as are left."
    )


def told(error: RuntimeError, checkpoint: Path) -> RuntimeError | TrainingError:
    """``error`` itself, or, where it says that a reduction lost its partner, the sentence for that."""
    of_backend = isinstance(error, (torch.distributed.DistBackendError, torch.distributed.DistNetworkError))
    return TrainingError(lost(checkpoint)) if of_backend or "gloo" in str(error) else error
