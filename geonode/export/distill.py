"""The same spectra in fewer operations: a table of knots, or a small network of one hidden layer, both made at once.

Both answer between the ends of the range they were made on, and no further. Their error against the full model is
measured after they are made (:mod:`geonode.export.report`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from geonode.export.closed_form import Warps, float64
from geonode.model import GeodesicModel

KNOTS, UNITS = 512, 64
_RIDGE = 1e-10
_RANK_ERROR = 1e-6


class Table(nn.Module):
    """Linear interpolation between knots: concentrations [C] float32 → mean and std [C, W] float32.

    Σ_k clip((c − x_k)/(x_{k+1} − x_k), 0, 1) (y_{k+1} − y_k): a clip and two matrix products, no search. The
    differences are kept as products of rank p, with an error below 1e-6 of the range.
    """

    __getattr__: Callable[[str], Any]  # buffers are tensors, of which the type checker knows nothing

    def __init__(self, knots: np.ndarray, mean: np.ndarray, std: np.ndarray, unit: float) -> None:
        super().__init__()
        gaps = np.diff(knots)
        self.register_buffer("start", float64(knots[:-1]))
        self.register_buffer("per_gap", float64(1.0 / gaps))
        for name, values in (("mean", mean), ("std", std)):
            left, right = _low_rank(np.diff(values, axis=0), values - values[0], unit)
            self.register_buffer(f"{name}_first", float64(values[0]).float())
            self.register_buffer(f"{name}_steps", float64(left).float())
            self.register_buffer(f"{name}_shapes", float64(right).float())

    def forward(self, c: Tensor) -> tuple[Tensor, Tensor]:
        share = torch.clamp((c.double()[:, None] - self.start) * self.per_gap, 0.0, 1.0).float()
        mean = self.mean_first + torch.matmul(torch.matmul(share, self.mean_steps), self.mean_shapes)
        std = self.std_first + torch.matmul(torch.matmul(share, self.std_steps), self.std_shapes)
        return mean, std


class DirectNetwork(nn.Module):
    """One hidden layer of tanh units spread along the warp coordinate, its output layer solved by least squares.

    Attributes: ``units``, ``pruned`` (units whose output weights show in no spectrum).
    """

    __getattr__: Callable[[str], Any]  # buffers are tensors, of which the type checker knows nothing

    def __init__(
        self, warps: Warps, mixture: Tensor, knots: np.ndarray, mean: np.ndarray, std: np.ndarray, unit: float
    ) -> None:
        super().__init__()
        self.warps = warps
        self.register_buffer("mixture", mixture.double().clone())
        u = (self.mixture * warps(float64(knots))).sum(0)
        low, high = float(u.min()), float(u.max())
        width = (high - low) / UNITS
        self.register_buffer("place", torch.linspace(low - 2 * width, high + 2 * width, UNITS, dtype=torch.float64))
        self.sharpness = 0.25 / width
        features = self._features(u)
        target = float64(np.concatenate([mean, std], axis=1))
        normal = features.T @ features
        ridge = _RIDGE * normal.diagonal().mean() * torch.eye(len(normal), dtype=torch.float64)
        weights = torch.linalg.solve(normal + ridge, features.T @ target)
        alive = weights[:UNITS].abs().amax(1) > 1e-8 * unit
        self.units, self.pruned = UNITS, int((~alive).sum())
        self.register_buffer("place", self.place[alive])
        weights = torch.cat([weights[:UNITS][alive], weights[UNITS:]])
        self.register_buffer("mean_weights", weights[:, : mean.shape[1]].float())
        self.register_buffer("std_weights", weights[:, mean.shape[1] :].float())

    def _features(self, u: Tensor) -> Tensor:
        inside = torch.tanh(self.sharpness * (u[:, None] - self.place))
        return torch.cat([inside, u[:, None], torch.ones_like(u[:, None])], 1)

    def forward(self, c: Tensor) -> tuple[Tensor, Tensor]:
        features = self._features((self.mixture * self.warps(c.double())).sum(0)).float()
        return torch.matmul(features, self.mean_weights), torch.matmul(features, self.std_weights)


@torch.no_grad()
def distilled(model: GeodesicModel, full: nn.Module, low: float, high: float) -> dict[str, nn.Module]:
    """A table and a network that say what ``full`` says between ``low`` and ``high``."""
    unit = float(np.ptp(model.gp.level_means))
    dense = _dense(model.gp.levels, low, high)
    knots = _knots(dense, evaluated(full, dense)[0], model.gp.levels)
    mean, std = evaluated(full, knots)
    gp = model.gp
    warps = Warps(gp.origin, gp.span, float(gp.levels[0]), float(gp.levels[-1]))
    network = DirectNetwork(warps, float64(gp.warp_weights)[:, None], knots, mean, std, unit)
    return {"table": Table(knots, mean, std, unit), "network": network}


@torch.no_grad()
def evaluated(module: nn.Module, concentrations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and std ``[C, W]`` float64 of a module, in batches."""
    parts = [module(torch.from_numpy(part.astype(np.float32))) for part in np.array_split(concentrations, 64)]
    mean, std = (torch.cat(column).double().numpy() for column in zip(*parts, strict=True))
    return mean, std


def _dense(levels: np.ndarray, low: float, high: float) -> np.ndarray:
    """Points of the range, closing in on the lowest level, where saturating responses have everything."""
    fan = levels[0] + (high - levels[0]) * np.logspace(-6.0, 0.0, 512)
    points = np.concatenate([np.linspace(low, high, 1024), fan, levels])
    return np.unique(points[(points >= low) & (points <= high)].astype(np.float32)).astype(np.float64)


def _knots(x: np.ndarray, y: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Where linear interpolation errs alike everywhere: knots with a density of √|y″| (de Boor 2001, ch. XII)."""
    slope = np.diff(y, axis=0) / np.diff(x)[:, None]
    bend = np.abs(np.diff(slope, axis=0)).max(1) / (0.5 * (x[2:] - x[:-2]))
    density = np.sqrt(np.concatenate([bend[:1], bend, bend[-1:]]))
    density = density + 0.1 * np.sum(density * np.gradient(x)) / (x[-1] - x[0])
    total = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(x))])
    spread = np.interp(np.linspace(0.0, total[-1], KNOTS), total, x)
    knots = np.concatenate([spread, levels[(levels > x[0]) & (levels < x[-1])], x[[0, -1]]])
    knots = np.unique(knots.astype(np.float32)).astype(np.float64)
    return knots[np.concatenate([[True], np.diff(knots) > 1e-9 * (x[-1] - x[0])])]


def _low_rank(steps: np.ndarray, values: np.ndarray, unit: float) -> tuple[np.ndarray, np.ndarray]:
    """steps ≈ left · right, right spanning the rows of ``values`` to within ``_RANK_ERROR``."""
    _, _, right = np.linalg.svd(values, full_matrices=False)
    for rank in range(1, len(right) + 1):
        error = np.abs(values - (values @ right[:rank].T) @ right[:rank]).max()
        if error <= _RANK_ERROR * unit:
            break
    return steps @ right[:rank].T, right[:rank]
