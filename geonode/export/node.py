"""The neural flow in closed form: its integral is a sum of ln cosh, its arc length a Chebyshev series."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from geonode.errors import InputError
from geonode.export.closed_form import GPSpectra, Warps, float64
from geonode.export.pretrained import PretrainedSpectra
from geonode.model import GeodesicModel
from geonode_runtime.wording import argument

SMALL_OMEGA = 1e-3
"""A unit with a smaller |ω| bends by less than 1e-7 over the range beyond its second-order expansion."""
DEAD = 1e-8
"""A unit that departs from a constant by less than this fraction of the spectral range shows in no spectrum."""


def chebyshev(x: Tensor, doublings: int) -> Tensor:
    """T_0 … T_{2^doublings} at x [..., 1], stacked last: T_{b+j} = 2 T_b T_j − T_{b−j}."""
    terms = torch.cat([torch.ones_like(x), x], dim=-1)
    for _ in range(doublings):
        terms = torch.cat([terms, 2.0 * terms[..., -1:] * terms[..., 1:] - terms.flip(-1)[..., 1:]], dim=-1)
    return terms


class NodeSpectra(nn.Module):
    """Mean and standard deviation of the neural ensemble: concentrations [C] float32 → two of [C, W] float32.

    With u the warp coordinate, ŝ(u, λ) = Σ_k σ_k(λ) T_k(x(u)) the arc length and P the integral of the flow,

        P(ŝ) = Σ_j (a_j/ω_j) ln cosh(ω_j ŝ + β_j) + a₀ ŝ
        A(c) = centre + scale · [ Σ_i w_i(c) (A_i − P(ŝ_i)) + P(ŝ(c)) ]

    w_i falls with the arc length from standard i, as in :func:`geonode.training.ensemble.predict`. The variance is the
    Gaussian process's and that between the seeds; of a model with folds it is that of
    :class:`geonode.calibration.gp.node_process.NodeProcess`, (q(c) + N) times a shape over wavelengths in place of the
    process's. Dead units are left
    out: those that over the served range are constants at every wavelength; the constant goes into a₀.

    Attributes: ``units`` (all), ``pruned`` (left out).
    """

    __getattr__: Callable[[str], Any]  # buffers are tensors, of which the type checker knows nothing

    @torch.no_grad()
    def __init__(self, model: GeodesicModel, prune: bool = True) -> None:
        super().__init__()
        ode, problem = model.ode, model.problem
        if ode is None or problem is None:
            raise InputError(
                f"This model was fitted with {argument('predictor', 'gp')} and has no neural flow; export it as 'gp'."
            )
        if ode.flow.tanh_units() is None:
            raise InputError(
                f"A flow of kind '{model.config.flow.name}' depends on its path and has no closed form to export; "
                f"export the Gaussian process instead ({argument('predictor', 'gp')}), or fit with "
                f"{argument('flow', 'path_independent')}."
            )
        self.gp = GPSpectra(model.gp)
        self.members = ode.models
        warp = ode.warp
        self.warps = Warps(*(float(v.reshape(-1)[0]) for v in (warp.c0, warp.c_max - warp.c0, warp.c_min, warp.c_max)))
        self.register_buffer("mixture", warp.weights.reshape(-1, 13)[0][:, None].clone())
        self._arc_length(ode)
        levels = problem.level_coordinates[0, : int(problem.counts[0])].double()
        s_levels = self._arc(levels)  # [M, n, W] float32
        self.register_buffer("level_arc", self._mean_arc(levels))  # [M, n]
        self._flow(ode, model, prune)
        centre, scale = problem.centre.double(), problem.scale.double()
        offset = problem.spectra[:, : len(levels)].double() - self._integral(s_levels).double()
        process = None if model.ensemble is None else model.ensemble.process
        self.held_out = process is not None
        if process is not None:
            self.register_buffer("shape", float64(process._shape()).float())
            self.register_buffer("noise_square", float64(process.noise_square))
        self.register_buffer("offset", offset.float())
        self.register_buffer("centre", centre.float())
        self.register_buffer("scale", scale.float())

    def _arc_length(self, ode) -> None:
        density = ode.on_table().density.double()
        series = ode.table.coefficients(density)  # [M, T + 1, W] of S
        series = 2.0 * series / ode.table.length(density)
        series[:, 0] -= 1.0
        self.doublings = math.ceil(math.log2(series.shape[1] - 1))
        rows = 2**self.doublings + 1 - series.shape[1]
        series = torch.cat([series, series.new_zeros(len(series), rows, series.shape[2])], 1)
        self.low, self.high = float(ode.table.low[0]), float(ode.table.high[0])
        self.register_buffer("ends", float64([self.low, self.high]))
        self.register_buffer("series", series.float())
        self.register_buffer("mean_series", series.mean(-1)[..., None])  # [M, 2^d + 1, 1] float64

    def _basis(self, u: Tensor) -> Tensor:
        x = (2.0 * u - (self.ends[0] + self.ends[1])) / (self.ends[1] - self.ends[0])
        return chebyshev(x[:, None], self.doublings)

    def _arc(self, u: Tensor) -> Tensor:
        return torch.matmul(self._basis(u).float()[None], self.series)

    def _mean_arc(self, u: Tensor) -> Tensor:
        return torch.matmul(self._basis(u)[None], self.mean_series)[..., 0]

    def _flow(self, ode, model: GeodesicModel, prune: bool) -> None:
        units = ode.flow.tanh_units()
        beta, a, linear = units.beta.double(), units.a.double(), units.a0.double()  # [M, W, H] and a₀ [M, W]
        omega = units.omega.double()[:, None]  # [M, 1, H]
        quadratic = torch.zeros_like(linear)
        small = omega.abs() < SMALL_OMEGA
        slope = torch.tanh(beta)
        linear = linear + torch.where(small, a * slope, 0.0).sum(-1)
        quadratic = quadratic + torch.where(small, 0.5 * a * omega * (1.0 - slope * slope), 0.0).sum(-1)
        a = torch.where(small, 0.0, a)
        self.units = a.shape[0] * a.shape[2]
        a, constant, dead = self._without_dead(a, omega, beta, model, prune)
        linear = linear + constant
        keep = max(int((~dead).sum(1).max()), 1)
        order = torch.argsort(dead.int(), dim=1, stable=True)[:, :keep]  # the living first; stacks need equal numbers
        self.pruned = int(dead.sum())
        rows = order[:, None].expand(-1, a.shape[1], -1)
        omega = torch.where(small, 1.0, omega).expand_as(a).gather(2, rows)
        self.register_buffer("omega", omega[:, None, :1].transpose(-1, -2).float())  # [M, 1, H, 1]
        self.register_buffer("beta", beta.gather(2, rows)[:, None].transpose(-1, -2).float())  # [M, 1, H, W]
        self.register_buffer("height", (a.gather(2, rows) / omega)[:, None].transpose(-1, -2).float())
        self.register_buffer("linear", linear[:, None].float())
        self.register_buffer("quadratic", quadratic[:, None].float())

    def _without_dead(self, a: Tensor, omega: Tensor, beta: Tensor, model: GeodesicModel, prune: bool):
        """a with dead units zero, what they add to a₀ [M, W], and which they are [M, H]."""
        ends = self._arc(torch.linspace(self.low, self.high, 33, dtype=torch.float64)).double()
        span = (ends.amax(1) - ends.amin(1))[..., None]
        values = torch.stack([torch.tanh(omega * ends[:, k, :, None] + beta) for k in range(ends.shape[1])])
        middle = 0.5 * (values.amax(0) + values.amin(0))
        reach = (a.abs() * (values.amax(0) - values.amin(0)) * span).amax(1)  # [M, H]
        means = float64(model.gp.level_means)
        unit = float((means.max() - means.min()) / model.problem.scale.double().min())  # type: ignore[union-attr]
        dead = (reach <= DEAD * unit) if prune else torch.zeros_like(reach, dtype=torch.bool)
        constant = torch.where(dead[:, None], a * middle, 0.0).sum(-1)
        return torch.where(dead[:, None], 0.0, a), constant, dead

    def _integral(self, s: Tensor) -> Tensor:
        """P at ŝ [M, C, W]."""
        inside = torch.abs(self.omega * s[:, :, None] + self.beta)  # [M, C, H, W]
        log_cosh = inside + torch.log(1.0 + torch.exp(-2.0 * inside))
        return (self.height * log_cosh).sum(2) + s * (self.linear + s * self.quadratic)

    def forward(self, c: Tensor) -> tuple[Tensor, Tensor]:
        u = (self.mixture * self.warps(c.double())).sum(0)
        u = torch.minimum(torch.maximum(u, self.ends[0]), self.ends[1])
        distance = torch.abs(self._mean_arc(u)[:, :, None] - self.level_arc[:, None])  # [M, C, n]
        weight = torch.ones_like(distance) / (distance + 0.02)
        weight = (weight / weight.sum(-1, keepdim=True)).float()
        spectra = self.centre + self.scale * (torch.matmul(weight, self.offset) + self._integral(self._arc(u)))
        mean = spectra.mean(0)
        apart = spectra - mean
        return mean, torch.sqrt(self._variance(c, (apart * apart).sum(0) / max(self.members - 1, 1)))

    def _variance(self, c: Tensor, between: Tensor) -> Tensor:
        """Of one further spectrum [C, W]; ``between``: that of the seeds."""
        if not self.held_out:
            return self.gp.moments(c)[1] + between
        error = (self.gp.mean_and_square(c)[1] + self.noise_square).float()
        return self.gp.factor * (error * self.shape + between)


def spectra_module(model: GeodesicModel, predictor: str | None = None) -> GPSpectra | NodeSpectra | PretrainedSpectra:
    """The spectra of a fitted model as a module: that of ``predictor`` ("gp" or "node"), None for the fitted one.

    Raises:
        InputError: a predictor that is not known, or has no closed form here.
    """
    predictor = predictor or model.config.predictor
    if predictor == "gp":
        return GPSpectra(model.gp)
    if predictor == "node":
        return NodeSpectra(model) if model.flow is None else PretrainedSpectra(model)
    raise InputError(f"{argument('predictor', predictor)} cannot be exported; choose node or gp.")


def spectral_range(model: GeodesicModel) -> float:
    """Largest less smallest value of the standards' mean spectra: what errors of spectra are measured in."""
    return float(np.ptp(model.gp.level_means))
