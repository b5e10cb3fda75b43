"""The coupled spectral neural ODE for one analyte: geodesic motion and absorbance, one state [B·W, 3].

    du/dt = p,   dp/dt = −Γ̃(u, λ) p²,   dA/dt = F            Γ̃ = ½ ∂ ln g̃/∂u

u is the warp coordinate (the closed-form warp's own arc length, scaled to [−1, 1] on the calibrated range), and
g̃ = exp m_θ(u, λ) the rest of the metric, so √g(c) = √g_warp(c)·exp(½ m_θ). Without a warp u is the linearly scaled
concentration and g̃ = softplus(network) + 0.1, the original recipe. docs/design.md §4 gives the reasons.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from geonode.config import GeodesicConfig
from geonode.errors import InputError
from geonode.flow import fused
from geonode.flow.arctable import ArcLengthTable
from geonode.flow.network import FreeFlow, SpectralFlow
from geonode.flow.solvers import integrate
from geonode.geodesic import shoot
from geonode.metric import WARPS, LogMetricNetwork, Metric, MetricNetwork, WarpMetric
from geonode_kernels import MetricWeights
from geonode_kernels._gauss import gauss_legendre
from geonode_kernels.velocity_flow import TableMatrices, path_points


class MetricOnTable(NamedTuple):
    """The metric of one step at every table node: ρ [M, T, W], and ln g̃ [M, T, W] for the losses."""

    density: Tensor
    log_metric: Tensor


class CoupledSpectralODE(nn.Module):
    """Spectra transported along geodesics of a learned metric on concentration, M models at once.

    Args:
        wavelengths: [W] grid (any unit; scaled to [−1, 1] inside).
        config: model choices; `GeodesicConfig()` for the defaults.
        warp: `WarpMetric` (one, or one with a model axis [M]); None: unit range [0, 1], no warp.
        models: M.
        low, high: [M] or a number: range of the arc-length table in the warp coordinate, ⊇ [−1, 1].
        seed: of the initial weights; None takes ``config.seed``.

    Raises:
        InputError: fewer than two wavelengths, or a table range that leaves out the calibrated range.
    """

    wavelength: Tensor

    def __init__(
        self,
        wavelengths: Tensor,
        config: GeodesicConfig | None = None,
        warp: WarpMetric | None = None,
        models: int = 1,
        low: Tensor | float = -1.0,
        high: Tensor | float = 1.0,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        config = config or GeodesicConfig()
        seed = config.seed if seed is None else seed
        self.config, self.models = config, models
        self.register_buffer("wavelength", scaled_wavelengths(wavelengths))
        self.warp = warp if warp is not None else linear_warp(0.0, 1.0)
        edges = [torch.as_tensor(v, dtype=torch.float64).expand(models).clone() for v in (low, high)]
        self.table = ArcLengthTable(*edges, nodes=config.table_nodes)
        self.metric = _metric(config, models, seed)
        self.flow = _flow(config, self.wavelength, models, seed)

    # ------------------------------------------------------------------ metric

    def log_metric(self, u: Tensor, index: Tensor | None = None) -> Tensor:
        """ln g̃ at u [M, P, W] or [M, P] (each point at every wavelength) → [M, P, W].

        ``index`` [K] picks wavelengths; None takes all of them.
        """
        u, wavelength = self._grid(u, index)
        if fused.metric_fits(self.metric, u):
            return fused.log_metric(self.metric, u, wavelength)
        return _log_metric(self.metric, self.models, u, wavelength)

    def log_metric_and_slope(self, u: Tensor, index: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """ln g̃ and ∂ ln g̃/∂u = 2 Γ̃, [M, P, W] each; arguments as for `log_metric`: ``u`` and ``index``."""
        u, wavelength = self._grid(u, index)
        return _log_metric_and_slope(self.metric, self.models, u, wavelength)

    def on_table(self, index: Tensor | None = None) -> MetricOnTable:
        """The metric at the table's nodes, once per step for every pair. ``index`` [K] picks wavelengths, None all."""
        log_metric = self.log_metric(self.table.nodes.to(self.wavelength), index)
        return MetricOnTable(torch.exp(0.5 * log_metric), log_metric)

    def metric_in_u(self) -> Metric:
        """g̃(u, λ) as a `Metric` in the warp coordinate, for shooting and Christoffel symbols."""
        return WarpCoordinateMetric(self)

    def _grid(self, u: Tensor, index: Tensor | None) -> tuple[Tensor, Tensor]:
        wavelength = self.wavelength if index is None else self.wavelength[index]
        if u.ndim == 2:
            u = u[:, :, None].expand(*u.shape, len(wavelength))
        return u, wavelength.to(u.dtype).expand(u.shape)

    # ------------------------------------------------------------------ transport

    def forward(self, source: Tensor, start: Tensor, end: Tensor, solver: str | None = None) -> Tensor:
        """Spectra at ``end`` from spectra at ``start``.

        Args:
            source: [B, W] or [M, B, W] spectra at the start, in the units the flow was trained in.
            start, end: [B] or [M, B] concentrations in user units.
            solver: ``quadrature``, ``rk4``, ``dopri5`` or ``adjoint``; None takes the configured one.

        Raises:
            InputError: a concentration outside the table, or shapes that do not fit together.
        """
        single = source.ndim == 2
        if single:
            source, start, end = source[None], start[None], end[None]
        if source.shape[:2] != start.shape or start.shape != end.shape or source.shape[2] != len(self.wavelength):
            raise InputError(
                f"source {tuple(source.shape)} must be [M, B, W] with start {tuple(start.shape)} and end "
                f"{tuple(end.shape)} both [M, B] and W = {len(self.wavelength)}."
            )
        u_start, u_end = self.to_u(start), self.to_u(end)
        self.table.require_inside(torch.cat([u_start, u_end], 1))
        # vectorised functions may round one value in two ways by its place: equal ends must stay equal
        result = self.transport(source, u_start, equal_where(end == start, u_start, u_end), solver=solver)
        return result[0] if single else result

    def to_u(self, concentration: Tensor) -> Tensor:
        """Warp coordinate [M, B] (float64) of ``concentration`` [M, B] in user units."""
        return self.warp.scaled(concentration.double())

    def transport(
        self,
        source: Tensor,
        start: Tensor,
        end: Tensor,
        index: Tensor | None = None,
        solver: str | None = None,
        table: MetricOnTable | None = None,
    ) -> Tensor:
        """`forward` in the warp coordinate: start, end [M, B] (float64), source and result [M, B, W].

        The ends must lie inside the table: that is not looked at here, for it would wait for the device every step.

        Args:
            source, start, end: as above.
            index: which wavelengths those of ``source`` are; None for all.
            solver: as for `forward`.
            table: what `on_table` gave for ``index``; None computes it.
        """
        solver = solver or self.config.solver
        table = table or self.on_table(index)
        if solver != "quadrature":
            return self._integrate(source, start, end, table, index, solver)
        s_start, s_end = self._ends(table, start, end, source)
        if isinstance(self.flow, SpectralFlow) and self.flow.nu is None:
            return source + self.flow.integral(s_start, s_end, index, nodes=self.config.nodes)
        return source + self._quadrature_in_time(s_start, s_end, table, index)

    def _ends(self, table: MetricOnTable, start: Tensor, end: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        both = self.table.phi(torch.cat([start, end], 1), check=False).to(table.density)
        s_hat = self.table.scaled(both, table.density).to(like.dtype)
        s_start, s_end = s_hat[:, : start.shape[1]], s_hat[:, start.shape[1] :]
        # two rows of one matrix product may round differently: a path of no length must have length zero exactly
        return s_start, equal_where((end == start)[..., None], s_start, s_end)

    def _quadrature_in_time(self, s_start: Tensor, s_end: Tensor, table: MetricOnTable, index: Tensor | None) -> Tensor:
        """∫ F dt with Gauss nodes in t, which is proportional to arc length: nothing divides by zero at a = b."""
        half_range = 0.5 * self.table.length(table.density)
        points = self.path_points(s_start, s_end, table, half_range)
        total = torch.zeros_like(s_start)
        for q, (x, weight) in enumerate(zip(*gauss_legendre(self.config.nodes), strict=True)):
            s_hat = s_start + 0.5 * (1.0 + x) * (s_end - s_start)
            density = torch.exp(0.5 * self.log_metric(points[:, q], index))
            velocity = half_range * (s_end - s_start) / density
            if isinstance(self.flow, SpectralFlow):
                rate = (s_end - s_start) * self.flow(s_hat, index, velocity)
            else:
                rate = self.flow(points[:, q], velocity, index)
            total = total + 0.5 * weight * rate
        return total

    def path_points(
        self, s_start: Tensor, s_end: Tensor, table: MetricOnTable, half_range: Tensor, backend: str = "auto"
    ) -> Tensor:
        """u [M, Q, B, W] at the Gauss nodes, with its derivative by the ends and the metric: one launch on a GPU.

        Args:
            s_start, s_end: ŝ [M, B, W]. table: as `on_table` gives it. half_range: S(1)/2 [M, 1, W].
            backend: ``auto``, ``triton`` or ``torch``.
        """
        fixed = table.density.detach()
        # points need the grid and the range alone; the matrices before them are for the fused loss
        matrices = TableMatrices(fixed, fixed, fixed, self.table.nodes, self.table.low, self.table.high)
        return path_points(
            torch.stack([s_start, s_end], 1),
            half_range[:, 0],
            self.table.coefficients(table.density),
            self.table.density_coefficients(fixed),
            self.table.at_nodes(fixed),
            matrices,
            self.config.nodes,
            backend=backend,
        )

    def _integrate(
        self, source: Tensor, start: Tensor, end: Tensor, table: MetricOnTable, index: Tensor | None, solver: str
    ) -> Tensor:
        """The general path: the full state [M·B·W, 3] through torchdiffeq (rk4, dopri5, adjoint)."""
        metric = self.metric_in_u()
        shape = source.shape
        u0 = start.to(source.dtype)[..., None].expand(shape).contiguous()
        u1 = end.to(source.dtype)[..., None].expand(shape).contiguous()
        _, wavelength = self._grid(u0, index)
        arrived = None
        if self.config.path == "shooting":
            solution = shoot(
                metric, u0, u1, wavelength, newton_steps=self.config.newton_steps, ode_steps=self.config.ode_steps
            )
            # A failure is a value: its path stays where it is and its spectrum is NaN.
            arrived = solution.converged
            velocity = torch.where(arrived, solution.initial_velocity, 0.0)
        else:
            s_start, s_end = self._ends(table, start, end, source)
            length = 0.5 * self.table.length(table.density) * (s_end - s_start)
            velocity = length / torch.exp(0.5 * self.log_metric(u0, index))
        rhs = _RightHandSide(self, None if solver == "adjoint" else table, index, shape)
        state = torch.stack([u0, velocity, source], -1).reshape(-1, 3)
        final = integrate(rhs, state, solver, steps=self.config.ode_steps, rtol=self.config.rtol, atol=self.config.atol)
        result = final[:, 2].reshape(shape)
        return result if arrived is None else torch.where(arrived, result, torch.nan)


class _RightHandSide(nn.Module):
    """dy/dt for y [M·B·W, 3]; an nn.Module so that the adjoint finds the networks' parameters."""

    def __init__(
        self, ode: CoupledSpectralODE, table: MetricOnTable | None, index: Tensor | None, shape: torch.Size
    ) -> None:
        super().__init__()
        self.ode, self.index, self.shape = ode, index, shape
        self.series = None if table is None else self._series(table)

    def _series(self, table: MetricOnTable) -> tuple[Tensor, Tensor]:
        return self.ode.table.coefficients(table.density), self.ode.table.length(table.density)

    def forward(self, t: Tensor, state: Tensor) -> Tensor:
        u, velocity, _ = state.reshape(*self.shape, 3).unbind(-1)
        log_metric, slope = self.ode.log_metric_and_slope(u, self.index)
        acceleration = -0.5 * slope * velocity.square()
        if isinstance(self.ode.flow, SpectralFlow):
            # The adjoint differentiates with respect to parameters only, so there the table is formed anew from them.
            coefficients, length = self.series or self._series(self.ode.on_table(self.index))
            s_hat = 2.0 * self.ode.table.evaluate(coefficients, u) / length - 1.0
            speed = 2.0 * torch.exp(0.5 * log_metric) * velocity / length
            rate = speed * self.ode.flow(s_hat, self.index, velocity)
        else:
            rate = self.ode.flow(u, velocity, self.index)
        return torch.stack([velocity, acceleration, rate], -1).reshape(-1, 3)


class WarpCoordinateMetric(Metric):
    """g̃(u, λ) of a `CoupledSpectralODE` as a `Metric` (D = 1): what shooting sees. Shares the networks' parameters.

    Positions and scaled wavelengths [M, ...].
    """

    def __init__(self, ode: CoupledSpectralODE) -> None:
        super().__init__(dim=1)
        self.network, self.stack = ode.metric, ode.models
        self.models = self.stack

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """g̃ [M, ...]."""
        return _log_metric(self.network, self.stack, c, wavelength).exp()

    def value_and_derivative(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """g̃ and ∂g̃/∂u [M, ...]."""
        log_metric, slope = _log_metric_and_slope(self.network, self.stack, c, wavelength)
        value = log_metric.exp()
        return value, value * slope

    def kernel_weights(self) -> MetricWeights | str:
        """See `Metric.kernel_weights`: those of the network."""
        return "the metric is flat: there is no network" if self.network is None else self.network.kernel_weights()


def _log_metric(
    network: LogMetricNetwork | MetricNetwork | None, models: int, u: Tensor, wavelength: Tensor | None
) -> Tensor:
    """ln g̃ for u [M, ...] and scaled wavelengths that broadcast against it."""
    u, wavelength = _broadcast(u, wavelength)
    if network is None:
        return torch.zeros_like(u)
    value = network(u.reshape(models, -1), wavelength.reshape(models, -1)).reshape(u.shape)
    return value.log() if isinstance(network, MetricNetwork) else value


def _log_metric_and_slope(
    network: LogMetricNetwork | MetricNetwork | None, models: int, u: Tensor, wavelength: Tensor | None
) -> tuple[Tensor, Tensor]:
    """ln g̃ and its slope in u, for u [M, ...] and scaled wavelengths that broadcast against it."""
    u, wavelength = _broadcast(u, wavelength)
    if network is None:
        return torch.zeros_like(u), torch.zeros_like(u)
    value, slope = network.value_and_derivative(u.reshape(models, -1), wavelength.reshape(models, -1))
    value, slope = value.reshape(u.shape), slope.reshape(u.shape)
    return (value.log(), slope / value) if isinstance(network, MetricNetwork) else (value, slope)


def _broadcast(u: Tensor, wavelength: Tensor | None) -> tuple[Tensor, Tensor]:
    if wavelength is None:
        raise InputError("This metric depends on the wavelength; pass wavelength=, scaled to [−1, 1].")
    shape = torch.broadcast_shapes(u.shape, wavelength.shape)
    return u.expand(shape), wavelength.expand(shape)


def equal_where(condition: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """``second``, with the value of ``first`` (and still its own derivative) where the condition holds."""
    return torch.where(condition, first.detach() + (second - second.detach()), second)


def scaled_wavelengths(wavelengths: Tensor) -> Tensor:
    """A grid [W] of any unit scaled to [−1, 1], in the default dtype: what networks see.

    Raises:
        InputError: not one list of at least two.
    """
    wavelengths = torch.as_tensor(wavelengths, dtype=torch.float64)
    if wavelengths.ndim != 1 or len(wavelengths) < 2:
        raise InputError(f"wavelengths must be a list of at least two, got shape {tuple(wavelengths.shape)}.")
    low, high = wavelengths.min(), wavelengths.max()
    return (2.0 * (wavelengths - low) / (high - low) - 1.0).to(torch.get_default_dtype())


def linear_warp(c_min: float, c_max: float) -> WarpMetric:
    """A warp that only scales [c_min, c_max] linearly to [−1, 1]: the original recipe's coordinate."""
    weights = torch.zeros(len(WARPS), dtype=torch.float64)
    weights[0] = 1.0
    return WarpMetric.from_weights(weights, c0=c_min, c_min=c_min, c_max=c_max, trainable=False)


def _metric(config: GeodesicConfig, models: int, seed: int) -> LogMetricNetwork | MetricNetwork | None:
    if not config.metric_network:
        return None
    kind = LogMetricNetwork if config.warp else MetricNetwork
    return kind(hidden=config.metric_hidden, models=models, seed=seed)


def _flow(config: GeodesicConfig, wavelength: Tensor, models: int, seed: int) -> SpectralFlow | FreeFlow:
    if config.flow == "free":
        return FreeFlow(wavelength, config.flow_hidden, config.embedding, models, seed)
    width = min(config.embedding, len(wavelength))  # more directions than wavelengths would say nothing
    return SpectralFlow(len(wavelength), config.flow_hidden, width, config.flow, models, seed)
