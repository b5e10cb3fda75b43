"""Features, loss and gradient of a batch as one CUDA graph: thousands of launches replayed as one.

A pre-training step launches some six thousand kernels: features of the examples, forward, backward. Launched one by
one, the host holds the device up; captured once a shape, the device waits for little. Autograd sees a single operation
of two vectors (`geonode.prior.flat`) whose gradients are those that the replay left behind, so that accumulation,
clipping, optimisers, mixed precision in bfloat16 and DDP work as with any other loss.

A batch is worked out in parts, branches of the graph that run side by side: where one part's small kernels and the
pauses between kernels leave multiprocessors idle, another's fill them. The mean of the parts is that of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from geonode.prior.examples import Examples
from geonode.prior.flat import FlatNetwork
from geonode.prior.network import Network

Loss = Callable[[Network, Examples], tuple[Tensor, Tensor]]
"""A network and a batch → the loss [] and a summary for the log, without a gradient."""

_PARTS = 2  # of a batch, side by side
_WARM_UPS = 2  # compile, load kernels and start libraries before a capture, which forbids all three


class CapturedLoss:
    """``loss`` of a network on batches whose shapes are known beforehand; the blocks are compiled, once for all shapes.

    Args:
        loss: made of operations that a CUDA graph holds: none may depend on values.
        network: on a CUDA device; all its parameters must take part in the loss.
        batches: one of each shape.
        parts: into how many parts a batch is cut, each a branch of the graph.
    """

    def __init__(self, loss: Loss, network: FlatNetwork, batches: Iterable[Examples], parts: int = _PARTS) -> None:
        # Captured are the same weights under parameters of their own: the backward pass of the network's own may still
        # be in flight on another stream when a shape is captured.
        self._loss, self._network = loss, network
        self._twin = network.as_network().requires_grad_()
        for block in self._twin.all_blocks:
            block.compile(dynamic=True)
        self._branches = [torch.cuda.Stream() for _ in range(parts)]
        self._pool = torch.cuda.graph_pool_handle()
        self._captured = {_shape(batch): _Captured(self._gradients, network, batch, self._pool) for batch in batches}

    def __call__(self, batch: Examples) -> tuple[Tensor, Tensor]:
        """Loss and summary; the loss carries gradients to the network's parameters alone."""
        captured = self._captured[_shape(batch)]
        captured.take(batch)
        return _Replay.apply(captured, *self._network.parameters()), captured.summary.clone()

    def _gradients(self, batch: Examples, into: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """Loss and summary; the gradient goes into two vectors like those of the network."""
        here, size = torch.cuda.current_stream(), -(-len(batch.levels) // len(self._branches))
        weights = dict(self._twin.named_parameters())
        into_parts = [self._network.named(into)[name] for name in weights]
        parts = batch.split(size)
        found = []
        for branch, part in zip(self._branches, parts, strict=False):
            branch.wait_stream(here)
            with torch.cuda.stream(branch):
                found.append(self._part(part, list(weights.values()), len(part.levels) / len(batch.levels)))
        for branch in self._branches[: len(parts)]:
            here.wait_stream(branch)
        loss, summary, *gradients = (torch.stack(same).sum(0) for same in zip(*found, strict=True))
        torch.ops.aten._foreach_copy_.default(into_parts, gradients)
        return loss, summary

    def _part(self, part: Examples, weights: list[Tensor], share: float) -> list[Tensor]:
        """Loss, summary and gradients of some of the assays, times their share of the batch."""
        kind, on = torch.get_autocast_dtype("cuda"), torch.is_autocast_enabled("cuda")
        # a weight that was cast outside of the graph would stay what it was
        with torch.enable_grad(), torch.autocast("cuda", kind, enabled=on, cache_enabled=False):
            loss, summary = self._loss(self._twin, part)
        return [share * value for value in (loss.detach(), summary.detach(), *torch.autograd.grad(loss, weights))]


def _shape(batch: Examples) -> tuple[int, ...]:
    return tuple(batch.means.shape)


class _Captured:
    """One shape: the graph, and the memory that it reads and writes."""

    def __init__(self, once: Callable[..., Any], network: FlatNetwork, batch: Examples, pool: Any) -> None:
        self._inputs = Examples(*(part.clone() for part in _parts(batch)))
        self.gradients = tuple(torch.zeros_like(vector) for vector in (network.matrices, network.vectors))
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UPS):
                once(self._inputs, self.gradients)
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        # threads of others (NCCL's, say) go on with what they do during a capture
        with torch.cuda.graph(self.graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
            self.loss, self.summary = once(self._inputs, self.gradients)

    def take(self, batch: Examples) -> None:
        """Copy a batch to where the graph reads it."""
        torch.ops.aten._foreach_copy_.default(_parts(self._inputs), _parts(batch))


def _parts(batch: Examples) -> list[Tensor]:
    return [getattr(batch, field.name) for field in fields(batch)]


class _Replay(torch.autograd.Function):
    """The replayed loss, differentiable by the network's two vectors."""

    @staticmethod
    def forward(ctx: Any, captured: _Captured, *_: Tensor) -> Tensor:
        captured.graph.replay()
        ctx.captured = captured
        return captured.loss.clone()

    @staticmethod
    def backward(ctx: Any, *by_loss: Tensor) -> tuple[Tensor | None, ...]:
        return None, *(by_loss[0] * gradient for gradient in ctx.captured.gradients)
