"""Train M models (folds × seeds) as one batch, and predict with all of them: the optimiser loop without Lightning.

Every parameter carries the model axis, AdamW is elementwise, gradients are clipped per model: each model trains as it
would alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import numpy as np
import torch
from torch import Tensor

from geonode.calibration import GeodesicGP
from geonode.config import GeodesicConfig
from geonode.flow import CoupledSpectralODE
from geonode.flow.network import SpectralFlow
from geonode.training.batches import BatchSource
from geonode.training.chunks import chunk_size, train_chunks
from geonode.training.compiling import compiler_failures
from geonode.training.control import Outcome
from geonode.training.loss import build_losses, potential
from geonode.training.memory import shrinking
from geonode.training.precision import dtype_of, require_precision
from geonode.training.problem import Problem, build_problem
from geonode.training.steps import train_stack, use_captured

Progress = Callable[[int, int], None]


def train(
    problem: Problem,
    config: GeodesicConfig,
    seed: int = 0,
    progress: Progress | None = None,
    ode: CoupledSpectralODE | None = None,
    backend: str = "auto",
    *,
    rates: Tensor | None = None,
    patience: int | None = None,
    report: Callable[[Outcome], None] | None = None,
    compiled: bool = False,
    recompute: int = 0,
) -> CoupledSpectralODE:
    """Train one model per row of ``problem``, all together; returns the stacked model in evaluation mode.

    Each model has its own learning rates, early stopping, loss scale (``16-mixed``) and way back from a loss that is
    no number; what happens to one never touches another, and nothing of it waits for the device.

    Args:
        config: choices of model and training. seed: of initial weights and draws.
        progress: called as ``progress(epoch, epochs)``.
        ode: a model to go on from (trained in place); None starts a fresh one from ``seed``.
        backend: ``auto`` replays a captured step on a CUDA device where it can, ``triton`` insists on it, ``torch``
            never does (see `geonode.training.steps`). Where memory runs out, training starts anew with half as many
            models at a time, and says so; the weights are the same.
        rates: [M, 2] learning rates of metric and flow; None takes the configured ones for every model.
        patience: epochs without a better data loss after which a model rests; None: never.
        report: given the `geonode.training.control.Outcome` (epochs, roll-backs, skipped steps of each model).
        compiled: the losses through ``torch.compile`` (half a minute, once; pays where there is no kernel).
        recompute: parts of the wavelengths whose activations are computed again backwards; 0 keeps all of them.

    Raises:
        DeviceError: ``backend="triton"`` where steps cannot be captured; ``16-mixed`` without CUDA; or not even one
            model fits into memory; or ``compiled`` on a CPU without a C++ compiler.
        TrainingError: the loss of some model did not stay finite, three roll-backs included.
    """
    require_precision(config, problem.target.device)
    ode = problem.build_model(config, seed) if ode is None else ode
    start = [p.detach().clone() for p in ode.parameters()]
    function = build_losses(compiled, recompute)

    def stack(part: CoupledSpectralODE, rows: Problem, which: slice, tell: Progress | None) -> Outcome:
        source = BatchSource(rows, part.table, config, seed)
        captured = use_captured(backend, source, config) and not compiled
        own = None if rates is None else rates[which]
        with compiler_failures() if compiled else nullcontext():
            return train_stack(
                part, source, config, tell, capture=captured, rates=own, patience=patience, function=function
            )

    def attempt(size: int) -> Outcome:
        with torch.no_grad():
            for parameter, value in zip(ode.parameters(), start, strict=True):
                parameter.copy_(value)
        if size < problem.models:
            return train_chunks(stack, problem, config, ode, size, progress)
        return stack(ode, problem, slice(None), progress)

    size = problem.models if backend == "triton" else chunk_size(problem, config)
    outcome = shrinking(attempt, size, lambda text: warnings.warn(text, stacklevel=3))
    for text in outcome.warnings():
        warnings.warn(text, stacklevel=2)
    outcome.require_finite()
    if report is not None:
        report(outcome)
    return ode


@torch.no_grad()
def predict(ode: CoupledSpectralODE, problem: Problem, concentrations: Tensor) -> Tensor:
    """Spectra [M, C, W] in user units at ``concentrations`` [M, C]: the average of the geodesics from every level.

    Sources are the smoothed spectra at the levels; each is weighted by the inverse of its arc length to the target
    (mean over wavelengths), so that near standards count most.

    Args:
        ode: the trained stack. problem: what it was trained on, on the same device.
        concentrations: user units.

    Raises:
        InputError: a concentration outside the range served.
    """
    levels, targets = problem.level_coordinates, problem.coordinates(concentrations)
    everything = torch.cat([levels, targets], 1)
    ode.table.require_inside(everything)
    n = levels.shape[1]
    real = torch.arange(n, device=levels.device) < problem.counts[:, None]
    table = ode.on_table()
    if isinstance(ode.flow, SpectralFlow) and ode.flow.nu is None:
        order = everything.argsort(1)
        phi = ode.table.phi(everything.gather(1, order), check=False)
        reached = potential(ode, phi, table, None, ode.config.nodes)
        back = order.argsort(1)[:, :, None].expand_as(reached)
        reached = reached.gather(1, back)
        offset = (problem.spectra - reached[:, :n])[:, :, None] + reached[:, None, n:]  # [M, n, C, W]
    else:
        offset = _all_pairs(ode, problem, levels, targets)
    s_hat = ode.table.scaled(ode.table.phi(everything, check=False).to(table.density), table.density).mean(-1)
    distance = (s_hat[:, :n, None] - s_hat[:, None, n:]).abs()
    weight = real[:, :, None] / (distance + 0.02)
    weight = (weight / weight.sum(1, keepdim=True)).to(offset)
    return problem.centre + problem.scale * (weight[..., None] * offset).sum(1)


def _all_pairs(ode: CoupledSpectralODE, problem: Problem, levels: Tensor, targets: Tensor) -> Tensor:
    """Every level transported to every target [M, n, C, W], for flows that depend on the path."""
    n, count = levels.shape[1], targets.shape[1]
    start = levels[:, :, None].expand(-1, n, count).flatten(1)
    end = targets[:, None].expand(-1, n, count).flatten(1)
    source = problem.spectra[:, :, None].expand(-1, n, count, -1).flatten(1, 2)
    return ode.transport(source, start, end).unflatten(1, (n, count))


def fit_node_folds(
    gps: Sequence[GeodesicGP],
    targets: Sequence[np.ndarray],
    wavelengths: np.ndarray,
    config: GeodesicConfig,
    seed: int = 0,
    progress: Progress | None = None,
    device: torch.device | str = "cpu",
) -> list[np.ndarray]:
    """Train the neural model of every fold in one batch and predict its held-out concentrations.

    Args:
        gps: one fitted GP per fold (it holds the fold's levels and mean spectra).
        targets: per fold, the concentrations [C_m] to predict.
        wavelengths: [W].
        config, seed, progress: as for `train`.
        device: where to train.

    Returns:
        Per fold the mean spectra [C_m, W] in user units.

    Raises:
        DeviceError, TrainingError: as `train`.
    """
    dtype = dtype_of(config)
    problem = build_problem(gps, wavelengths, config, targets).to(device, dtype)
    ode = train(problem, config, seed, progress)
    longest = max(len(t) for t in targets)
    padded = np.stack([np.concatenate([t, np.repeat(t[-1:], longest - len(t))]) for t in targets])
    spectra = predict(ode, problem, torch.from_numpy(padded)).cpu().double().numpy()
    return [spectra[m, : len(t)] for m, t in enumerate(targets)]
