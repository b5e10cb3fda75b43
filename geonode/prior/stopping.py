"""How a pre-training ends early: a clean stop on SIGTERM, and a sentence where another process is lost."""

from __future__ import annotations

import os
import signal
import socket
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
        self._over = threading.Event()
        self._signals: tuple[socket.socket, socket.socket] | None = None
        self._former = -1

    def __enter__(self) -> Self:
        super().__enter__()
        if self._before is not None and self._processes > 1:
            self._signals = socket.socketpair()
            self._signals[1].setblocking(False)
            self._former = signal.set_wakeup_fd(self._signals[1].fileno(), warn_on_full_buffer=False)
            threading.Thread(target=self._watch, args=(self._signals[0],), daemon=True).start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """The training has ended, one way or another."""
        self._over.set()
        if self._signals is not None:
            signal.set_wakeup_fd(self._former)
            self._signals[1].close()  # which ends the thread
        if self._before is not None and self._processes > 1 and isinstance(error, TrainingError):
            # It ends with a sentence that is still to be written, and the launcher's SIGTERM may come before that.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        else:
            super().__exit__()

    def listen(self) -> None:
        """In place of Lightning, whose own handler begins with a broadcast; called once it has set that."""
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._note)

    def _watch(self, signals: socket.socket) -> None:
        """In a thread of its own: a main thread that waits in a reduction runs no handler until that has ended."""
        with signals:
            while said := signals.recv(1):  # the number of a signal, and nothing after the end
                if said[0] == signal.SIGTERM:
                    if not self._over.wait(_PATIENCE):
                        self._leave()
                    return

    def _leave(self) -> None:
        print(f"geonode: {lost(self._checkpoint)}", file=sys.stderr, flush=True)
        os._exit(143)

    def stopped(self, step: int) -> Interrupted:
        """What is raised after the stop."""
        return Interrupted(
            f"Stopped by SIGTERM after step {step}, which is kept in {self._checkpoint}; give it to --resume to go on."
        )


class Vote:
    """A question that all processes answer alike: with yes, where one of them does.

    On a GPU the answer to a question is given when the next is asked: it comes behind the steps that are queued by
    then, and a host that waited for it would leave the device without work.
    """

    def __init__(self, device: torch.device) -> None:
        self._answer = torch.zeros((), device=device)
        self._read = torch.zeros((), pin_memory=True) if device.type == "cuda" else None
        self._ready: torch.cuda.Event | None = None

    def take(self, yes: bool) -> bool:
        """Ask; every process must."""
        if not torch.distributed.is_initialized():
            return yes
        before = self._before()
        self._answer.fill_(float(yes))
        torch.distributed.all_reduce(self._answer, torch.distributed.ReduceOp.MAX)
        if self._read is None:
            return bool(self._answer)
        self._read.copy_(self._answer, non_blocking=True)
        self._ready = torch.cuda.Event()
        self._ready.record()
        return before

    def _before(self) -> bool:
        if self._ready is None or self._read is None:
            return False
        self._ready.synchronize()
        return bool(self._read)


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
