"""Which batches of a step a process draws, so that a step is the same however many processes share it.

A step is ``accumulate`` batches, its lanes. Lane j of a run draws from (seed, j, step) and has no other state. Process
r of N takes the lanes r, r + N, r + 2N, … one after another and adds up their gradients; the mean over the processes is
that of all lanes. So one process with two lanes, two with one each, and a run that goes on with another number of
processes all take the same steps. Where the lanes do not share out evenly, the processes with fewer repeat a batch at
no weight: all must take part in every reduction.
"""

from __future__ import annotations

import torch

from geonode.errors import InputError
from geonode.prior.examples import Examples
from geonode.prior.feed import Feed
from geonode.prior.settings import PretrainSettings
from geonode_runtime.wording import argument


def lanes_of(accumulate: int, rank: int, processes: int) -> range:
    """The lanes of process ``rank`` of ``processes``.

    Raises:
        InputError: more processes than lanes.
    """
    if processes > accumulate:
        raise InputError(
            f"A step of {accumulate} batches cannot be shared by {processes} processes; give "
            f"{argument('accumulate', processes)} or more, or fewer processes."
        )
    return range(rank, accumulate, processes)


class Lanes:
    """The batches of one process, in the order of its steps.

    Args:
        settings: of the pre-training; ``accumulate`` lanes in all.
        step: optimiser steps already done.
        rank, processes: of this process, and how many there are.
        device: where batches are drawn.

    Raises:
        InputError: more processes than lanes.
    """

    def __init__(
        self, settings: PretrainSettings, step: int, rank: int, processes: int, device: torch.device | str
    ) -> None:
        mine = lanes_of(settings.accumulate, rank, processes)
        self.each = -(-settings.accumulate // processes)  # batches of every process in a step
        self._feeds = [Feed(settings, step, lane, device) for lane in mine]
        # Lightning divides by `each`, DDP by `processes`
        self._weight = self.each * processes / settings.accumulate
        self._last: Examples | None = None

    def batch(self, number: int) -> tuple[Examples, float]:
        """Batch ``number`` of this process, counted from the start of the run, and its weight in the mean."""
        step, lane = divmod(number, self.each)
        if lane >= len(self._feeds):
            assert self._last is not None  # a process has one lane at least, and it came before
            return self._last, 0.0
        self._last = self._feeds[lane].batch(step)
        return self._last, self._weight
