"""What the coupled ODE of one analyte gives a solver: closed-form paths, or the state and its right-hand side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from geonode.errors import InputError
from geonode.flow.base import FlowPoint
from geonode.flow.path import FlowPath, MetricOnTable
from geonode.flow.stages import Stages
from geonode.geodesic import shoot
from geonode.geodesic.ivp import default_tolerance
from geonode.metric.on_kernels import on_kernels
from geonode_kernels import coupled_rk4, coupled_shot

if TYPE_CHECKING:
    from geonode.flow.ode import CoupledSpectralODE


class PathTransport:
    """`geonode.flow.solvers.Transport` of one analyte.

    Args:
        ode: the coupled ODE.
        source: [M, B, W] spectra at the starts.
        start, end: [M, B] warp coordinates, float64.
        table: the metric at the table's nodes.
        index: which wavelengths those of ``source`` are; None for all.
    """

    def __init__(
        self,
        ode: CoupledSpectralODE,
        source: Tensor,
        start: Tensor,
        end: Tensor,
        table: MetricOnTable,
        index: Tensor | None,
    ) -> None:
        self.ode, self.source, self.flow = ode, source, ode.flow
        self.start, self.end, self.table, self.index = start, end, table, index
        self.arrived: Tensor | None = None

    def path(self) -> FlowPath:
        """See `Transport.path`."""
        return FlowPath(self.ode, self._ends, self.table, self.index)

    def _ends(self) -> Tensor:
        return self.ode.ends(self.table, self.start, self.end, self.source)

    def potential_change(self) -> Tensor:
        """Refused: along one axis arc length is the coordinate."""
        raise InputError(f"{type(self.flow).__name__} has no potential on one axis; choose another solver.")

    def initial_state(self) -> Tensor:
        """[M·B·W, 3]: u, du/dt and A; the velocity from the closed form, or by shooting."""
        u0 = self._everywhere(self.start)
        return torch.stack([u0, self._velocity(u0), self.source], -1).reshape(-1, 3)

    def fixed_steps(self, steps: int) -> Tensor:
        """See `Transport.fixed_steps`: by a kernel where one holds path and flow, else by `Stages`."""
        u0 = self._everywhere(self.start)
        change = self._by_kernel(u0, steps)
        if change is None:
            v0 = self._velocity(u0)
            change = Stages(self.ode, self.table, self.index, steps).change(u0, v0)
        return self._where_arrived(self.source + change)

    def _by_kernel(self, u0: Tensor, steps: int) -> Tensor | None:
        """∫F dt [M, B, W] for the exact symbols of a network's metric, and flows with `Flow.kernel_units`.

        Where the path was shot in as many steps, shot and transport are one.
        """
        ode = self.ode
        metric, wavelength = ode.metric_in_u(), ode.grid(u0, self.index)[1]
        shot = ode.path.name == "shooting" and ode.path.ode_steps == steps
        op, units = "coupled_shot" if shot else "coupled_rk4", self.flow.kernel_units(self.index)
        network = on_kernels(op, metric, wavelength, u0, refusal=ode.steps_refusal(units))
        if network is None or isinstance(units, str):
            return None
        weights, settings = network.weights.tensors, {"steps": steps, **network.settings}
        if shot:
            points = network.flat(u0, self._everywhere(self.end), wavelength)
            settings |= {
                "newton": ode.path.newton_steps,
                "tolerance": default_tolerance(metric, u0.dtype, u0.device.type),
            }
            change = coupled_shot(*points, *weights, units, **settings)[0]  # type: ignore[arg-type]
        else:
            change = coupled_rk4(*network.flat(u0, self._velocity(u0), wavelength), *weights, units, **settings)  # type: ignore[arg-type]
        return network.back(change)

    def _where_arrived(self, spectra: Tensor) -> Tensor:
        """The spectra, NaN where no geodesic was found."""
        return spectra if self.arrived is None else torch.where(self.arrived, spectra, torch.nan)

    def _everywhere(self, place: Tensor) -> Tensor:
        """``place`` [M, B] at every wavelength [M, B, W], in the dtype of the spectra."""
        return place.to(self.source.dtype)[..., None].expand(self.source.shape).contiguous()

    def _velocity(self, u0: Tensor) -> Tensor:
        """du/dt at the starts [M, B, W], from the closed form, or by shooting."""
        ode = self.ode
        if ode.path.name == "shooting":
            metric = ode.metric_in_u()
            solution = shoot(
                metric,
                u0,
                self._everywhere(self.end),
                ode.grid(u0, self.index)[1],
                newton_steps=ode.path.newton_steps,
                ode_steps=ode.path.ode_steps,
                christoffel=ode.christoffel_rule(metric),
            )
            # A failure is a value: its path stays where it is and its spectrum is NaN.
            self.arrived = solution.converged
            return torch.where(self.arrived, solution.initial_velocity, 0.0)
        s_hat = self._ends()
        length = 0.5 * ode.table.length(self.table.density) * (s_hat[:, 1] - s_hat[:, 0])
        return length / torch.exp(0.5 * ode.log_metric(u0, self.index))

    def right_hand_side(self, by_parameters: bool) -> nn.Module:
        """See `Transport.right_hand_side`."""
        return _RightHandSide(self.ode, None if by_parameters else self.table, self.index, self.source.shape)

    def spectra(self, state: Tensor) -> Tensor:
        """See `Transport.spectra`."""
        return self._where_arrived(state[:, 2].reshape(self.source.shape))


class _RightHandSide(nn.Module):
    """dy/dt for y [M·B·W, 3]; an nn.Module so that the adjoint finds the networks' parameters."""

    def __init__(
        self, ode: CoupledSpectralODE, table: MetricOnTable | None, index: Tensor | None, shape: torch.Size
    ) -> None:
        super().__init__()
        self.ode, self.index, self.shape = ode, index, shape
        self.series = None if table is None or not ode.flow.uses_arc_length else self._series(table)
        self.metric = ode.metric_in_u()
        self.rule = None if table is None else ode.christoffel_rule(self.metric)

    def _series(self, table: MetricOnTable) -> tuple[Tensor, Tensor]:
        return self.ode.table.coefficients(table.density), self.ode.table.length(table.density)

    def forward(self, t: Tensor, state: Tensor) -> Tensor:
        u, velocity, _ = state.reshape(*self.shape, 3).unbind(-1)
        # The adjoint differentiates with respect to parameters only: tables, the rule's too, are formed anew from them.
        rule = self.rule or self.ode.christoffel_rule(self.metric)
        log_metric, slope = self.ode.log_metric_and_slope(u, self.index)
        if rule.exact:  # Γ̃ = ½ slope
            acceleration = -0.5 * slope * velocity.square()
        else:
            acceleration = rule.acceleration(self.metric, u, velocity, self.ode.grid(u, self.index)[1])
        s_hat = speed = None
        if self.ode.flow.uses_arc_length:
            coefficients, length = self.series or self._series(self.ode.on_table(self.index))
            s_hat = 2.0 * self.ode.table.evaluate(coefficients, u) / length - 1.0
            speed = 2.0 * torch.exp(0.5 * log_metric) * velocity / length
        rate = self.ode.flow(FlowPoint(u, s_hat, velocity, speed, self.index))
        return torch.stack([velocity, acceleration, rate], -1).reshape(-1, 3)
