"""The loop: stacks of models trained side by side, epoch by epoch, with checkpoints, logs, and a clean stop on SIGTERM.

On a GPU there is one stack. On a CPU there are chunks of a few models, one thread each; after every epoch they wait for
each other, so that what is written is one moment of the whole training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext

import torch
from torch import Tensor

from geonode.training.checkpoint import CheckpointFolder, StopOnSigterm, interrupted, load_checkpoint
from geonode.training.chunks import side_by_side
from geonode.training.control import Outcome, is_look
from geonode.training.monitoring import Monitoring
from geonode.training.profiling import StepProfile
from geonode.training.steps import StackSteps

Progress = Callable[[int, int], None]


class TrainingLoop:
    """Trains stacks from their first to their last epoch.

    Args:
        stacks: all of one training, each with its own models.
        epochs: of all of them.
        workers: threads; see `geonode.training.chunks.workers_for`.
        progress: called as ``progress(epoch, epochs)``.
        keep: where checkpoints go; None writes none.
        watch: what is told of losses and rates; None tells nobody.
        stops: listen for SIGTERM; without it SIGTERM ends the process as ever.
        profile: records a few epochs; None records nothing.
    """

    def __init__(
        self,
        stacks: Sequence[StackSteps],
        epochs: int,
        workers: int = 1,
        progress: Progress | None = None,
        keep: CheckpointFolder | None = None,
        watch: Monitoring | None = None,
        stops: bool = False,
        profile: StepProfile | None = None,
    ) -> None:
        self.stacks, self.epochs = stacks, epochs
        self.workers = workers if profile is None else 1  # the profiler sees one thread
        self.profile = profile
        self.progress, self.keep, self.watch, self.stops = progress, keep, watch, stops

    def run(self, resume: bool = False) -> Outcome:
        """Train, from the newest checkpoint where ``resume`` and there is one; every model ends in its best state.

        Raises:
            Interrupted: SIGTERM was sent; the epoch is finished, and written where checkpoints are kept.
            InputError: a checkpoint of another training.
        """
        newest = self.keep.newest() if resume and self.keep is not None else None
        with (
            side_by_side(self.workers) as each,
            StopOnSigterm() if self.stops else nullcontext() as stop,
            self.profile or nullcontext(),
        ):
            first = 0
            if newest is None:
                each(StackSteps.begin, self.stacks)
            else:
                first = self.load(load_checkpoint(newest))
            if self.watch is not None:
                self.watch.begin(first)
            for epoch in range(first, self.epochs):
                each(lambda stack, at=epoch: stack.epoch(at), self.stacks)
                if self.profile is not None:
                    self.profile.step()
                self._after(epoch, stop)
        outcomes = [stack.finish() for stack in self.stacks]
        return Outcome.join(outcomes)

    def _after(self, epoch: int, stop: StopOnSigterm | None) -> None:
        """Tell, write, and stop where that is asked for: in this order."""
        done, look = epoch + 1, is_look(epoch, self.epochs)
        if self.progress is not None:
            self.progress(done, self.epochs)
        asked = stop is not None and stop.asked
        if self.watch is not None and (look or asked):
            self.watch.look(done, self.epochs, self.stacks)
        if self.keep is not None and (look or asked):
            self.keep.write(done, {"stack": self.state()})
        if asked and done < self.epochs:
            raise interrupted(done, None if self.keep is None else self.keep.folder)

    def state(self) -> dict[str, Tensor]:
        """The state of all models, [M, …] each, whatever stacks they are trained in."""
        states = [stack.control.state() for stack in self.stacks]
        return {name: torch.cat([state[name] for state in states]) for name in states[0]}

    def load(self, tree: dict) -> int:
        """Go on from a checkpoint: its number of epochs."""
        first = 0
        for stack in self.stacks:
            rows = slice(first, first + stack.optimizer.models)
            stack.control.load_state({name: value[rows] for name, value in tree["stack"].items()})
            first = rows.stop
        return tree["epoch"]
