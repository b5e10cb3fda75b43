"""The training step: pure functions from a model and a batch to losses and clipped gradients, for M models at once.

Lightning, the ensemble loop and captured graphs all call these. Nothing here moves data between host and device, and
no loss term mixes models: the sum over M of the losses has each model's own gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from geonode.errors import InputError
from geonode.flow import CoupledSpectralODE, SpectralFlow, fused
from geonode.flow.ode import MetricOnTable
from geonode.training.batches import PairsBatch, PointsBatch

_BOUND = 4.6  # |ln g̃| beyond ln 100 is penalised: a metric that far from its warp has stopped being a correction
_STRIDE = 4  # the second derivative uses every fourth table node: closer ones amplify rounding


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
    if isinstance(batch, PointsBatch):
        terms = {"reconstruction": _points_loss(ode, batch, table)}
    elif fused.misfit_fits(ode, batch.source):
        change, ends = batch.target - batch.source, torch.cat([batch.start, batch.end], 1)
        phi = ode.table.phi(ends, check=False).to(change) if batch.phi is None else batch.phi
        terms = {"reconstruction": fused.misfit(ode, phi, change, batch.weight, batch.index, table)}
    else:
        predicted = ode.transport(batch.source, batch.start, batch.end, batch.index, table=table)
        error = predicted - batch.target
        if ode.config.path == "shooting":  # a pair whose geodesic was not found (NaN) teaches nothing
            error = torch.where(torch.isnan(predicted.detach()), 0.0, error)
        error = error.square().mean(-1)
        terms = {"reconstruction": (error * batch.weight).sum(1) / batch.weight.sum(1)}
    for name, function in REGULARISERS.items():
        if weights.get(name, 0.0) > 0.0:
            terms[name] = function(ode, table, batch) * weights[name]
    terms["reconstruction"] = terms["reconstruction"] * weights["reconstruction"]
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
    return recomputing(recompute, function) if recompute > 1 else function


def potential(ode: CoupledSpectralODE, phi: Tensor, table: MetricOnTable, index: Tensor | None, nodes: int) -> Tensor:
    """∫ h dŝ from the first of P ascending points to each of them [M, P, W]: a cumulative sum over intervals.

    Raises:
        InputError: a flow that is no function of arc length alone.
    """
    if not isinstance(ode.flow, SpectralFlow):
        raise InputError("Only a SpectralFlow has a potential; integrate other flows along explicit pairs.")
    s_hat = ode.table.scaled(phi.to(table.density), table.density)
    steps = ode.flow.integral(s_hat[:, :-1], s_hat[:, 1:], index, nodes=nodes)
    return torch.cat([torch.zeros_like(steps[:, :1]), steps.cumsum(1)], 1)


def _points_loss(ode: CoupledSpectralODE, batch: PointsBatch, table: MetricOnTable) -> Tensor:
    """Mean over all ordered pairs (a, b) of w_a w_b |A_a + P_b − P_a − A_b|², halved.

    With residual r = P − A that is the weighted variance of r over points: no pair is formed.
    """
    reached = potential(ode, batch.phi, table, batch.index, ode.config.interval_nodes)
    residual = reached - batch.target
    share = (batch.weight / batch.weight.sum(1, keepdim=True))[..., None]
    centre = (share * residual).sum(1, keepdim=True)
    return (share * (residual - centre).square()).sum(1).mean(-1)


def _smoothness(ode: CoupledSpectralODE, table: MetricOnTable, batch: PointsBatch | PairsBatch) -> Tensor:
    """Mean |∂² ln g̃/∂u²|² by divided differences over every fourth table node."""
    value, u = table.log_metric[:, ::_STRIDE], ode.table.nodes[:, ::_STRIDE, None].to(table.log_metric)
    slope = value.diff(dim=1) / u.diff(dim=1)
    second = 2.0 * slope.diff(dim=1) / (u[:, 2:] - u[:, :-2])
    share = (u[:, 2:] - u[:, :-2]).abs()
    return ((second.square() * share).sum(1) / share.sum(1)).mean(-1)


def _bounds(ode: CoupledSpectralODE, table: MetricOnTable, batch: PointsBatch | PairsBatch) -> Tensor:
    """Mean squared excess of |ln g̃| over ln 100."""
    return torch.relu(table.log_metric.abs() - _BOUND).square().mean((1, 2))


def _path_length(ode: CoupledSpectralODE, table: MetricOnTable, batch: PointsBatch | PairsBatch) -> Tensor:
    """Mean squared log of the calibrated range's length over its length under the warp alone (2)."""
    return (0.5 * ode.table.length(table.density)).log().square().mean((1, 2))


def _christoffel(ode: CoupledSpectralODE, table: MetricOnTable, batch: PointsBatch | PairsBatch) -> Tensor:
    """Mean squared difference of Γ̃ to that of the pull-back metric of the spectral map, at the table nodes."""
    if batch.gamma is None:
        return torch.zeros(ode.models, device=table.density.device)
    _, slope = ode.log_metric_and_slope(ode.table.nodes.to(table.density), batch.index)
    return (0.5 * slope - batch.gamma[..., None]).square().mean((1, 2))


REGULARISERS = {
    "smoothness": _smoothness,
    "bounds": _bounds,
    "path_length": _path_length,
    "christoffel": _christoffel,
}


def clip_gradients(parameters: Iterable[nn.Parameter], limit: float) -> Tensor:
    """Scale each model's gradient to a norm of at most ``limit`` (one norm per model over all parameters) → norms [M].

    Every parameter has a leading model axis, so one model's large gradient never shrinks another's. ``limit`` 0 clips
    nothing.
    """
    gradients = [p.grad for p in parameters if p.grad is not None]
    if not gradients:
        return torch.zeros(0)
    norm = torch.stack([g.reshape(len(g), -1).square().sum(1) for g in gradients]).sum(0).sqrt()
    if limit > 0.0:
        scale = (limit / (norm + 1e-12)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(scale.reshape(-1, *([1] * (gradient.ndim - 1))))
    return norm


def parameter_groups(ode: CoupledSpectralODE) -> list[dict]:
    """Optimiser groups ``metric`` and ``flow``, each with its own learning rate; empty groups are left out."""
    config = ode.config
    groups = []
    for name, module, rate in (("metric", ode.metric, config.metric_lr), ("flow", ode.flow, config.flow_lr)):
        if module is not None:
            groups.append({"name": name, "params": list(module.parameters()), "lr": rate, "initial_lr": rate})
    return groups


def build_optimizer(ode: CoupledSpectralODE) -> torch.optim.AdamW:
    """AdamW over `parameter_groups`; not fused, because the fused one would clip gradients that are still scaled."""
    return torch.optim.AdamW(parameter_groups(ode), weight_decay=ode.config.weight_decay, fused=False)


def learning_rate(progress: float, warmup: float = 0.05) -> float:
    """Factor on the learning rates at ``progress`` ∈ [0, 1]: linear warm-up, then a half cosine to 1 %."""
    if progress < warmup:
        return max(progress, 0.1 * warmup) / warmup
    return 0.01 + 0.99 * 0.5 * (1.0 + math.cos(math.pi * (progress - warmup) / (1.0 - warmup)))
