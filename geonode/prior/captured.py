"""Features, loss and gradient of a batch as one CUDA graph: thousands of launches replayed as one.

A pre-training step launches some six thousand kernels: features of the examples, forward, backward. Launched one by
one, the host holds the device up; captured once a shape, the device never waits. Autograd sees a single operation
whose gradients are those that the replay left behind, so that accumulation, clipping, optimisers, mixed precision in
bfloat16 and DDP work as with any other loss.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from geonode.prior.examples import Examples
from geonode.prior.network import Network

Loss = Callable[[Network, Examples], tuple[Tensor, Tensor]]
"""A network and a batch → the loss [] and a summary for the log, without a gradient."""

_WARM_UPS = 2  # compile, load kernels and start libraries before a capture, which forbids all three


class CapturedLoss:
    """``loss`` of a network on batches whose shapes are known beforehand; the blocks are compiled, once for all shapes.

    Args:
        loss: made of operations that a CUDA graph holds: none may depend on values.
        network: on a CUDA device; all its parameters must take part in the loss.
        batches: one of each shape.
    """

    def __init__(self, loss: Loss, network: Network, batches: Iterable[Examples]) -> None:
        # Captured are the same weights under parameters of their own: the backward pass of the network's own may still
        # be in flight on another stream when a shape is captured.
        self._loss, self._twin = loss, copy.deepcopy(network)
        self._parameters = list(network.parameters())
        for twin, parameter in zip(self._twin.parameters(), self._parameters, strict=True):
            twin.data = parameter.data
        for block in self._twin.all_blocks:
            block.compile(dynamic=True)
        self._pool = torch.cuda.graph_pool_handle()
        self._captured = {_shape(batch): _Captured(self._gradients, batch, self._pool) for batch in batches}

    def __call__(self, batch: Examples) -> tuple[Tensor, Tensor]:
        """Loss and summary; the loss carries gradients to the network's parameters alone."""
        captured = self._captured[_shape(batch)]
        captured.take(batch)
        return _Replay.apply(captured, *self._parameters), captured.summary.clone()

    def _gradients(self, batch: Examples) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        kind, on = torch.get_autocast_dtype("cuda"), torch.is_autocast_enabled("cuda")
        # a weight that was cast outside of the graph would stay what it was
        with torch.enable_grad(), torch.autocast("cuda", kind, enabled=on, cache_enabled=False):
            loss, summary = self._loss(self._twin, batch)
        gradients = torch.autograd.grad(loss, list(self._twin.parameters()))
        return loss.detach(), summary.detach(), gradients


def _shape(batch: Examples) -> tuple[int, ...]:
    return tuple(batch.means.shape)


class _Captured:
    """One shape: the graph, and the memory that it reads and writes."""

    def __init__(self, once: Callable[[Examples], Any], batch: Examples, pool: Any) -> None:
        self._inputs = Examples(*(getattr(batch, field.name).clone() for field in fields(batch)))
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UPS):
                once(self._inputs)
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        # threads of others (NCCL's, say) go on with what they do during a capture
        with torch.cuda.graph(self.graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
            self.loss, self.summary, self.gradients = once(self._inputs)

    def take(self, batch: Examples) -> None:
        """Copy a batch to where the graph reads it."""
        for field in fields(batch):
            getattr(self._inputs, field.name).copy_(getattr(batch, field.name))


class _Replay(torch.autograd.Function):
    """The replayed loss, differentiable by the parameters."""

    @staticmethod
    def forward(ctx: Any, captured: _Captured, *_: Tensor) -> Tensor:
        captured.graph.replay()
        ctx.captured = captured
        return captured.loss.clone()

    @staticmethod
    def backward(ctx: Any, *by_loss: Tensor) -> tuple[Tensor | None, ...]:
        return None, *torch.ops.aten._foreach_mul.Tensor(list(ctx.captured.gradients), by_loss[0])
