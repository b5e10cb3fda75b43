"""A draw as one CUDA graph: thousands of small launches replayed as one, where the host would hold up a training."""

from __future__ import annotations

from typing import Any

import torch

from geonode.corpus.assays import Assays
from geonode.corpus.draw import draw
from geonode.errors import DeviceError


class CapturedDraw:
    """`draw` with fixed sizes, captured once and replayed for any step: ``captured(step)`` → `Assays`.

    What is given back lies in memory of the graph's own and is overwritten by the next call: use it, or copy it, first.
    Sizes that `draw` settles on the host (of the families' blocks, of the replicates) depend on the seed alone here:
    use several of them in turn, with other seeds and other levels.

    Args:
        batch, levels, wavelengths, queries, unknowns: as for `draw`.
        seed: a draw is a function of (seed, step).
        device: a CUDA device.
        options: further arguments of `draw`: families, exclude, replicates, dtype.

    Raises:
        DeviceError: the device is no CUDA device.
        InputError: as for `draw`.
    """

    def __init__(
        self,
        batch: int,
        levels: int,
        wavelengths: int,
        queries: int = 4,
        unknowns: int = 0,
        *,
        seed: int,
        device: torch.device | str = "cuda",
        **options: Any,
    ) -> None:
        device = torch.device(device)
        if device.type != "cuda":
            raise DeviceError(f"A draw on {device} cannot be captured as a CUDA graph; call draw itself there.")
        self._step = torch.zeros((), dtype=torch.int64, device=device)

        def once() -> Assays:
            sizes = (batch, levels, wavelengths, queries, unknowns)
            return draw(*sizes, seed=seed, step=self._step, device=device, **options)

        # constants come to the device and libraries start before the capture, on a stream of their own
        stream = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            once()
        torch.cuda.current_stream(device).wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._assays = once()

    def __call__(self, step: int) -> Assays:
        """The draw of (seed, step), valid until the next call."""
        self._step.fill_(step)
        self._graph.replay()
        return self._assays
