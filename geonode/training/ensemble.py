"""Train M models (folds × seeds) as one batch, and predict with all of them: without Lightning.

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
from geonode.device import device_setup
from geonode.errors import InputError
from geonode.flow import CoupledSpectralODE
from geonode.threads import threads_for
from geonode.training.batches import BatchSource
from geonode.training.checkpoint import CheckpointFolder
from geonode.training.chunks import chunk_size, copy_models, select, select_model, step_size, workers_for
from geonode.training.compiling import compiler_failures
from geonode.training.control import Outcome
from geonode.training.loop import TrainingLoop
from geonode.training.loss import build_losses
from geonode.training.memory import Size, fitted, shrinking
from geonode.training.monitoring import Monitoring
from geonode.training.precision import dtype_of, set_up_for
from geonode.training.problem import Problem, build_problem
from geonode.training.profiling import StepProfile
from geonode.training.steps import StackSteps, use_captured
from geonode_runtime.wording import argument

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
    batch: str | None = None,
    keep: CheckpointFolder | None = None,
    resume: bool = False,
    watch: Monitoring | None = None,
    stops: bool = False,
    profile: StepProfile | None = None,
) -> CoupledSpectralODE:
    """Train one model per row of ``problem``, all together; returns the stacked model in evaluation mode.

    Each model has its own learning rates, early stopping, loss scale (``16-mixed``) and way back from a loss that is
    no number; what happens to one never touches another, and nothing of it waits for the device. Each ends in the state
    with the lowest data loss that was met, its start included: training never makes a model worse.

    Args:
        problem: on the device that trains.
        config: choices of model and training.
        seed: of initial weights and draws.
        progress: called as ``progress(epoch, epochs)``.
        ode: a model to go on from (trained in place); None starts a fresh one from ``seed``.
        backend: ``auto`` replays a captured step on a CUDA device where it can, ``triton`` insists on it, ``torch``
            never does (see `geonode.training.steps`).
        rates: [M, 2] learning rates of metric and flow; None takes the configured ones for every model.
        patience: epochs without a better data loss after which a model rests; None: never.
        report: given the `geonode.training.control.Outcome` (losses, epochs, roll-backs, skipped steps of each model).
        compiled: the losses through ``torch.compile`` (half a minute, once; pays where there is no kernel).
        recompute: parts of the wavelengths whose activations are computed again backwards; 0 keeps all of them.
        batch: ``auto`` finds the largest micro-batch that fits the device (or, where there are none, the fewest parts
            to recompute) before it starts. Where memory runs out, training goes on from its last checkpoint, or starts
            anew, with smaller steps (``auto``) or half as many models at a time, and says so; the weights are the same
            to rounding.
        keep: where checkpoints go; None writes none.
        resume: go on from the newest intact one there; from the start where there is none.
        watch: what is told of losses and rates.
        stops: finish the epoch on SIGTERM and raise `Interrupted`.
        profile: records a few epochs; None records nothing.

    Raises:
        InputError: an unknown ``batch``, or a checkpoint of another training.
        DeviceError: ``backend="triton"`` where steps cannot be captured; ``16-mixed`` or ``tf32`` without CUDA; or not
            even one model fits into memory; or ``compiled`` on a CPU without a C++ compiler.
        Interrupted: SIGTERM stopped the training; its state is with ``keep``.
        TrainingError: the loss of some model did not stay finite, three roll-backs included.
    """
    if batch not in (None, "auto"):
        raise InputError(f"{argument('batch', batch)} is not known; give 'auto', or set batch_size and micro_batch.")
    if compiled and config.training.precision == "tf32":
        raise InputError(
            f"{argument('precision', 'tf32')} is set product by product, which torch.compile does not see; leave "
            "either."
        )
    with threads_for(step_size(problem, problem.models)):  # dozens of threads take longer than one to begin
        ode = problem.build_model(config, seed) if ode is None else ode
    start = [p.detach().clone() for p in ode.parameters()]
    tried: list[Size] = []

    def attempt(size: Size) -> Outcome:
        with torch.no_grad():
            for parameter, value in zip(ode.parameters(), start, strict=True):
                parameter.copy_(value)
        tried.append(size)
        parts = _Parts(ode, problem, size, seed, backend, rates, patience, compiled)
        workers = workers_for(len(parts.stacks), problem.target.device)
        loop = TrainingLoop(parts.stacks, config.training.epochs, workers, progress, keep, watch, stops, profile)
        with compiler_failures() if compiled else nullcontext(), threads_for(step_size(problem, size.models)):
            outcome = loop.run(resume=resume or len(tried) > 1)
        parts.put_back()
        return outcome

    models = problem.models if backend == "triton" else chunk_size(problem, config)
    size = Size(models, config, recompute)
    levels = problem.levels.shape[1]
    with set_up_for(config, problem.target.device):
        if batch == "auto":
            size = fitted(problem, size)
        outcome = shrinking(attempt, size, levels, batch == "auto", lambda text: warnings.warn(text, stacklevel=4))
        rounding = rounding_of_tf32(ode, problem) if config.training.precision == "tf32" else []
    for text in [*outcome.warnings(), *rounding]:
        warnings.warn(text, stacklevel=2)
    outcome.require_finite()
    if report is not None:
        report(outcome)
    return ode


class _Parts:
    """The models of a stacked model as stacks of ``size.models``, each with what its training needs."""

    def __init__(
        self,
        ode: CoupledSpectralODE,
        problem: Problem,
        size: Size,
        seed: int,
        backend: str,
        rates: Tensor | None,
        patience: int | None,
        compiled: bool,
    ) -> None:
        self.ode, self.starts = ode, range(0, problem.models, size.models)
        function = build_losses(compiled, size.recompute)
        self.stacks = []
        whole = len(self.starts) == 1
        for first in self.starts:
            rows = problem if whole else select(problem, first, min(size.models, problem.models - first))
            own = ode if whole else select_model(ode, rows, first)
            source = BatchSource(rows, own.table, size.config, seed)
            # what did not fit at once would not fit as graphs either: each keeps its memory
            capture = use_captured(backend, source, own) and whole and not compiled
            these = None if rates is None else rates[first : first + rows.models]
            self.stacks.append(StackSteps(own, source, size.config, capture, these, patience, function))

    def put_back(self) -> None:
        """Trained parameters into the stacked model."""
        for first, stack in zip(self.starts, self.stacks, strict=True):
            if stack.ode is not self.ode:
                copy_models(self.ode, stack.ode, first, stack.optimizer.models, back=True)
        self.ode.eval()


def rounding_of_tf32(ode: CoupledSpectralODE, problem: Problem) -> list[str]:
    """What TF32 changed in the spectra at the standards, as a sentence; without CUDA nothing changes.

    Args:
        ode, problem: a trained stack and what it was trained on, on the device that trained it.
    """
    levels = problem.levels.cpu()
    found = predict(ode, problem, levels)
    kind = problem.target.device.type
    with device_setup(kind) if kind == "cuda" else nullcontext():
        exact = predict(ode, problem, levels)
    share = float(((found - exact).abs().amax() / (exact - problem.centre).abs().amax()).cpu())
    return [f"{argument('precision', 'tf32')} moves spectra at the standards by up to {share:.1e} of their spread."]


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
    targets = problem.coordinates(concentrations)
    ode.table.require_inside(torch.cat([problem.level_coordinates, targets], 1))
    return spectra_at(ode, problem, targets)


@torch.no_grad()
def spectra_at(ode: CoupledSpectralODE, problem: Problem, targets: Tensor) -> Tensor:
    """`predict` at warp coordinates ``targets`` [M, C] inside the table, without a look at any value.

    Args:
        ode, problem, targets: all on one device.
    """
    levels = problem.level_coordinates
    everything = torch.cat([levels, targets], 1)
    n = levels.shape[1]
    real = torch.arange(n, device=levels.device) < problem.counts[:, None]
    table, phi = ode.on_table(), ode.table.phi(everything, check=False)
    if ode.flow.path_independent:
        order = everything.argsort(1)
        ascending = phi.gather(1, order[:, :, None].expand_as(phi))
        reached = ode.potential(ascending, table, None, ode.path.nodes)
        back = order.argsort(1)[:, :, None].expand_as(reached)
        reached = reached.gather(1, back)
        offset = (problem.spectra - reached[:, :n])[:, :, None] + reached[:, None, n:]  # [M, n, C, W]
    else:
        offset = _all_pairs(ode, problem, levels, targets)
    s_hat = ode.table.scaled(phi.to(table.density), table.density).mean(-1)
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


@torch.no_grad()
def arc_length(ode: CoupledSpectralODE, concentrations: np.ndarray) -> np.ndarray:
    """ŝ [C, W] of a trained stack at ``concentrations`` [C], mean over its models."""
    c = torch.from_numpy(concentrations).expand(ode.models, -1)
    density = ode.on_table().density
    phi = ode.table.phi(ode.to_u(c)).to(density)
    return ode.table.scaled(phi, density).mean(0).double().numpy()
