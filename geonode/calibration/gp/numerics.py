"""The numbers behind ``GeodesicGP``: kernel, evidence, checks of what comes in."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from geonode.errors import InputError

# Candidates whose weights sum to less than this are left out of predictions: no figure of a report can show them.
NEGLIGIBLE_WEIGHT = 1e-7


@contextmanager
def one_thread() -> Iterator[None]:
    """One torch thread inside: thousands of tiny factorisations gain nothing from more, and on a busy machine threads
    that wait for each other cost a hundred times the work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def concentration_tensor(values: Any) -> torch.Tensor:
    c = torch.as_tensor(np.atleast_1d(np.asarray(values, dtype=np.float64)))
    if c.ndim != 1 or not bool(torch.isfinite(c).all()):
        raise InputError("the concentrations to predict must be a list of finite numbers.")
    return c


def matern52(distance: torch.Tensor) -> torch.Tensor:
    """Matérn-5/2 correlation (1 + √5 r + 5r²/3) exp(−√5 r) (Rasmussen & Williams 2006, eq. 4.17)."""
    scaled = math.sqrt(5.0) * distance
    return (1.0 + scaled + scaled * scaled / 3.0) * torch.exp(-scaled)


def with_nugget(kernel: torch.Tensor, etas: Sequence[float]) -> torch.Tensor:
    """``[..., n, n]`` → ``[..., η, n, n]``: k + η I."""
    eye = torch.eye(kernel.shape[-1], dtype=kernel.dtype)
    nugget = torch.tensor(etas, dtype=kernel.dtype)[:, None, None] * eye
    return kernel[..., None, :, :] + nugget


def evidence(
    matrix: torch.Tensor, gram: torch.Tensor, width: int, effective_outputs: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log weights ``[F, 13, ℓ, α, η]`` (not normalised) and K⁻¹ from K ``[F, 13, ℓ, α, η, n, n]`` and R Rᵀ."""
    n = matrix.shape[-1]
    factor = torch.linalg.cholesky(matrix)
    inverse = torch.cholesky_inverse(factor)
    q = torch.einsum("f...ij,fij->f...", inverse, gram)
    log_det = 2.0 * torch.log(torch.diagonal(factor, dim1=-2, dim2=-1)).sum(-1)
    # Spectra that do not change at all have q = 0; the floor leaves the choice to |K| instead of to 0/0.
    q = q.clamp_min(torch.finfo(q.dtype).tiny)
    return -0.5 * effective_outputs * (n * torch.log(q / (n * width)) + log_det), inverse


def significant(weights: torch.Tensor) -> torch.Tensor:
    """Indices of the largest weights that together leave out less than ``NEGLIGIBLE_WEIGHT``."""
    order = torch.argsort(weights, descending=True)
    tail = 1.0 - torch.cumsum(weights[order], 0)
    count = int((tail > NEGLIGIBLE_WEIGHT).sum()) + 1
    return order[:count]


def scaled_concentration(levels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """u = (c − c₀)/(c_max − c₀) with c₀ = 0 where all c ≥ 0, else c_min; ``levels [F, n]`` ascending."""
    origin = torch.where(levels[:, 0] >= 0.0, torch.zeros_like(levels[:, 0]), levels[:, 0])
    span = levels[:, -1] - origin
    return (levels - origin[:, None]) / span[:, None], origin, span


def checked_levels(levels: Any, level_means: Any) -> tuple[np.ndarray, np.ndarray]:
    levels, level_means, _ = checked_ordered(levels, level_means)
    return levels, level_means


def checked_ordered(levels: Any, level_means: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sorted float64 copies and the order that sorted them; InputError where they cannot be used."""
    levels = np.array(levels, dtype=np.float64)
    means = np.array(level_means, dtype=np.float64)
    if levels.ndim != 1 or means.ndim != 2 or len(levels) != len(means) or means.shape[1] == 0:
        raise InputError(
            f"level means must have shape [levels, wavelengths], but levels have shape {levels.shape} and the means "
            f"{means.shape}."
        )
    if len(levels) < 2:
        raise InputError(f"GeodesicGP needs at least two concentration levels, but {len(levels)} was given.")
    if not np.isfinite(levels).all():
        raise InputError("the concentrations contain NaN or infinite values; remove those standards.")
    if not np.isfinite(means).all():
        row, column = np.argwhere(~np.isfinite(means))[0]
        raise InputError(
            f"the spectrum of level {levels[row]:g} is NaN or infinite at position {column}; mask or remove it."
        )
    order = np.argsort(levels, kind="stable")
    levels, means = levels[order], means[order]
    if (np.diff(levels) == 0.0).any():
        twice = levels[:-1][np.diff(levels) == 0.0][0]
        raise InputError(f"the concentration level {twice:g} is given twice; average its replicates first.")
    return levels, means, order
