"""The log evidence of processes on learned embeddings, its maximum, and the order in which analytes are taken."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from geonode.analytes.embedding import Surfaces

_JITTER = 1e-9


def log_evidence(
    surfaces: Surfaces, warped: Tensor, gram: Tensor, width: int, effective_outputs: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Log evidence ``[F, S]``, K⁻¹ ``[F, S, n, n]`` and coordinates ``[F, n, D]`` (`geonode.analytes.surface_gp`).

    Args:
        surfaces: of F training sets × S starts. warped: ``[F, 13, n, D]``. gram: R Rᵀ of the scaled residuals
            ``[F, n, n]``. width: W. effective_outputs: N.
    """
    x = surfaces.coordinates(warped)
    n = x.shape[1]
    nugget = (surfaces.log_eta.exp() + _JITTER)[..., None, None] * torch.eye(n, dtype=x.dtype)
    factor = torch.linalg.cholesky(surfaces.kernel(x, x) + nugget)
    inverse = torch.cholesky_inverse(factor)
    q = (inverse * gram[:, None]).sum((-1, -2)).clamp_min(torch.finfo(x.dtype).tiny)
    log_det = 2.0 * torch.diagonal(factor, dim1=-2, dim2=-1).log().sum(-1)
    return -0.5 * effective_outputs * (n * torch.log(q / (n * width)) + log_det), inverse, x


def maximise(
    surfaces: Surfaces, warped: Tensor, gram: Tensor, width: int, effective_outputs: float, steps: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Fit ``surfaces`` by ``steps`` of Adam on evidence plus prior, and give `log_evidence` at the end."""
    optimiser = torch.optim.Adam(surfaces.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda t: min(1.0, 2.0 * (1.0 - t / steps)))
    for _ in range(steps):
        optimiser.zero_grad()
        evidence, _, _ = log_evidence(surfaces, warped, gram, width, effective_outputs)
        (-(evidence.mean(1) + surfaces.log_prior()).sum()).backward()
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        return log_evidence(surfaces, warped, gram, width, effective_outputs)


def scaled_gram(means: np.ndarray) -> Tensor:
    """R Rᵀ ``[F, n, n]`` of level means ``[F, n, W]`` less their column means, scaled to a mean square of one."""
    centred = torch.from_numpy(means - means.mean(axis=1, keepdims=True))
    scale = centred.square().mean((1, 2), keepdim=True).sqrt().clamp_min(torch.finfo(torch.float64).tiny)
    return (centred / scale) @ (centred / scale).mT


def strongest_first(levels: np.ndarray, means: np.ndarray) -> list[int]:
    """The analytes ``[D]`` in an order that is theirs and not that in which they were given.

    Starts are drawn analyte by analyte; so that an answer does not depend on the order of two columns, the first draw
    goes to the analyte on which the spectra depend most, by a straight line each in its share of the range.
    """
    share = (levels - levels.mean(axis=0)) / np.ptp(levels, axis=0)
    slope = share.T @ (means - means.mean(axis=0))
    explained = (slope**2).sum(axis=1) / (share**2).sum(axis=0)
    return np.argsort(-explained, kind="stable").tolist()


def take_in_order(surfaces: Surfaces, orders: Iterable[list[int]]) -> None:
    """Give the draw of analyte k of each set to ``order[k]``, in place."""
    with torch.no_grad():
        for f, order in enumerate(orders):
            u, v = surfaces.u[f].clone(), surfaces.v[f].clone()
            surfaces.u[f][..., order] = u
            surfaces.v[f][:, order] = v[:, : len(order)]
