"""The candidates that a fitted :class:`~geonode.calibration.gp.geodesic_gp.GeodesicGP` keeps, and kriging with each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from geonode.calibration.gp.numerics import matern52
from geonode.calibration.gp.prediction import KrigingUpdate
from geonode.metric.warp import scaled_between, warp_ends


@dataclass(frozen=True)
class Candidates:
    """G candidates (warp, length, linear share, nugget) fitted to n levels, all float64.

    Attributes:
        levels: ``[n]`` user units; ``(c − origin)/span`` is the scaled concentration that warps take.
        weights: ``[G]`` evidence, adding up to 1. inverse: ``[G, n, n]`` K⁻¹.
        warp: ``[G]`` positions in ``WARPS``. lengths, alphas, etas: ``[G, 1, 1]``.
    """

    levels: torch.Tensor
    origin: float
    span: float
    weights: torch.Tensor
    inverse: torch.Tensor
    warp: np.ndarray | torch.Tensor
    lengths: torch.Tensor
    alphas: torch.Tensor
    etas: torch.Tensor

    def to(self, device: torch.device | str) -> Candidates:
        """The same on a ``device``, index tensors too: there `at` looks at no value and copies nothing."""
        names = ("levels", "weights", "inverse", "lengths", "alphas", "etas")
        moved = replace(self, **{name: getattr(self, name).to(device) for name in names})
        object.__setattr__(moved, "warp", torch.as_tensor(self.warp).to(device))
        moved.__dict__["_of_levels"] = self._of_levels.to(device)
        moved.__dict__["_ends"] = tuple(end.to(device) for end in self._ends)
        moved.__dict__["_shared"] = tuple(torch.as_tensor(index).to(device) for index in self._shared)
        return moved

    def at(self, c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows B = k*ᵀK⁻¹ ``[G, C, n]`` and kriging variance ``[G, C]`` at concentrations ``c [C]``."""
        return self.between(self.coordinates(c), self._of_levels)

    def mean_rows(self, c: torch.Tensor) -> torch.Tensor:
        """Σ w B ``[C, n]`` over the candidates at concentrations ``c [C]``: the weighted mean of the rows of `at`.

        k* is linear in 1, ŝŝ′ and M₅⸝₂, and candidates of one warp and length differ in nothing but their factors
        there: so their K⁻¹ are added up with those factors first, and the work is that of one candidate for each.
        """
        first, right, matern, linear, ones = self._added_up
        left = self.coordinates(c)[first]
        return torch.einsum("pci,pij->cj", self._correlation(left, right), matern) + left.mT @ linear + ones

    @cached_property
    def _added_up(self) -> tuple[Any, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """For every (warp, length) p: the first candidate, the levels' coordinates ``[P, n]``, Σ w (1 − α) K⁻¹
        ``[P, n, n]``, ŝᵀ Σ w α K⁻¹ ``[P, n]``; and 1ᵀ Σ w K⁻¹ over all, ``[n]``."""
        first, which = self._shared
        right = self._of_levels[first]
        weighted = self.weights[:, None, None] * self.inverse
        added = torch.zeros(2, len(first), *weighted.shape[1:], dtype=weighted.dtype, device=weighted.device)
        index = torch.as_tensor(which).to(weighted.device)
        added[0].index_add_(0, index, weighted * (1.0 - self.alphas))
        added[1].index_add_(0, index, weighted * self.alphas)
        return first, right, added[0], torch.einsum("pi,pij->pj", right, added[1]), weighted.sum((0, 1))

    def between(self, left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """`at` for coordinates ``left`` ``[G, C]`` of what is asked and ``right`` ``[G, n]`` of the levels."""
        cross = self.kernel(left, right)
        rows = cross @ self.inverse
        return rows, (self.prior(left) - (rows * cross).sum(-1)).clamp_min(0.0)

    def coordinates(self, c: torch.Tensor) -> torch.Tensor:
        """Scaled warp coordinate of every candidate, ``[G, C]``."""
        return scaled_between((c - self.origin) / self.span, *self._ends)[self.warp]

    @cached_property
    def _ends(self) -> tuple[torch.Tensor, torch.Tensor]:
        """What every warp is at the lowest level, and by how much more at the highest, ``[13, 1]`` each."""
        u_levels = (self.levels - self.origin) / self.span
        return warp_ends(u_levels, u_levels[0], u_levels[-1])

    def kernel(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """k between coordinates ``[G, A]`` and ``[G, B]``, ``[G, A, B]``."""
        first, which = self._shared
        shared = self._correlation(left[first], right[first])
        # index_select and sums in place: as plain formulas these few lines took three times as long
        matern = shared.index_select(0, torch.as_tensor(which)).mul_(1.0 - self.alphas).add_(1.0)
        return matern.addcmul_((left * self.alphas[..., 0])[:, :, None], right[:, None, :])

    def _correlation(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """Matérn part for every (warp, length) between coordinates ``[P, A]`` and ``[P, B]``, ``[P, A, B]``."""
        distance = (left[:, :, None] - right[:, None, :]).abs_()
        return matern52(distance.div_(self.lengths[self._shared[0]]))

    @cached_property
    def _of_levels(self) -> torch.Tensor:
        """Coordinates of the levels, ``[G, n]``."""
        return self.coordinates(self.levels)

    @cached_property
    def _shared(self) -> tuple[np.ndarray, np.ndarray]:
        """First of every (warp, length), and which of those each candidate has: candidates of one warp and length share
        their Matérn part, most of the work for many levels."""
        pairs = np.stack([np.asarray(self.warp, dtype=np.float64), self.lengths[:, 0, 0].numpy()], axis=1)
        _, first, which = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
        return first, which.reshape(-1)

    def prior(self, left: torch.Tensor) -> torch.Tensor:
        """k(c, c) at coordinates ``[G, C]``."""
        alpha = self.alphas[..., 0]
        return 1.0 + alpha * left**2 + (1.0 - alpha)

    def nugget_scatter(self) -> torch.Tensor:
        """Σ w η K⁻¹ ``[n, n]``: Rᵀ (·) R is how far standards scatter about the curve (× dof)."""
        return torch.einsum("g,gij->ij", self.etas[:, 0, 0] * self.weights, self.inverse)

    def kriging_update(self, c: torch.Tensor, extra: torch.Tensor) -> KrigingUpdate:
        """What would stay uncertain at ``c [C]`` after a further spectrum at each of ``extra [E]``.

        Evidence and scale stay as they are: what will be measured is not known yet.
        """
        rows, variance = self.at(c)
        rows_e, variance_e = self.at(extra)
        left, right = self.coordinates(c), self.coordinates(extra)
        covariance = self.kernel(right, left) - rows_e @ self.kernel(self._of_levels, left)  # [G, E, C]
        after = (variance[:, None] - covariance**2 / (variance_e[:, :, None] + self.etas)).clamp_min(0.0)
        n = self.inverse.shape[-1]
        flat = self.inverse.reshape(len(self.weights), -1)
        weighted = self.weights[:, None, None] * after
        within = (weighted.reshape(len(self.weights), -1).mT @ flat).reshape(len(extra), len(c), n, n)
        within_at = ((self.weights[:, None] * variance_e).mT @ flat).reshape(len(extra), n, n)
        root = self.weights.sqrt()[:, None, None]
        at_c = (root * (rows - torch.einsum("g,gci->ci", self.weights, rows))).movedim(0, 1)  # [C, G, n]
        at_e = (root * (rows_e - torch.einsum("g,gci->ci", self.weights, rows_e))).movedim(0, 1)
        cross = at_c.mT[None] @ at_e[:, None]  # [E, C, n, n]
        parts = (within, within_at, at_c.mT @ at_c, at_e.mT @ at_e, cross)
        return KrigingUpdate(*(part.numpy() for part in parts))
