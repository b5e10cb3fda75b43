"""The coupled spectral neural ODE for one analyte: geodesic motion and absorbance, one state [B·W, 3].

    du/dt = p,   dp/dt = −Γ̃(u, λ) p²,   dA/dt = F            Γ̃ = ½ ∂ ln g̃/∂u

u is the warp coordinate (the closed-form warp's own arc length, scaled to [−1, 1] on the calibrated range), and g̃ the
rest of the metric, so √g(c) = √g_warp(c)·√g̃. Here are the paths and their table; what moves along them is the flow's
(`geonode.flow.base`), and how it is integrated the solver's (`geonode.flow.solvers`). docs/design.md §4 gives the
reasons.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from geonode.christoffel import RULES, ChristoffelRule, make_rule, value_and_christoffel
from geonode.errors import InputError
from geonode.flow.arctable import ArcLengthTable
from geonode.flow.base import Flow
from geonode.flow.coordinates import equal_where, linear_warp, scaled_wavelengths
from geonode.flow.parts import OdeConfig, OdeDefaults, build_flow, build_metric, seed_of
from geonode.flow.path import FlowPath, MetricOnTable
from geonode.flow.solvers import Solver
from geonode.flow.transport import PathTransport
from geonode.metric import LogMetric, Metric, WarpMetric, as_log_metric, fused
from geonode.metric.coordinate import WarpCoordinateMetric, require_finite
from geonode_kernels import FlowUnits, arc_length
from geonode_kernels.coupled_rk4 import units_refusal
from geonode_runtime.wording import argument


class CoupledSpectralODE(nn.Module):
    """Spectra transported along geodesics of a learned metric on concentration, M models at once.

    Args:
        wavelengths: [W] grid (any unit; scaled to [−1, 1] inside).
        config: settings of metric, path and flow, of which a `GeodesicConfig` has all; None for the defaults.
        warp: `WarpMetric` (one, or one with a model axis [M]); None: unit range [0, 1], no warp.
        models: M.
        low, high: [M] or a number: range of the arc-length table in the warp coordinate, ⊇ [−1, 1].
        seed: of the initial weights; None takes ``config.seed``.
        metric: the metric itself, in place of the one that ``config`` names: a `LogMetric` in the warp coordinate, or a
            `Metric` of one analyte, which is converted.
        flow: the flow itself, in place of the one that ``config`` names.

    Raises:
        InputError: fewer than two wavelengths, a table range that leaves out the calibrated range, a metric that is
            not positive there, or a flow or metric for several analytes.
    """

    wavelength: Tensor

    def __init__(
        self,
        wavelengths: Tensor,
        config: OdeConfig | None = None,
        warp: WarpMetric | None = None,
        models: int = 1,
        low: Tensor | float = -1.0,
        high: Tensor | float = 1.0,
        seed: int | None = None,
        *,
        metric: Metric | LogMetric | None = None,
        flow: Flow | None = None,
    ) -> None:
        super().__init__()
        config = config or OdeDefaults()
        seed = seed_of(config) if seed is None else seed
        self.config, self.path, self.models = config, config.path, models
        self.register_buffer("wavelength", scaled_wavelengths(wavelengths))
        self.warp = warp if warp is not None else linear_warp(0.0, 1.0)
        edges = [torch.as_tensor(v, dtype=torch.float64).expand(models).clone() for v in (low, high)]
        self.table = ArcLengthTable(*edges, nodes=config.metric.table_nodes)
        # for good on the host: a rule may look at these, and must not wait for a device
        self._served = *edges, self.wavelength.clone()
        self.metric = self._own(build_metric(config.metric, models, seed) if metric is None else metric)
        self.flow = build_flow(config.flow, self.wavelength, models, seed) if flow is None else flow
        if self.flow.several_analytes:
            raise InputError(f"{type(self.flow).__name__} is for several analytes; use MultiAnalyteODE.")

    def _own(self, metric: Metric | LogMetric) -> Metric | LogMetric:
        """The metric as it is asked here, in the warp coordinate."""
        if isinstance(metric, Metric) and metric.dim == 1 and metric.in_warp_coordinate:
            return metric
        metric = as_log_metric(metric, self.warp)
        served = [self.table.low[:, None], self.table.nodes, self.table.high[:, None]]
        require_finite(metric, torch.cat(served, 1), self.wavelength)
        return metric

    def place(self, device: torch.device | str, dtype: torch.dtype) -> CoupledSpectralODE:
        """Move to a device: parameters in ``dtype``, tables in float64 (float32 on MPS, which has no float64)."""
        if torch.device(device).type == "mps":
            return self.float().to(device)
        for parameter in self.parameters():
            parameter.data = parameter.data.to(dtype)
        self.wavelength = self.wavelength.to(dtype)
        self.flow.place(device, dtype)
        return self.to(device)

    # ------------------------------------------------------------------ metric

    def log_metric(self, u: Tensor, index: Tensor | None = None) -> Tensor:
        """ln g̃ at u [M, P, W] or [M, P] (each point at every wavelength) → [M, P, W].

        ``index`` [K] picks wavelengths; None takes all of them.
        """
        u, wavelength = self.grid(u, index)
        if fused.metric_fits(self.metric, u):
            return fused.log_metric(self.metric, u, wavelength)
        return self.metric.logarithm(*self._rows(u, wavelength)).reshape(u.shape)

    def log_metric_and_slope(self, u: Tensor, index: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """ln g̃ and ∂ ln g̃/∂u = 2 Γ̃, [M, P, W] each; arguments as for `log_metric`: ``u`` and ``index``."""
        u, wavelength = self.grid(u, index)
        found = value_and_christoffel(self.metric_in_u(), u, wavelength)
        if found is not None:
            return found[0].log(), 2.0 * found[1]
        value, slope = self.metric.logarithm_and_slope(*self._rows(u, wavelength))
        return value.reshape(u.shape), slope.reshape(u.shape)

    def on_table(self, index: Tensor | None = None) -> MetricOnTable:
        """The metric at the table's nodes, once per step for every pair. ``index`` [K] picks wavelengths, None all."""
        log_metric = self.log_metric(self.table.nodes.to(self.wavelength), index)
        return MetricOnTable(torch.exp(0.5 * log_metric), log_metric)

    def metric_in_u(self) -> Metric:
        """g̃(u, λ) as a `Metric` in the warp coordinate, for shooting and Christoffel symbols."""
        return WarpCoordinateMetric(self.metric, self.models)

    def christoffel_rule(self, metric: Metric) -> ChristoffelRule:
        """What shooting and the integrators take Γ from: the rule of the settings, for ``metric`` = `metric_in_u`."""
        return make_rule(self.path.christoffel, metric, *(x.to(self.wavelength.dtype) for x in self._served))

    def steps_refusal(self, units: FlowUnits | str) -> str | None:
        """What speaks against a kernel for all fixed steps of the coupled ODE: the rule, or the flow's ``units``."""
        if not RULES[self.path.christoffel].exact:
            return "the kernels hold the exact symbols, and another rule was asked for"
        return units if isinstance(units, str) else units_refusal(units.gain.shape[1])

    def capture_refusal(self) -> str | None:
        """Why a CUDA graph cannot hold a step of this ODE under its configured solver and path; None where it can.

        Closed forms it can hold, and fixed steps of the library's own: where one kernel takes all of them it is a few
        launches, and elsewhere it records each.
        """
        solver = self.solver()
        if self.closed_form or solver.steps_at_once:
            return None
        if solver.adaptive:
            name = self.path.solver
            taken = f"{argument('solver', name)} with {argument('path', self.path.name)}"
            return f"{taken} decides its steps by looking at values"
        return f"{type(solver).__name__} steps by itself, and may look at values"

    def grid(self, u: Tensor, index: Tensor | None) -> tuple[Tensor, Tensor]:
        """u [M, P, W] from [M, P, W] or [M, P], and the scaled wavelengths there, of the same shape.

        ``index`` [K] picks wavelengths; None takes all of them.
        """
        wavelength = self.wavelength if index is None else self.wavelength[index]
        if u.ndim == 2:
            u = u[:, :, None].expand(*u.shape, len(wavelength))
        return u, wavelength.to(u.dtype).expand(u.shape)

    def _rows(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """[M, …] → [M, points]."""
        return tuple(tensor.reshape(self.models, -1) for tensor in tensors)

    # ------------------------------------------------------------------ transport

    def forward(self, source: Tensor, start: Tensor, end: Tensor, solver: Solver | str | None = None) -> Tensor:
        """Spectra at ``end`` from spectra at ``start``.

        Args:
            source: [B, W] or [M, B, W] spectra at the start, in the units the flow was trained in.
            start, end: [B] or [M, B] concentrations in user units.
            solver: a `Solver`, or the name of one; None takes the configured one.

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

    @property
    def closed_form(self) -> bool:
        """True where paths and spectra come from closed forms under the configured solver."""
        return self.solver().closed_form and self.path.name == "arc_length"

    def solver(self, which: Solver | str | None = None) -> Solver:
        """A solver with the settings of the path: ``which`` itself or by name; None for the configured one.

        Raises:
            InputError: an unknown name, or a solver for several analytes.
        """
        solver = Solver.of(self.path, which)
        if solver.needs_potential:
            raise InputError(
                f"{argument('solver', 'potential')} is for several analytes; along one axis choose quadrature."
            )
        return solver

    def transport(
        self,
        source: Tensor,
        start: Tensor,
        end: Tensor,
        index: Tensor | None = None,
        solver: Solver | str | None = None,
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
        return self.solver(solver).transport(
            PathTransport(self, source, start, end, table or self.on_table(index), index)
        )

    def misfit(
        self,
        start: Tensor,
        end: Tensor,
        change: Tensor,
        weight: Tensor,
        index: Tensor | None = None,
        table: MetricOnTable | None = None,
        phi: Tensor | None = None,
        backend: str = "auto",
    ) -> Tensor | None:
        """Mean over wavelengths of Σ_b w_b (A(end) − A(start) − change)², w_b = ``weight`` scaled to a sum of one; [M].

        In fused form, with its gradients; None where this flow, solver or device has none: then take `transport` and
        the mean square.

        Args:
            start, end: [M, B] warp coordinates, float64.
            change: [M, B, W] measured change of absorbance; it gets no gradient.
            weight: [M, B]; it gets no gradient.
            index: which wavelengths those of ``change`` are; None for all.
            table: what `on_table` gave for ``index``; None computes it.
            phi: [M, 2B, T] integration matrix (`ArcLengthTable.phi`) of the starts, then of the ends; None computes it.
            backend: ``auto``, ``torch`` (the kernels' references) or ``triton``.
        """
        if not self.closed_form:
            return None
        table = table or self.on_table(index)

        def ends() -> Tensor:
            both = self.table.phi(torch.cat([start, end], 1), check=False) if phi is None else phi
            rows = torch.cat([both.to(table.density), self.table.phi_one.to(table.density)], 1)
            s_hat = arc_length(rows, table.density, backend=backend)
            return s_hat.view(len(change), 2, -1, change.shape[2])

        share = weight / (weight.sum(1, keepdim=True) * change.shape[2])
        return self.flow.misfit(FlowPath(self, ends, table, index, backend), change, share, self.path.nodes)

    def ends(self, table: MetricOnTable, start: Tensor, end: Tensor, like: Tensor) -> Tensor:
        """ŝ [M, 2, B, W] at the starts and the ends, in the dtype of ``like``.

        Args:
            table: the metric at the table's nodes.
            start, end: [M, B] warp coordinates, float64.
            like: whose dtype is taken.
        """
        both = self.table.phi(torch.cat([start, end], 1), check=False).to(table.density)
        s_hat = self.table.scaled(both, table.density).to(like.dtype)
        s_start, s_end = s_hat[:, : start.shape[1]], s_hat[:, start.shape[1] :]
        # two rows of one matrix product may round differently: a path of no length must have length zero exactly
        return torch.stack([s_start, equal_where((end == start)[..., None], s_start, s_end)], 1)

    def potential(self, phi: Tensor, table: MetricOnTable, index: Tensor | None, nodes: int) -> Tensor:
        """What a path-independent flow carries from the first of P ascending points to each of them [M, P, W].

        Args:
            phi: [M, P, T] integration matrix of the points.
            table: the metric at the table's nodes.
            index: which wavelengths; None for all.
            nodes: of the quadrature, for each interval between neighbours.

        Raises:
            InputError: a flow whose change depends on the path.
        """
        if not self.flow.path_independent:
            raise InputError(
                f"{type(self.flow).__name__} depends on the path, so pairs are no differences of one potential; "
                "integrate it along explicit pairs."
            )
        s_hat = self.table.scaled(phi.to(table.density), table.density)
        path = FlowPath(self, lambda: torch.stack([s_hat[:, :-1], s_hat[:, 1:]], 1), table, index)
        steps = self.flow.integral(path, nodes)
        return torch.cat([torch.zeros_like(steps[:, :1]), steps.cumsum(1)], 1)
