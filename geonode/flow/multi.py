"""The coupled spectral neural ODE for several analytes, D ≥ 2: state [B·W, 2D + 1].

    dxᵏ/dt = vᵏ,   dvᵏ/dt = −Γᵏᵢⱼ(x, λ) vⁱ vʲ,   dA/dt = vⁱ ∂ᵢH(x, λ)

x are the analytes' warp coordinates (one closed-form warp each), in which curvature is real for D ≥ 2. The flow is a
gradient, so the spectrum depends on the end points alone whatever path the metric prescribes: H(b) − H(a).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from geonode.christoffel import make_rule
from geonode.errors import InputError
from geonode.flow.network import GradientFlow
from geonode.flow.ode import (
    OdeConfig,
    OdeDefaults,
    equal_where,
    linear_warp,
    scaled_wavelengths,
    seed_of,
    solver_of,
)
from geonode.geodesic import GeodesicSolution, shoot
from geonode.metric import Metric, MetricNetwork, WarpMetric


class MultiAnalyteODE(nn.Module):
    """Spectra transported over a plane (or more) of concentrations.

    Args:
        wavelengths: [W].
        dim: D ≥ 2 analytes.
        config: settings of metric, path and flow, of which a `GeodesicConfig` has all; None for the defaults.
        warps: one `WarpMetric` per analyte; None: linear on [0, 1].
        metric: a `Metric` of dimension D in the warp coordinates; None: a Cholesky-parametrised `MetricNetwork`.
        seed: of the initial weights; None takes ``config.seed``.

    Raises:
        InputError: fewer than two analytes or wavelengths, or not one warp per analyte.
    """

    wavelength: Tensor

    def __init__(
        self,
        wavelengths: Tensor,
        dim: int,
        config: OdeConfig | None = None,
        warps: Sequence[WarpMetric] | None = None,
        metric: Metric | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        config = config or OdeDefaults()
        seed = seed_of(config) if seed is None else seed
        if dim < 2:
            raise InputError(f"dim={dim}: MultiAnalyteODE needs two or more analytes; use CoupledSpectralODE for one.")
        scaled = scaled_wavelengths(wavelengths)
        if warps is not None and len(warps) != dim:
            raise InputError(f"{len(warps)} warps were given for {dim} analytes; give one per analyte.")
        self.config, self.path, self.dim = config, config.path, dim
        self.register_buffer("wavelength", scaled)
        self.warps = nn.ModuleList(warps if warps is not None else [linear_warp(0.0, 1.0) for _ in range(dim)])
        self.metric = metric or MetricNetwork(dim=dim, hidden=config.metric.hidden, seed=seed)
        self.flow = GradientFlow(len(scaled), dim, config.flow.hidden, config.flow.embedding, seed=seed)

    def to_x(self, concentration: Tensor) -> Tensor:
        """Warp coordinates [B, D] (float64) of ``concentration`` [B, D] in user units.

        Raises:
            InputError: another shape.
        """
        if concentration.ndim != 2 or concentration.shape[1] != self.dim:
            raise InputError(f"concentrations must be [B, {self.dim}], got {tuple(concentration.shape)}.")
        columns = concentration.double().unbind(-1)
        warps = cast(Iterable[WarpMetric], self.warps)
        return torch.stack([warp.scaled(c) for warp, c in zip(warps, columns, strict=True)], -1)

    def geodesics(self, start: Tensor, end: Tensor) -> GeodesicSolution:
        """Geodesics between ``start`` and ``end`` [B, D] (user units) at every wavelength, in warp coordinates
        [B, W, D]."""
        return self._shoot(self.to_x(start), self.to_x(end))

    def forward(self, source: Tensor, start: Tensor, end: Tensor, solver: str = "potential") -> Tensor:
        """Spectra [B, W] at ``end`` from ``source`` [B, W] at ``start`` (both [B, D], user units).

        ``solver="potential"`` takes H(b) − H(a); ``rk4``, ``dopri5`` and ``adjoint`` integrate the whole state along
        the geodesics found by shooting and must agree with it.
        """
        x, y = self.to_x(start).to(source.dtype), self.to_x(end).to(source.dtype)
        if solver == "potential":
            both = self.flow.potential(torch.cat([x, y])[None])[0]
            before, after = both[: len(x)], both[len(x) :]
            # the rows of a matrix product may round differently: a path of no length must change nothing
            after = equal_where((x == y).all(-1, keepdim=True), before, after)
            return source + (after - before)
        solution = self._shoot(x, y)
        # A failure is a value: its path stays where it is and its spectrum is NaN.
        arrived = solution.converged[..., None]
        position = torch.where(arrived, solution.start, self.metric.reference(solution.start))
        state = torch.cat([position, torch.where(arrived, solution.initial_velocity, 0.0), source[..., None]], -1)
        rhs = _RightHandSide(self, self.wavelength.to(x).expand(source.shape))
        result = solver_of(self.path, solver).integrate(rhs, state.flatten(0, 1))[:, -1].reshape(source.shape)
        return torch.where(solution.converged, result, torch.nan)

    def _shoot(self, x: Tensor, y: Tensor) -> GeodesicSolution:
        """Every pair [B, D] at every wavelength: [B, W, D]."""
        shape = (len(x), len(self.wavelength), self.dim)
        return shoot(
            self.metric,
            x[:, None].expand(shape),
            y[:, None].expand(shape),
            self.wavelength.to(x).expand(shape[:2]),
            newton_steps=self.path.newton_steps,
            ode_steps=self.path.ode_steps,
            christoffel=self.path.christoffel,
        )


class _RightHandSide(nn.Module):
    """dy/dt for y [B·W, 2D + 1]."""

    def __init__(self, ode: MultiAnalyteODE, wavelength: Tensor) -> None:
        super().__init__()
        self.ode, self.wavelength = ode, wavelength
        self.rule = make_rule(ode.path.christoffel, ode.metric)

    def forward(self, t: Tensor, state: Tensor) -> Tensor:
        dim = self.ode.dim
        y = state.reshape(*self.wavelength.shape, 2 * dim + 1)
        x, v = y[..., :dim], y[..., dim : 2 * dim]
        acceleration = self.rule.acceleration(self.ode.metric, x, v, self.wavelength)
        rate = self.ode.flow(x[None], v[None])[0]
        return torch.cat([v, acceleration, rate[..., None]], -1).reshape(state.shape)
