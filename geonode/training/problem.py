"""From standards to tensors: what M models are trained on, as one stacked problem.

A *fold* is a set of training levels with its geodesic GP. The GP gives the warp (evidence-weighted), smoothed spectra at
the levels, and spectra at collocation concentrations over the whole range that may be asked for, extrapolation
included, weighted by their certainty. Folds of different size are padded with points of weight zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from geonode.calibration import GeodesicGP
from geonode.config import GeodesicConfig
from geonode.flow import CoupledSpectralODE, SpectralFlow, linear_warp
from geonode.metric import WarpMetric

_SMALLEST = np.finfo(float).tiny


@dataclass
class Problem:
    """M stacked training problems over one wavelength grid; all tensors live on one device.

    levels [M, n] (user units, padded by repeating the last), spectra [M, n, W] smoothed and scaled, counts [M] of real
    levels, points [M, P] ascending warp coordinates with target [M, P, W] and weight [M, P]; centre [M, 1, W] and
    scale [M, 1, 1] turn scaled spectra into user units; low, high [M] the range of the table.
    """

    wavelengths: Tensor
    warp: WarpMetric
    low: Tensor
    high: Tensor
    levels: Tensor
    counts: Tensor
    measured: Tensor
    spectra: Tensor
    points: Tensor
    target: Tensor
    weight: Tensor
    centre: Tensor
    scale: Tensor

    @property
    def models(self) -> int:
        """M."""
        return len(self.levels)

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Problem:
        """A copy on ``device``; spectra and weights in ``dtype``, coordinates in float64."""
        exact = {"wavelengths", "low", "high", "levels", "counts", "points"}
        moved = {}
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                keep = name in exact
                # float64 first moves, then casts: MPS has no float64, so there everything is float32
                moved[name] = value.to(device=device, dtype=value.dtype if keep else dtype)
            else:
                moved[name] = value.to(device)
        return Problem(**moved)

    def build_model(self, config: GeodesicConfig, seed: int) -> CoupledSpectralODE:
        """A fresh `CoupledSpectralODE` for this problem, its wavelength embedding started from the targets."""
        ode = CoupledSpectralODE(self.wavelengths, config, self.warp, self.models, self.low, self.high, seed)
        ode = ode.to(self.target.device)
        ode.flow.set_embedding(self.target)
        if isinstance(ode.flow, SpectralFlow):
            ode.flow.solve_output(self.points, self.target, self.weight)
        return ode


def asked_range(levels: np.ndarray, margin: float, targets: np.ndarray | None = None) -> tuple[float, float]:
    """Concentrations a model must serve: the calibrated range, ``margin`` of it to either side (not below zero where
    no standard is), and the targets."""
    span = levels.max() - levels.min()
    low, high = levels.min() - margin * span, levels.max() + margin * span
    if levels.min() >= 0:
        low = max(low, 0.0)
    if targets is not None and len(targets):
        low, high = min(low, float(np.min(targets))), max(high, float(np.max(targets)))
    return float(low), float(high)


def build_problem(
    gps: Sequence[GeodesicGP],
    wavelengths: np.ndarray,
    config: GeodesicConfig,
    targets: Sequence[np.ndarray] | None = None,
) -> Problem:
    """Stack one training problem per fitted GP (which holds its fold's levels and their mean spectra).

    Args:
        gps: M fitted GPs.
        wavelengths: [W].
        targets: per model, concentrations that will be asked for (widens the range served), or None.
    """
    warp = _warp(gps, config)
    rows = [_rows(m, gp, warp, config, None if targets is None else targets[m]) for m, gp in enumerate(gps)]
    stacked = {name: _stack([row[name] for row in rows], zero=name == "weight") for name in rows[0]}
    edges = stacked.pop("edges")
    # a hair beyond the last point, so that rounding never puts a point outside its own table
    low = edges[:, 0].clamp(max=-1.0) - 1e-6
    high = edges[:, 1].clamp(min=1.0) + 1e-6
    return Problem(
        wavelengths=torch.as_tensor(np.asarray(wavelengths, dtype=np.float64)),
        warp=warp,
        low=low,
        high=high,
        counts=torch.tensor([len(gp.levels) for gp in gps]),
        **stacked,
    )


def _warp(gps: Sequence[GeodesicGP], config: GeodesicConfig) -> WarpMetric:
    """The evidence-weighted warp of every model, [M]; without a warp, the linear scale of every model."""
    linear = linear_warp(0.0, 1.0).weights
    weights = [torch.from_numpy(gp.warp_weights) if config.warp else linear for gp in gps]
    origin = [gp.origin if config.warp else gp.levels[0] for gp in gps]
    ends = [torch.tensor([float(x) for x in row], dtype=torch.float64) for row in _ends(gps, origin)]
    return WarpMetric.from_weights(torch.stack(weights), c0=ends[0], c_min=ends[1], c_max=ends[2], trainable=False)


def _ends(gps: Sequence[GeodesicGP], origin: list[float]) -> tuple[list[float], list[float], list[float]]:
    return origin, [gp.levels[0] for gp in gps], [gp.levels[-1] for gp in gps]


def _rows(
    m: int, gp: GeodesicGP, warp: WarpMetric, config: GeodesicConfig, targets: np.ndarray | None
) -> dict[str, Tensor]:
    """One model's levels, points and targets, float64, before padding."""
    low, high = asked_range(gp.levels, config.margin, targets)
    one = _select(warp, m)
    concentrations = gp.levels
    if config.teacher and config.collocation:
        ends = one.scaled(torch.tensor([low, high], dtype=torch.float64))
        spread = torch.linspace(0.0, 1.0, config.collocation, dtype=torch.float64)
        between = one.from_scaled(ends[0] + (ends[1] - ends[0]) * spread).numpy().clip(low, high)
        concentrations = np.unique(np.concatenate([gp.levels, between]))
    prediction = gp.predict(concentrations)
    at_levels = np.searchsorted(concentrations, gp.levels)
    target = prediction.mean.copy()
    if not config.teacher:
        target = gp.level_means.copy()
    centre = gp.level_means.mean(0)
    scale = max(float(np.sqrt(np.mean((gp.level_means - centre) ** 2))), _SMALLEST)
    variance = (prediction.scale**2).mean(1)
    typical = np.median(variance)
    source = prediction.mean[at_levels] if config.teacher else gp.level_means
    return {
        "edges": one.scaled(torch.tensor([low, high], dtype=torch.float64)),
        "levels": torch.from_numpy(gp.levels.copy()),
        "measured": torch.from_numpy((gp.level_means - centre) / scale),
        "spectra": torch.from_numpy((source - centre) / scale),
        "points": one.scaled(torch.from_numpy(concentrations)),
        "target": torch.from_numpy((target - centre) / scale),
        "weight": torch.from_numpy(typical / np.maximum(variance + typical, _SMALLEST)),
        "centre": torch.from_numpy(centre[None]),
        "scale": torch.tensor([[scale]], dtype=torch.float64),
    }


def _select(warp: WarpMetric, m: int) -> WarpMetric:
    """Model m of a stacked warp as a warp of its own."""
    return WarpMetric(warp.logits[m], warp.c0[m], warp.c_min[m], warp.c_max[m], trainable=False)


def _stack(rows: list[Tensor], zero: bool) -> Tensor:
    """Stack rows of unequal length: padding repeats the last entry, or is zero (weights)."""
    longest = max(len(row) for row in rows)
    padded = []
    for row in rows:
        rest = row[-1:].expand(longest - len(row), *row.shape[1:])
        padded.append(torch.cat([row, torch.zeros_like(rest) if zero else rest]))
    return torch.stack(padded)
