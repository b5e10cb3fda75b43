"""Loss and gradient of a batch as one CUDA graph: thousands of launches replayed as one, so the device never waits.

A pre-training step launches some two thousand kernels, forward and backward; launched one by one, the host holds the
device up. The function is compiled as a whole, once for all shapes, and captured once a shape. Autograd sees a single
operation whose gradients are those that the replay left behind, so accumulation, clipping, optimisers, mixed precision
in bfloat16 and DDP work as with any other loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from geonode.prior.feed import Batch

Compute = Callable[[Batch], tuple[Tensor, Tensor]]
"""A batch → its loss [] and a summary for the log, without a gradient."""

_WARM_UPS = 2  # compile, load kernels and start libraries before a capture, which forbids all three


class CapturedLosses:
    """`compute` on batches of any shape; each shape is captured when it first comes.

    Args:
        compute: made of operations that a CUDA graph holds; nothing in it may depend on values.
        parameters: whose gradients are wanted; all must take part in the loss.
        compiled: compile it first.
    """

    def __init__(self, compute: Compute, parameters: Sequence[nn.Parameter], *, compiled: bool = True) -> None:
        self._compute = torch.compile(compute, dynamic=True, fullgraph=True) if compiled else compute
        self._parameters = list(parameters)
        self._pool = torch.cuda.graph_pool_handle()
        self._captured: dict[tuple[int, ...], _Captured] = {}

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Loss and summary; the loss carries gradients to the parameters alone."""
        shape = tuple(batch.features.differences.shape)
        if shape not in self._captured:
            self._captured[shape] = _Captured(self._gradients, batch, self._pool)
        captured = self._captured[shape]
        captured.take(batch)
        return _Replay.apply(captured, *self._parameters), captured.summary.clone()

    def _gradients(self, batch: Batch) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        kind, on = torch.get_autocast_dtype("cuda"), torch.is_autocast_enabled("cuda")
        # weights cast outside of the graph would stay what they were
        with torch.enable_grad(), torch.autocast("cuda", kind, enabled=on, cache_enabled=False):
            loss, summary = self._compute(batch)
        gradients = torch.autograd.grad(loss, self._parameters)
        return loss.detach(), summary.detach(), gradients


class _Captured:
    """One shape: the graph, and the memory that it reads and writes."""

    def __init__(self, once: Callable[[Batch], Any], batch: Batch, pool: Any) -> None:
        self._inputs = batch.map(torch.clone)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UPS):
                once(self._inputs)
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        # other threads (of NCCL, of the backward pass) go on with what they do during a capture
        with torch.cuda.graph(self.graph, pool=pool, capture_error_mode="thread_local"):
            self.loss, self.summary, self.gradients = once(self._inputs)

    def take(self, batch: Batch) -> None:
        for kept, new in zip(self._inputs.tensors(), batch.tensors(), strict=True):
            kept.copy_(new)


class _Replay(torch.autograd.Function):
    """The replayed loss, differentiable by the parameters."""

    @staticmethod
    def forward(ctx: Any, captured: _Captured, *_: Tensor) -> Tensor:
        captured.graph.replay()
        ctx.captured = captured
        return captured.loss.clone()

    @staticmethod
    def backward(ctx: Any, *by_loss: Tensor) -> tuple[Tensor | None, ...]:
        return None, *torch._foreach_mul(ctx.captured.gradients, by_loss[0])
