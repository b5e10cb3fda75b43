"""The geodesic Gaussian process's whole grid on many assays at once, reduced to groups of linear smoothers.

Every candidate of :class:`~geonode.calibration.geodesic_gp.GeodesicGP` (warp × length × linear share × nugget) predicts
a spectrum as a fixed mix of the standards' spectra, A(c) = Ȳ + k(c)ᵀK⁻¹R. So does any average of candidates. This
module computes all 1625 of them for a batch of assays, weighs them by the same evidence, and averages them within
groups that share a warp, a class of linear share and a class of nugget. What is left per group is one matrix of
weights, one log evidence and one matrix of leave-one-out residuals: what a network can look at.

Axes: B assays, n standards, P places (concentrations asked for), G groups. Matrix axes lead and the grid trails in all
intermediate tensors, so that every step is one elementwise pass over contiguous memory, on a CPU and on a GPU alike;
LAPACK on thousands of tiny matrices is many times slower on either.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from geonode.calibration.gp.grid import ALPHAS, ETAS, LENGTHS, LOG_PRIOR
from geonode.calibration.gp.numerics import matern52
from geonode.corpus.numbers import constant
from geonode.metric.warp import WARPS, scaled_warps

EFFECTIVE_OUTPUTS = 8.0
ALPHA_CLASSES = (2, 2, 1)
"""How many neighbouring linear shares make a class: {0, 0.5}, {0.9, 0.99}, {1}."""
ETA_CLASSES = (2, 1, 2)
"""How many neighbouring nuggets make a class: {1e-5, 1e-4}, {1e-3}, {0.01, 0.05}."""
GROUPS = len(WARPS) * len(ALPHA_CLASSES) * len(ETA_CLASSES)
_LOG_PRIOR = tuple(LOG_PRIOR.tolist())
CANDIDATES = len(WARPS) * len(LENGTHS) * len(ALPHAS) * len(ETAS)


@dataclass(frozen=True)
class Smoothers:
    """Groups of candidates as matrices that act on R, the level means less their mean; all float64.

    Attributes:
        rows: ``[B, G, P, n]`` weights of the standards, averaged by evidence within the group.
        leave_one_out: ``[B, G, n, n]`` residuals of every standard when it is left out (its evidence left out too).
        log_evidence: ``[B, G]`` normalised over the groups (log Σ exp = 0).
        held_out_evidence: ``[B, G, n]`` the same without the standard, normalised over the groups.
        coordinate: ``[B, P]`` and standards: ``[B, n]``: the evidence-averaged warp, scaled to [−1, 1].
    """

    rows: Tensor
    leave_one_out: Tensor
    log_evidence: Tensor
    held_out_evidence: Tensor
    coordinate: Tensor
    standards: Tensor

    @property
    def weights(self) -> Tensor:
        """Evidence of the groups, ``[B, G]``, adding up to 1."""
        return self.log_evidence.exp()

    @property
    def average(self) -> Tensor:
        """Evidence-averaged weights of the standards ``[B, P, n]``: exactly the geodesic GP's."""
        return torch.einsum("bg,bgpn->bpn", self.weights, self.rows)

    @property
    def average_leave_one_out(self) -> Tensor:
        """``[B, n, n]`` leave-one-out residuals of the evidence average, the evidence taken without that standard."""
        return torch.einsum("bgi,bgij->bij", self.held_out_evidence.exp(), self.leave_one_out)


def scaled(levels: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """Scaled ascending ``levels [B, n]`` and ``places [B, P]``: c₀ = 0 where all c ≥ 0, else c_min."""
    low = levels[:, :1]
    origin = torch.where(low >= 0.0, torch.zeros_like(low), low)
    span = levels[:, -1:] - origin
    return (levels - origin) / span, (places - origin) / span


def smoothers(levels: Tensor, gram: Tensor, width: int, places: Tensor) -> Smoothers:
    """All groups for a batch of assays.

    Args:
        levels: ``[B, n]`` ascending concentrations, any unit, n ≥ 2.
        gram: ``[B, n, n]`` R Rᵀ over ``width`` wavelengths.
        width: how many wavelengths the gram matrix sums over.
        places: ``[B, P]`` concentrations to predict, any order, also outside the calibrated range.

    Returns:
        Float64 matrices; the groups' order is warps (slowest), classes of linear share, classes of nugget.
    """
    levels, gram, places = levels.double(), gram.double(), places.double()
    u, at = scaled(levels, places)
    s = scaled_warps(u, u[:, :1], u[:, -1:]).permute(2, 1, 0)  # [n, B, V]
    t = scaled_warps(at, u[:, :1], u[:, -1:]).permute(2, 1, 0)  # [P, B, V]
    inverse, log_det = _inverses(_kernel(s, s))
    log_weights, without = _evidence(inverse, log_det, gram.permute(1, 2, 0), width)
    shape = (len(levels), GROUPS)
    groups = _by_class(log_weights, _log_sum_exp).reshape(shape)
    held = _by_class(without, _log_sum_exp).permute(1, 2, 3, 4, 0).reshape(*shape, -1)
    log_evidence = groups - groups.logsumexp(1, keepdim=True)
    by_warp = log_evidence.exp().reshape(len(levels), len(WARPS), -1).sum(-1)
    return Smoothers(
        rows=_group_rows(inverse, log_weights, _kernel(t, s)),
        leave_one_out=_group_leave_one_out(inverse, without),
        log_evidence=log_evidence,
        held_out_evidence=held - held.logsumexp(1, keepdim=True),
        coordinate=(t * by_warp).sum(-1).mT,
        standards=(s * by_warp).sum(-1).mT,
    )


def _kernel(left: Tensor, right: Tensor) -> Tensor:
    """k between ``left [a, B, V]`` and ``right [b, B, V]``: ``[a, b, B, V, ℓ, α]``."""
    lengths, alphas = (constant(numbers, left.dtype, left.device) for numbers in (LENGTHS, ALPHAS))
    matern = matern52((left[:, None] - right[None]).abs()[..., None] / lengths)
    linear = (left[:, None] * right[None])[..., None, None]
    return 1.0 + alphas * linear + (1.0 - alphas) * matern[..., None]


def _inverses(kernel: Tensor) -> tuple[Tensor, Tensor]:
    """(k + η I)⁻¹ ``[n, n, B, V, ℓ, α, η]`` and log determinants, by Gauss–Jordan elimination one column at a time.

    Without pivoting: the matrices are positive definite with eigenvalues between 1e-5 and a few n.
    """
    matrix = kernel[..., None].repeat(*([1] * kernel.ndim), len(ETAS))
    matrix.diagonal(dim1=0, dim2=1).add_(constant(ETAS, kernel.dtype, kernel.device)[:, None])
    log_det = torch.zeros_like(matrix[0, 0])
    for k in range(len(matrix)):
        pivot = matrix[k, k].clone()
        log_det += pivot.log()
        column = matrix[:, k].clone()
        row = matrix[k] / pivot
        row[k] = 1.0 / pivot
        matrix[:, k].zero_()
        matrix.addcmul_(column[:, None], row[None], value=-1.0)
        matrix[k] = row
    return matrix, log_det


def _evidence(inverse: Tensor, log_det: Tensor, gram: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Log evidence of every candidate ``[B, V, ℓ, α, η]``, and of the others when one standard is left out
    ``[n, B, V, ℓ, α, η]`` (q and |K| of the reduced matrix follow from K⁻¹; Rasmussen & Williams 2006, eq. 5.12)."""
    n = len(inverse)
    gram = gram[..., None, None, None, None]
    tiny = torch.finfo(gram.dtype).tiny
    quadratic = torch.zeros_like(log_det)
    lost = []
    for i in range(n):
        weighted = (inverse[i][:, None] * gram).sum(0)  # [n, B, ...]: row i of K⁻¹ G
        quadratic += weighted[i]
        lost.append((weighted * inverse[i]).sum(0))
    diagonal = torch.diagonal(inverse, dim1=0, dim2=1).movedim(-1, 0)
    left = (quadratic - torch.stack(lost) / diagonal).clamp_min(tiny)
    quadratic = quadratic.clamp_min(tiny)
    prior = constant(_LOG_PRIOR, quadratic.dtype, quadratic.device)[:, None, None, None]
    whole = n * torch.log(quadratic / (n * width)) + log_det
    part = (n - 1) * torch.log(left / ((n - 1) * width)) + log_det + diagonal.log()
    return prior - 0.5 * EFFECTIVE_OUTPUTS * whole, prior - 0.5 * EFFECTIVE_OUTPUTS * part


def _classes(tensor: Tensor) -> list[list[Tensor]]:
    """``[..., ℓ, α, η]`` cut into views by class of linear share and of nugget."""
    return [list(part.split(ETA_CLASSES, -1)) for part in tensor.split(ALPHA_CLASSES, -2)]


def _by_class(tensor: Tensor, reduce) -> Tensor:
    """``[..., V, ℓ, α, η]`` → ``[..., V, α classes, η classes]``, each cell reduced over ℓ and its class."""
    return torch.stack([torch.stack([reduce(cell) for cell in row], -1) for row in _classes(tensor)], -2)


def _log_sum_exp(cell: Tensor) -> Tensor:
    return torch.logsumexp(cell, (-3, -2, -1))


def _shares(log_weights: Tensor) -> Tensor:
    """Weights of the candidates within their group, the shape of ``log_weights [..., V, ℓ, α, η]``."""
    rows = [
        torch.cat([(cell - torch.logsumexp(cell, (-3, -2, -1), keepdim=True)).exp() for cell in row], -1)
        for row in _classes(log_weights)
    ]
    return torch.cat(rows, -2)


def _group_rows(inverse: Tensor, log_weights: Tensor, cross: Tensor) -> Tensor:
    """Σ over the group of weight · k(c)ᵀK⁻¹: ``[B, G, P, n]``; ``cross [P, n, B, V, ℓ, α]``."""
    weighted = inverse * _shares(log_weights)
    summed = torch.stack([part.sum(-1) for part in weighted.split(ETA_CLASSES, -1)], -1)  # [n, n, B, V, ℓ, α, 3]
    n, places = len(inverse), len(cross)
    rows = []
    for right, left in zip(summed.split(ALPHA_CLASSES, -2), cross.split(ALPHA_CLASSES, -1), strict=True):
        right = right.permute(2, 3, 0, 4, 5, 6, 1).flatten(2, 4).flatten(-2)  # [B, V, n ℓ α, 3 n]
        left = left.permute(2, 3, 0, 1, 4, 5).flatten(3)  # [B, V, P, n ℓ α]
        rows.append((left @ right).unflatten(-1, (len(ETA_CLASSES), n)).permute(0, 1, 3, 2, 4))  # [B, V, 3, P, n]
    return torch.stack(rows, 2).reshape(inverse.shape[2], GROUPS, places, n)


def _group_leave_one_out(inverse: Tensor, without: Tensor) -> Tensor:
    """Σ over the group of weight · diag(1/K⁻¹ᵢᵢ) K⁻¹: ``[B, G, n, n]``."""
    diagonal = torch.diagonal(inverse, dim1=0, dim2=1).movedim(-1, 0)
    scaled_rows = inverse * (_shares(without) / diagonal)[:, None]
    cells = _by_class(scaled_rows, lambda cell: cell.sum((-3, -2, -1)))  # [n, n, B, V, 3, 3]
    return cells.permute(2, 3, 4, 5, 0, 1).reshape(inverse.shape[2], GROUPS, *inverse.shape[:2])
