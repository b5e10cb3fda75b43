"""Training on a GPU without launch overhead: a step recorded once and replayed."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

__all__ = ["CapturedStep"]


class CapturedStep:
    """A training step recorded once as a CUDA graph and replayed; on a CPU it simply calls the function.

    ``step(*inputs)`` must do everything of a step on the device (loss, gradients, update), with fixed shapes, no
    ``.item()`` and no branch on data, and return tensors. Its result is overwritten by the next call.

    Args:
        step: the function.
        inputs: example inputs; copied, and refilled by each call.
        state: tensors the step changes; put back after the warm-up runs, so that capture leaves no trace.
        warm_up: runs before capture (compilation, library handles).
    """

    def __init__(
        self,
        step: Callable[..., Any],
        inputs: Sequence[Tensor] = (),
        state: Sequence[Tensor] = (),
        warm_up: int = 3,
    ) -> None:
        self._step = step
        self.inputs = [t.clone() for t in inputs]
        device = (self.inputs or list(state))[0].device
        self._graph: torch.cuda.CUDAGraph | None = None
        if device.type != "cuda":
            return
        before = [t.clone() for t in state]
        stream = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            for _ in range(warm_up):
                step(*self.inputs)
            with torch.no_grad():
                for tensor, value in zip(state, before, strict=True):
                    tensor.copy_(value)
        torch.cuda.current_stream(device).wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self.result = step(*self.inputs)

    def __call__(self, *inputs: Tensor) -> Any:
        """One step; with arguments, their values replace the inputs first."""
        if inputs:
            torch._foreach_copy_(self.inputs, list(inputs))  # pyright: ignore[reportPrivateImportUsage]
        if self._graph is None:
            self.result = self._step(*self.inputs)
        else:
            self._graph.replay()
        return self.result
