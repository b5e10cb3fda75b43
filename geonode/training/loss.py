"""The training step: pure functions from a model and a batch to losses, the optimiser and its schedule, for M models.

The loop, Lightning and captured graphs all call these. Nothing here moves data between host and device, and
no loss term mixes models: the sum over M of the losses has each model's own gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from geonode.flow import CoupledSpectralODE
from geonode.training.batches import PairsBatch, PointsBatch
from geonode.training.config import TrainingConfig
from geonode.training.terms import LOSSES
from geonode_kernels import FlatAdamW

Losses = Callable[[CoupledSpectralODE, "PointsBatch | PairsBatch", Mapping[str, float]], dict[str, Tensor]]
"""The signature of `losses`."""


def losses(ode: CoupledSpectralODE, batch: PointsBatch | PairsBatch, weights: Mapping[str, float]) -> dict[str, Tensor]:
    """Loss terms [M] by name, weighted, and their sum ``total`` [M]. Terms of weight zero are not computed.

    Args:
        ode: the stack of M models. batch: its inputs and targets.
        weights: of ``reconstruction`` (must be there) and of the regularisers, by name.

    Raises:
        InputError: points of a flow that has no potential; give it pairs.
    """
    table = ode.on_table(batch.index)
    terms = {}
    for name, weight in weights.items():
        if weight > 0.0 or name == "reconstruction":
            terms[name] = LOSSES[name]()(ode, table, batch) * weight
    terms["total"] = torch.stack(list(terms.values())).sum(0)
    return terms


def recomputing(parts: int, function: Losses = losses) -> Losses:
    """`losses` in ``parts`` of the wavelengths, whose activations are computed again in the backward pass.

    Every term is a mean over wavelengths, so the parts' mean is the whole's. Peak memory falls towards that of one
    part; time grows by a forward pass (torch.utils.checkpoint, arXiv 1604.06174).
    """

    def inner(ode: CoupledSpectralODE, batch: PointsBatch | PairsBatch, weights: Mapping[str, float]) -> dict:
        width = batch.target.shape[-1]
        index = torch.arange(width, device=batch.target.device) if batch.index is None else batch.index
        whole: dict[str, Tensor] = {}
        for first in range(0, width, -(-width // parts)):
            rows = slice(first, min(first + -(-width // parts), width))
            part = batch._replace(index=index[rows], target=batch.target[..., rows])
            if isinstance(part, PairsBatch):
                part = part._replace(source=part.source[..., rows])
            terms = checkpoint(function, ode, part, weights, use_reentrant=False, preserve_rng_state=False)
            share = (rows.stop - rows.start) / width
            whole = {name: whole.get(name, 0.0) + share * value for name, value in terms.items()}  # type: ignore[union-attr]
        return whole

    return inner


def build_losses(compiled: bool = False, recompute: int = 0) -> Losses:
    """`losses`, compiled by ``torch.compile`` and in ``recompute`` parts, as asked."""
    function: Losses = torch.compile(losses, dynamic=False) if compiled else losses
    return recomputing(recompute, function) if recompute else function


def parameter_groups(ode: CoupledSpectralODE, training: TrainingConfig) -> list[dict]:
    """Optimiser groups ``metric`` and ``flow``, each with its own learning rate; empty groups are left out."""
    groups = []
    for name, module, rate in (("metric", ode.metric, training.metric_lr), ("flow", ode.flow, training.flow_lr)):
        if parameters := list(module.parameters()):
            groups.append({"name": name, "params": parameters, "lr": rate, "initial_lr": rate})
    return groups


def build_optimizer(ode: CoupledSpectralODE, training: TrainingConfig, backend: str = "auto") -> FlatAdamW:
    """AdamW over `parameter_groups` with each model's gradient clipped by group; parameters move into its flat buffer.

    Args:
        ode: the stack.
        training: learning rates, clipping, weight decay.
        backend: ``auto``, ``triton`` or ``torch``.
    """
    groups = [
        {**group, "clip": getattr(training, f"{group['name']}_clip")} for group in parameter_groups(ode, training)
    ]
    return FlatAdamW(groups, weight_decay=training.weight_decay, backend=backend)


def learning_rate(progress: float, warmup: float = 0.05) -> float:
    """Factor on the learning rates at ``progress`` ∈ [0, 1]: linear warm-up, then a half cosine to 1 %."""
    if progress < warmup:
        return max(progress, 0.1 * warmup) / warmup
    return 0.01 + 0.99 * 0.5 * (1.0 + math.cos(math.pi * (progress - warmup) / (1.0 - warmup)))
