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
from geonode.flow.base import FLOWS, Flow, FlowPoint
from geonode.flow.config import FlowConfig
from geonode.flow.coordinates import equal_where, linear_warp, scaled_wavelengths
from geonode.flow.parts import OdeConfig, OdeDefaults, build_flow, seed_of
from geonode.flow.path import FlowPath
from geonode.flow.solvers import Solver
from geonode.geodesic import GeodesicSolution, shoot
from geonode.geodesic.config import PathConfig
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
        flow: a flow for several analytes; None: the one that ``config`` names, or a `GradientFlow` where it names the
            default for one analyte.

    Raises:
        InputError: fewer than two analytes or wavelengths, not one warp per analyte, or a flow or metric for another
            number of analytes.
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
        flow: Flow | None = None,
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
        if self.metric.dim != dim:
            raise InputError(f"{type(self.metric).__name__} is a metric of {self.metric.dim} analytes, not of {dim}.")
        if flow is None:
            default = config.flow.name == FlowConfig.name or not FLOWS[config.flow.name].needs_training
            named = config.flow.replace(name="gradient") if default else config.flow
            flow = build_flow(named, self.wavelength, 1, seed, dim)
        self.flow = flow

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
        return self.shoot(self.to_x(start), self.to_x(end))

    def forward(self, source: Tensor, start: Tensor, end: Tensor, solver: Solver | str | None = None) -> Tensor:
        """Spectra [B, W] at ``end`` from ``source`` [B, W] at ``start`` (both [B, D], user units).

        Args:
            source: [B, W] spectra at the start.
            start, end: [B, D] concentrations in user units.
            solver: a `Solver` or its name. ``potential`` takes H(b) − H(a); ``rk4``, ``dopri5`` and ``adjoint``
                integrate the whole state along the geodesics found by shooting and must agree with it. None takes the
                configured one, and where that is the default the potential where the flow has one, else ``rk4``.

        Raises:
            InputError: a solver that needs arc length or a potential where there is none, or another shape.
        """
        named = None if self.path.solver == PathConfig.solver else self.path.solver  # the default is one analyte's
        chosen = Solver.of(self.path, solver or named or ("potential" if self.flow.path_independent else "rk4"))
        if chosen.closed_form and not chosen.needs_potential:
            raise InputError("several analytes have no closed-form path; choose solver potential, rk4 or dopri5.")
        x, y = self.to_x(start).to(source.dtype), self.to_x(end).to(source.dtype)
        return chosen.transport(_Transport(self, source, x, y))

    def shoot(self, x: Tensor, y: Tensor) -> GeodesicSolution:
        """Geodesics between warp coordinates ``x`` and ``y`` [B, D] at every wavelength: [B, W, D]."""
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


class _Transport:
    """`geonode.flow.solvers.Transport` of several analytes: source [B, W], warp coordinates x, y [B, D]."""

    def __init__(self, ode: MultiAnalyteODE, source: Tensor, x: Tensor, y: Tensor) -> None:
        self.ode, self.source, self.flow, self.x, self.y = ode, source, ode.flow, x, y
        self.arrived: Tensor | None = None

    def path(self) -> FlowPath:
        raise InputError("several analytes have no closed-form path; choose solver potential, rk4 or dopri5.")

    def potential_change(self) -> Tensor:
        both = self.flow.potential(torch.cat([self.x, self.y])[None])
        if both is None:
            raise InputError(f"{type(self.flow).__name__} has no potential; choose solver rk4 or dopri5.")
        before, after = both[0, : len(self.x)], both[0, len(self.x) :]
        # the rows of a matrix product may round differently: a path of no length must change nothing
        return equal_where((self.x == self.y).all(-1, keepdim=True), before, after) - before

    def fixed_steps(self, steps: int) -> Tensor | None:
        return None  # the kernels hold one analyte

    def initial_state(self) -> Tensor:
        """[B·W, 2D + 1]: position, velocity and absorbance."""
        solution = self.ode.shoot(self.x, self.y)
        # A failure is a value: its path stays where it is and its spectrum is NaN.
        self.arrived = solution.converged
        arrived = self.arrived[..., None]
        position = torch.where(arrived, solution.start, self.ode.metric.reference(solution.start))
        velocity = torch.where(arrived, solution.initial_velocity, 0.0)
        return torch.cat([position, velocity, self.source[..., None]], -1).flatten(0, 1)

    def right_hand_side(self, by_parameters: bool) -> nn.Module:
        return _RightHandSide(self.ode, self.ode.wavelength.to(self.x).expand(self.source.shape))

    def spectra(self, state: Tensor) -> Tensor:
        result = state[:, -1].reshape(self.source.shape)
        return result if self.arrived is None else torch.where(self.arrived, result, torch.nan)


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
        rate = self.ode.flow(FlowPoint(x[None], None, v[None], None))[0]
        return torch.cat([v, acceleration, rate[..., None]], -1).reshape(state.shape)
