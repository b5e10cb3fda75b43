"""The ensemble's training step without launch overhead: recorded once as a CUDA graph, the optimiser in one launch.

The step is that of `geonode.training.ensemble.train`: the same losses, clipping and AdamW, equal within rounding. What
changes from step to step (drawn wavelengths and pairs, loss weights, learning rates) is copied into the graph's inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from geonode.config import GeodesicConfig
from geonode.errors import DeviceError
from geonode.flow import CoupledSpectralODE
from geonode.training.batches import BatchSource
from geonode.training.step import PairsBatch, PointsBatch, learning_rate, losses, parameter_groups

if TYPE_CHECKING:
    from geonode_kernels import FlatAdamW

BACKENDS = ("auto", "triton", "torch")


def use_captured(backend: str, source: BatchSource, config: GeodesicConfig) -> bool:
    """Whether to train by captured steps: ``auto`` where they can be had, ``triton`` always, ``torch`` never.

    Raises:
        DeviceError: ``triton`` where something stands in the way, or an unknown backend.
    """
    if backend not in BACKENDS:
        raise DeviceError(f"backend={backend!r} is unknown; choose one of {', '.join(BACKENDS)}.")
    if backend == "torch":
        return False
    reason = _obstacle(source, config)
    if backend == "triton" and reason:
        raise DeviceError(f"Training steps cannot be captured: {reason}; use backend='auto' or 'torch'.")
    return reason is None


def _obstacle(source: BatchSource, config: GeodesicConfig) -> str | None:
    from geonode_kernels import triton_available

    if source.device.type != "cuda":
        return f"the problem is on {source.device.type}, and a CUDA graph needs a CUDA device"
    if not triton_available():
        return "Triton is not installed"
    if source.problem.target.dtype != torch.float32:
        return f"the problem is {source.problem.target.dtype}, and kernels work in float32"
    if config.solver != "quadrature" or config.path == "shooting":
        return f"solver={config.solver!r} with path={config.path!r} decides its steps by looking at values"
    if source.accumulate != 1:
        return f"gradients are accumulated over {source.accumulate} micro-batches"
    levels = source.problem.levels.shape[1]
    if not config.all_pairs and levels * (levels - 1) % source.micro_batch:
        return (
            f"an epoch's last batch is smaller than the others ({source.micro_batch} of {levels * (levels - 1)} pairs)"
        )
    return None


def train_captured(
    ode: CoupledSpectralODE,
    source: BatchSource,
    config: GeodesicConfig,
    progress: Callable[[int, int], None] | None = None,
) -> CoupledSpectralODE:
    """`geonode.training.train` by captured steps, in place; on a CPU the same step is called, not captured."""
    take, optimizer = captured_step(ode, source, config)
    for epoch in range(config.epochs):
        for number in range(source.steps_per_epoch):
            take(epoch, number)
        if progress is not None:
            progress(epoch + 1, config.epochs)
    for parameter in optimizer.parameters:  # out of the flat buffer, each into memory of its own
        parameter.data = parameter.detach().clone()
    return ode.eval()


def captured_step(
    ode: CoupledSpectralODE, source: BatchSource, config: GeodesicConfig
) -> tuple[Callable[[int, int], Tensor], FlatAdamW]:
    """``take(epoch, number)``, which draws that batch and replays one whole step on it, and the optimiser it updates.

    ``take`` returns the gradient norms [M, 2] before clipping. The model's parameters lie in the optimiser's buffer.
    """
    from geonode_kernels import CapturedStep, FlatAdamW

    groups = [{**g, "clip": getattr(config, f"{g['name']}_clip")} for g in parameter_groups(ode)]
    optimizer = FlatAdamW(groups, weight_decay=config.weight_decay)
    first = source.batch(0, 0)
    changing = _changing(first, source.batch(1, 0))
    names = [name for name, weight in config.loss.at(1.0).items() if weight > 0.0]
    schedule = [config.loss.at(epoch / config.epochs) for epoch in range(config.epochs)]
    weights = first.target.new_tensor([[row[name] for name in names] for row in schedule])
    factors = [learning_rate(epoch / config.epochs) for epoch in range(config.epochs)]
    rates = first.target.new_tensor([[groups[0]["lr"] * f, groups[-1]["lr"] * f] for f in factors])

    def step(scales: Tensor, *tensors: Tensor) -> Tensor:
        batch = first._replace(**dict(zip(changing, tensors, strict=True)))
        terms = losses(ode, batch, dict.fromkeys(names, 1.0))
        total = torch.stack([terms[name] for name in names]).mul(scales[:, None]).sum()
        gradients = torch.autograd.grad(total, optimizer.parameters, allow_unused=True, materialize_grads=True)
        return optimizer.step(gradients)

    inputs = [weights[0], *(getattr(first, name) for name in changing)]
    captured = CapturedStep(step, inputs, optimizer.state_tensors())

    def take(epoch: int, number: int) -> Tensor:
        if number == 0:
            optimizer.rates.copy_(rates[epoch])
        batch = source.batch(epoch, number)
        return captured(weights[epoch], *(getattr(batch, name) for name in changing))

    return take, optimizer


def _changing(first: PointsBatch | PairsBatch, second: PointsBatch | PairsBatch) -> list[str]:
    """Fields that are another tensor in every step."""
    fields: list[Any] = list(zip(first._fields, first, second, strict=True))
    return [name for name, a, b in fields if a is not b]
