"""From standards to tensors: what M models are trained on, as one stacked problem.

A *fold* is a set of training levels with its geodesic GP. The GP gives the warp (evidence-weighted), smoothed
spectra at the levels, and spectra at collocation concentrations over the whole range that may be asked for,
extrapolation included, weighted by their certainty. Folds of different size are padded with points of weight zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from geonode.calibration import GeodesicGP
from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset
from geonode.flow import CoupledSpectralODE, linear_warp
from geonode.geodesic.chebyshev import chebyshev_nodes
from geonode.metric import WarpMetric

_SMALLEST = np.finfo(float).tiny
DENSE = 256
"""Concentrations, at the least, among which pairs are drawn where the teacher speaks."""


@dataclass
class Problem:
    """M stacked training problems over one wavelength grid; all tensors live on one device, the warp on the host.

    levels [M, n] (user units, padded by repeating the last) with warp coordinates level_coordinates [M, n] and counts
    [M] of real levels; spectra [M, n, W] at the levels, smoothed; points [M, P] ascending warp coordinates with target
    [M, P, W] and weight [M, P]; centre [M, 1, W] and scale [M, 1, 1] turn scaled spectra into user units; low, high
    [M] the range of the table; gamma [M, T] Christoffel symbol of the pull-back metric at its nodes, where asked for.
    """

    wavelengths: Tensor
    warp: WarpMetric
    low: Tensor
    high: Tensor
    levels: Tensor
    level_coordinates: Tensor
    counts: Tensor
    spectra: Tensor
    points: Tensor
    target: Tensor
    weight: Tensor
    centre: Tensor
    scale: Tensor
    gamma: Tensor | None = None

    @property
    def models(self) -> int:
        """M."""
        return len(self.levels)

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Problem:
        """A copy on ``device``; spectra and weights in ``dtype``, coordinates in float64 where the device has it."""
        exact = {"wavelengths", "low", "high", "levels", "level_coordinates", "points"}
        host = {"warp", "wavelengths", "low", "high", "levels"}
        coordinate = torch.float32 if torch.device(device).type == "mps" else torch.float64
        moved = {}
        for name, value in vars(self).items():
            if isinstance(value, Tensor) and name not in host:
                kind = coordinate if name in exact else dtype
                value = value.to(kind if value.is_floating_point() else value.dtype).to(device)
            moved[name] = value
        return Problem(**moved)

    def coordinates(self, concentrations: Tensor) -> Tensor:
        """Warp coordinates [M, C] of concentrations [M, C] (user units), on the problem's device."""
        return self.warp.scaled(concentrations.cpu().double()).to(self.points)

    def build_model(self, config: GeodesicConfig, seed: int) -> CoupledSpectralODE:
        """A fresh `CoupledSpectralODE` on the problem's device, in its dtype, started from its targets as its flow does
        (`geonode.flow.Flow.start_from`); the rest is drawn from ``seed``. ``config`` says the choices of the model.
        """
        warp = deepcopy(self.warp)  # the model's goes to its device, the problem's stays on the host
        ode = CoupledSpectralODE(self.wavelengths, config, warp, self.models, self.low, self.high, seed)
        host = self.to("cpu", torch.float64)
        ode.place("cpu", self.target.dtype)
        ode.flow.start_from(host.points, host.target, host.weight)
        return ode.place(self.target.device, self.target.dtype)


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


def fit_gp(dataset: SpectralDataset) -> GeodesicGP:
    """The geodesic GP of a dataset's level means, its replicates as noise."""
    deviations = dataset.replicate_deviations() if len(dataset.spectra) > len(dataset.levels) else None
    return GeodesicGP().fit_levels(dataset.levels, dataset.level_means(), deviations)


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
        config: choices of points, warp, teacher and losses.
        targets: per model, concentrations that will be asked for (widens the range served), or None.
    """
    warp = _warp(gps, config)
    rows = [_rows(gp, _select(warp, m), config, None if targets is None else targets[m]) for m, gp in enumerate(gps)]
    stacked = {name: _stack([row[name] for row in rows], zero=name == "weight") for name in rows[0]}
    edges = stacked.pop("edges")
    problem = Problem(
        wavelengths=torch.from_numpy(np.array(wavelengths, dtype=np.float64)),
        warp=warp,
        # a hair beyond the last point, so that rounding never puts a point outside its own table
        low=edges[:, 0].clamp(max=-1.0) - 1e-6,
        high=edges[:, 1].clamp(min=1.0) + 1e-6,
        counts=torch.tensor([len(gp.levels) for gp in gps]),
        **stacked,
    )
    if config.loss.weights["christoffel"] > 0.0:
        problem.gamma = torch.stack([_pullback_gamma(gp, problem, m, config) for m, gp in enumerate(gps)])
    return problem


def _pullback_gamma(gp: GeodesicGP, problem: Problem, m: int, config: GeodesicConfig) -> Tensor:
    """Γ = ½ d ln g/du [T] of the pull-back metric g = Σ_λ (dA/du)² of the GP's mean spectrum, by central differences.

    g floors at 1e-4 of its mean, so that a turning point of the whole spectrum does not ask for an infinite Γ.
    """
    one, low, high = _select(problem.warp, m), float(problem.low[m]), float(problem.high[m])
    nodes = chebyshev_nodes(config.metric.table_nodes, low, high)
    step = 1e-3 * (high - low)
    middle = nodes.clamp(low + step, high - step)
    rows = torch.cat([middle - step, middle, middle + step])
    spectra = torch.from_numpy(gp.predict(one.from_scaled(rows).numpy()).mean).reshape(3, len(nodes), -1)
    first = (spectra[2] - spectra[0]) / (2.0 * step)
    second = (spectra[2] - 2.0 * spectra[1] + spectra[0]) / step**2
    g = first.square().sum(1)
    return (first * second).sum(1) / g.clamp_min(1e-4 * float(g.mean()))


def _warp(gps: Sequence[GeodesicGP], config: GeodesicConfig) -> WarpMetric:
    """The evidence-weighted warp of every model, [M]; without a warp, the linear scale of every model."""
    linear = linear_warp(0.0, 1.0).weights
    weights = [torch.from_numpy(gp.warp_weights) if config.metric.warp else linear for gp in gps]
    origin = [gp.origin if config.metric.warp else gp.levels[0] for gp in gps]
    c0, c_min, c_max = (
        torch.tensor([float(x) for x in row], dtype=torch.float64)
        for row in (origin, [gp.levels[0] for gp in gps], [gp.levels[-1] for gp in gps])
    )
    return WarpMetric.from_weights(torch.stack(weights), c0=c0, c_min=c_min, c_max=c_max, trainable=False)


def _rows(gp: GeodesicGP, warp: WarpMetric, config: GeodesicConfig, targets: np.ndarray | None) -> dict[str, Tensor]:
    """One model's levels, points and targets, float64, before padding."""
    low, high = asked_range(gp.levels, config.training.margin, targets)
    edges = warp.scaled(torch.tensor([low, high], dtype=torch.float64))
    concentrations = gp.levels
    if config.training.teacher and config.training.collocation:
        # pairs are drawn among the points, so flows that need pairs get a dense set of them
        count = config.training.collocation if config.all_pairs else max(config.training.collocation, DENSE)
        spread = torch.linspace(0.0, 1.0, count, dtype=torch.float64)
        between = warp.from_scaled(edges[0] + (edges[1] - edges[0]) * spread).numpy().clip(low, high)
        concentrations = np.unique(np.concatenate([gp.levels, between]))
    prediction = gp.predict(concentrations)
    at_levels = np.searchsorted(concentrations, gp.levels)
    target = prediction.mean if config.training.teacher else gp.level_means
    centre = gp.level_means.mean(0)
    scale = max(float(np.sqrt(np.mean((gp.level_means - centre) ** 2))), _SMALLEST)
    variance = (prediction.scale**2).mean(1)
    typical = np.median(variance)
    return {
        "edges": edges,
        "levels": torch.from_numpy(gp.levels.copy()),
        "level_coordinates": warp.scaled(torch.from_numpy(gp.levels.copy())),
        "spectra": torch.from_numpy((target[at_levels] - centre) / scale),
        "points": warp.scaled(torch.from_numpy(concentrations)),
        "target": torch.from_numpy((target - centre) / scale),
        "weight": torch.from_numpy(typical / np.maximum(variance + typical, _SMALLEST)),
        "centre": torch.from_numpy(centre[None].copy()),
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
