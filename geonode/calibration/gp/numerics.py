"""The numbers behind ``GeodesicGP``: kernel, evidence, checks of what comes in."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from geonode.errors import InputError
from geonode_runtime.given_numbers import as_numbers

# Candidates whose weights sum to less than this are left out of predictions: no figure of a report can show them.
NEGLIGIBLE_WEIGHT = 1e-7
_SMALL = 16  # levels: with more of them LAPACK is as fast


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
    c = torch.as_tensor(np.atleast_1d(as_numbers(values, "concentrations")))
    if c.ndim != 1 or not bool(torch.isfinite(c).all()):
        raise InputError("the concentrations to predict must be a list of finite numbers.")
    return c


def matern52(distance: torch.Tensor) -> torch.Tensor:
    """Matérn-5/2 correlation (1 + √5 r + 5r²/3) exp(−√5 r) (Rasmussen & Williams 2006, eq. 4.17)."""
    scaled = math.sqrt(5.0) * distance
    return (1.0 + scaled + scaled * scaled / 3.0) * torch.exp(-scaled)


def with_nugget(kernel: torch.Tensor, eta: torch.Tensor) -> torch.Tensor:
    """k + η I of ``kernel [..., n, n]``; ``eta`` is shaped to broadcast against it."""
    return kernel + eta * torch.eye(kernel.shape[-1], dtype=kernel.dtype)


def inverted(matrix: torch.Tensor) -> torch.Tensor:
    """Inverses of symmetric positive definite matrices ``[..., n, n]``."""
    return torch.cholesky_inverse(torch.linalg.cholesky(matrix))


def evidence(
    kernel: torch.Tensor, etas: Sequence[float], gram: torch.Tensor, width: int, effective_outputs: float
) -> torch.Tensor:
    """Log weights ``[F, 13, ℓ, α, η]`` (not normalised) of K = k + η I from k ``[F, 13, ℓ, α, n, n]`` and R Rᵀ
    ``gram [F, n, n]``."""
    n = kernel.shape[-1]
    nuggets = torch.tensor(etas, dtype=kernel.dtype)
    if n <= _SMALL:
        found = [_eliminated(k, nuggets, g) for k, g in zip(kernel, gram, strict=True)]
        q, log_det = (torch.stack(parts) for parts in zip(*found, strict=True))
    else:
        factor = torch.linalg.cholesky(with_nugget(kernel[..., None, :, :], nuggets[:, None, None]))
        q = torch.einsum("f...ij,fij->f...", torch.cholesky_inverse(factor), gram)
        log_det = 2.0 * torch.log(torch.diagonal(factor, dim1=-2, dim2=-1)).sum(-1)
    # Spectra that do not change at all have q = 0; the floor leaves the choice to |K| instead of to 0/0.
    q = q.clamp_min(torch.finfo(q.dtype).tiny)
    return -0.5 * effective_outputs * (n * torch.log(q / (n * width)) + log_det)


def _eliminated(kernel: torch.Tensor, etas: torch.Tensor, gram: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """tr(K⁻¹ R Rᵀ) and ln |K|, ``[13, ℓ, α, η]`` each, from k ``[13, ℓ, α, n, n]`` and R Rᵀ ``[n, n]``.

    Gauss's elimination (Cholesky's, with the roots left out) in all matrices side by side, so that an operation is one
    of vectors over the candidates: matrix by matrix, as LAPACK takes them, small ones cost five times as much.
    """
    n = len(gram)
    own = kernel.reshape(-1, n, n).permute(1, 2, 0).contiguous()
    rest = (own[..., None] + torch.eye(n, dtype=own.dtype)[..., None, None] * etas).reshape(n, n, -1)
    values, vectors = torch.linalg.eigh(gram)
    sides = (vectors * values.clamp_min(0.0).sqrt())[..., None]  # a root of R Rᵀ, the same for every candidate
    q, pivots = torch.zeros(rest.shape[-1], dtype=rest.dtype), []
    for _ in range(n):
        pivot, side = rest[0, 0], sides[0]
        pivots.append(pivot)
        q = q + (side * side).sum(0) / pivot
        factor = rest[1:, 0] / pivot
        sides = torch.addcmul(sides[1:], factor[:, None], side, value=-1.0)
        rest = torch.addcmul(rest[1:, 1:], factor[:, None], rest[0, 1:], value=-1.0)
    shape = (*kernel.shape[:-2], len(etas))
    return q.reshape(shape), torch.stack(pivots).log().sum(0).reshape(shape)


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
