"""Processes through the same standards that differ in all that the standards leave open.

The starts of one `SurfaceGP` share their warps: they agree about how a response bends between two levels, whether or
not anything was measured there, and by which optimum was found. Members of a `SurfaceEnsemble` have warps, lengths,
linear shares and an interaction of their own, each drawn from the prior and held to that draw (`Surfaces.scatter`), so
that where the standards do not decide, members differ. Half of them are the other half with the analytes exchanged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from geonode.analytes.embedding import Surfaces
from geonode.analytes.evidence import log_evidence, maximise, scaled_gram
from geonode.analytes.surface_gp import SurfaceGP, origin_of, warps_of
from geonode.calibration.gp.numerics import one_thread
from geonode.metric.warp import WARPS

MEMBERS = 8


class SurfaceEnsemble:
    """Fitted processes of two analytes; made by `fit_ensemble` and `SurfaceEnsemble.from_state`.

    Attributes:
        levels, level_means: ``[n, 2]`` and ``[n, W]``. origin: ``[2]`` of the warps. residual: ``[n, W]``, the means
            less their column means ``column_mean [W]``. eta: ``[F]`` nuggets. inverse: ``[F, n, n]`` K⁻¹.
    """

    def __init__(
        self, levels: np.ndarray, level_means: np.ndarray, surfaces: Surfaces, inverse: Tensor, x: Tensor
    ) -> None:
        self.levels, self.level_means, self.origin = levels, level_means, origin_of(levels)
        self.column_mean = level_means.mean(axis=0)
        self.residual = level_means - self.column_mean
        self.surfaces, self.inverse, self.x = surfaces, inverse, x
        self.eta = surfaces.log_eta.exp()[:, 0].detach().numpy()
        self._range = levels  # warps are scaled to it; a fold keeps that of all

    @property
    def members(self) -> int:
        """F."""
        return len(self.eta)

    def member_coordinates(self, concentrations: np.ndarray) -> Tensor:
        """``[F, C, 2]``, each member's own."""
        with torch.no_grad():
            warped = warps_of(concentrations, self._range)
            return self.surfaces.coordinates(warped[None].expand(self.members, *warped.shape))

    def coordinates(self, concentrations: np.ndarray) -> np.ndarray:
        """``[C, 2]``, the members' mean: ascending in each concentration, [−1, 1] on the calibrated range."""
        return self.member_coordinates(concentrations).mean(0).numpy()

    @one_thread()
    def rows_at(self, axes: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """k*ᵀK⁻¹ ``[F, C, n]`` and kriging variance ``[F, C]`` on the grid of two axes of concentrations, C = G₁ G₂."""
        count = max(len(axis) for axis in axes)
        padded = np.stack([np.pad(axis, (0, count - len(axis)), mode="edge") for axis in axes], axis=1)
        places = self.member_coordinates(padded)
        first, second = (places[:, : len(axis), d] for d, axis in enumerate(axes))
        shape = (self.members, len(axes[0]), len(axes[1]))
        grid = torch.stack([first[:, :, None].expand(shape), second[:, None, :].expand(shape)], -1).flatten(1, 2)
        with torch.no_grad():
            cross = self.surfaces.kernel(grid, self.x)[:, 0]
            rows = cross @ self.inverse
            variance = (self.surfaces.prior_variance(grid)[:, 0] - (rows * cross).sum(-1)).clamp_min(0.0)
        return rows.numpy(), variance.numpy()

    def without(self, level: int) -> SurfaceEnsemble:
        """The same processes, nothing fitted anew, without one of their levels."""
        rest = np.delete(np.arange(len(self.levels)), level)
        # K⁻¹ of the rest: that of all, less what the level left out contributes (the Schur complement)
        column = self.inverse[:, rest, level]
        inverse = self.inverse[:, rest][:, :, rest] - (
            column[:, :, None] * column[:, None, :] / self.inverse[:, level, level][:, None, None]
        )
        fold = SurfaceEnsemble(self.levels[rest], self.level_means[rest], self.surfaces, inverse, self.x[:, rest])
        fold.origin, fold._range = self.origin, self._range
        return fold

    def state(self) -> dict[str, Tensor]:
        """The fitted parameters."""
        return dict(self.surfaces.state_dict())

    @classmethod
    def from_state(cls, gp: SurfaceGP, state: dict[str, Tensor]) -> SurfaceEnsemble:
        """Fitted processes again: ``gp`` as it was given to `fit_ensemble`, ``state`` what `state` gave."""
        surfaces = Surfaces(len(state["logits"]), 1, gp.hidden, gp.dim, len(WARPS), gp.seed)
        surfaces.load_state_dict(state)
        with torch.no_grad():
            _, inverse, x = log_evidence(surfaces, *_given(gp, len(state["logits"])), gp.effective_outputs)
        return cls(gp.levels, gp.level_means, surfaces.requires_grad_(False), inverse[:, 0], x)


@one_thread()
def fit_ensemble(gp: SurfaceGP, members: int = MEMBERS) -> SurfaceEnsemble:
    """Fit an even number of members to the standards of ``gp``, with its settings."""
    surfaces = Surfaces(members, 1, gp.hidden, gp.dim, len(WARPS), gp.seed)
    surfaces.scatter(gp.seed)
    _, inverse, x = maximise(surfaces, *_given(gp, members), gp.effective_outputs, gp.steps)
    return SurfaceEnsemble(gp.levels, gp.level_means, surfaces.requires_grad_(False), inverse[:, 0], x)


def _given(gp: SurfaceGP, members: int) -> tuple[Any, Any, int]:
    warped, gram = warps_of(gp.levels, gp.levels), scaled_gram(gp.level_means[None])
    return warped[None].expand(members, *warped.shape), gram.expand(members, -1, -1), gp.level_means.shape[1]
