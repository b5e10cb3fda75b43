"""Fine-tuning: a trained model on a new instrument or analyte batch, from two or three standards measured there.

Geometry and the shape of the response are kept; only a low-rank correction of the flow's wavelength embedding is
trained (LoRA, arXiv 2106.09685: embedding + U V with U [W, r] from zero), because an instrument changes what each
wavelength shows, not the chemistry. Transport then starts from the new standards' own spectra.
"""

from __future__ import annotations

import dataclasses
from copy import deepcopy

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from geonode.errors import InputError
from geonode.flow import CoupledSpectralODE, SpectralFlow
from geonode.training.batches import PointsBatch
from geonode.training.loss import learning_rate, losses
from geonode.training.problem import Problem


class LowRank(nn.Module):
    """value [M, W, E] → value + U V, with U [M, W, r] zero and V [M, r, E] random: training starts from the value."""

    def __init__(self, value: Tensor, rank: int, seed: int = 0) -> None:
        super().__init__()
        models, rows, columns = value.shape
        draw = torch.Generator().manual_seed(seed)
        self.u = nn.Parameter(torch.zeros(models, rows, rank, dtype=value.dtype, device=value.device))
        start = torch.randn(models, rank, columns, generator=draw, dtype=torch.float64) / columns**0.5
        self.v = nn.Parameter(start.to(value))

    def forward(self, value: Tensor) -> Tensor:
        """The corrected value."""
        return value + self.u @ self.v


def adapt(
    ode: CoupledSpectralODE,
    problem: Problem,
    levels: np.ndarray,
    spectra: np.ndarray,
    rank: int = 2,
    steps: int = 200,
    rate: float = 2e-2,
    weight_decay: float = 1e-2,
) -> tuple[CoupledSpectralODE, Problem]:
    """A copy of a trained model adapted to new standards, and the problem to predict from (`predict`).

    Args:
        ode, problem: a trained model and what it was trained on (``GeodesicModel.ode`` and ``.problem``).
        levels: [n] concentrations of the new standards, two or more, ascending, inside the range the model serves.
        spectra: [n, W] their spectra on the model's wavelengths, user units.
        rank: of the correction. steps, rate, weight_decay: of its training (AdamW).

    Raises:
        InputError: fewer than two standards, shapes that do not fit, a concentration outside the range served, or a
            flow without a wavelength embedding whose pairs are differences of one potential.
    """
    levels, spectra = np.asarray(levels, dtype=np.float64), np.asarray(spectra, dtype=np.float64)
    width = problem.target.shape[2]
    if len(levels) < 2 or np.any(np.diff(levels) <= 0) or spectra.shape != (len(levels), width):
        raise InputError(
            f"Adapting needs two or more standards in ascending order with spectra [n, {width}] on the model's own "
            f"wavelengths; got {len(levels)} levels and spectra {spectra.shape}."
        )
    if not isinstance(ode.flow, SpectralFlow) or ode.flow.nu is not None:
        raise InputError("Only models with flow='path_independent' can be adapted; fit the new standards from scratch.")
    if not 1 <= rank <= ode.flow.embedding.shape[-1]:
        raise InputError(f"rank={rank} must lie between 1 and {ode.flow.embedding.shape[-1]}, the embedding's width.")
    new = _problem(problem, levels, spectra)
    ode = deepcopy(ode)
    ode.table.require_inside(new.points)
    for parameter in ode.parameters():
        parameter.requires_grad_(False)
    correction = LowRank(ode.flow.embedding, rank, ode.config.seed)
    parametrize.register_parametrization(ode.flow, "embedding", correction)
    optimizer = torch.optim.AdamW(correction.parameters(), lr=rate, weight_decay=weight_decay)
    batch = PointsBatch(ode.table.phi(new.points).to(new.target), new.target, new.weight)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * learning_rate(step / steps)
        losses(ode, batch, {"reconstruction": 1.0})["total"].sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    parametrize.remove_parametrizations(ode.flow, "embedding", leave_parametrized=True)
    return ode.eval(), new


def _problem(problem: Problem, levels: np.ndarray, spectra: np.ndarray) -> Problem:
    """The old problem's warp, range and scale with the new standards as its levels and targets."""
    models = problem.models
    concentrations = torch.from_numpy(levels).expand(models, -1)
    coordinates = problem.coordinates(concentrations)
    measured = torch.from_numpy(spectra).to(problem.target).expand(models, -1, -1)
    centre = measured.mean(1, keepdim=True)
    target = (measured - centre) / problem.scale
    return dataclasses.replace(
        problem,
        levels=concentrations.contiguous(),
        level_coordinates=coordinates,
        counts=torch.full_like(problem.counts, len(levels)),
        spectra=target,
        points=coordinates,
        target=target,
        weight=torch.ones_like(target[:, :, 0]),
        centre=centre,
        gamma=None,
    )
