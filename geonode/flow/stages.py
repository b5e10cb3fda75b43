"""Fixed steps of the coupled ODE, the flow asked once for all of them.

Absorbance acts back neither on the path nor on its own rate, so classical Runge–Kutta of the coupled state is that of
the geodesic alone, and then the weighted sum of the rates at the states its stages visited: the same numbers as one
step after the other, with one call of the flow in place of four a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from geonode.christoffel import ChristoffelRule
from geonode.flow.base import FlowPoint
from geonode.flow.path import MetricOnTable
from geonode.metric import Metric
from geonode.metric.on_kernels import on_kernels
from geonode_kernels import geodesic_states
from geonode_kernels.runge_kutta import STEPPERS, State

if TYPE_CHECKING:
    from geonode.flow.ode import CoupledSpectralODE

AT_ONCE = 2**22
"""Points of the flow's one call; longer paths are carried in several."""


class Visited(NamedTuple):
    """What the stages of some steps visited, each [M, 4, S, B, W]: u, du/dt, and ln g̃ where it is known already."""

    position: Tensor
    velocity: Tensor
    log_metric: Tensor | None


class Stages:
    """The stages of classical Runge–Kutta along geodesics of ``ode``.

    Args:
        ode: the coupled ODE.
        table: its metric at the table's nodes.
        index: numbers of the wavelengths; None for all.
        steps: of equal length.
    """

    def __init__(self, ode: CoupledSpectralODE, table: MetricOnTable, index: Tensor | None, steps: int) -> None:
        self.ode, self.table, self.index, self.steps = ode, table, index, steps
        self.metric: Metric = ode.metric_in_u()
        self.rule: ChristoffelRule = ode.christoffel_rule(self.metric)

    def change(self, u0: Tensor, v0: Tensor) -> Tensor:
        """∫F dt [M, B, W] along the geodesics that leave ``u0`` with velocity ``v0``, both [M, B, W]."""
        total = torch.zeros_like(u0)
        for visited in self._visited(u0, v0):
            rates = self._rate(visited).sum(2)
            total = total + (rates[:, 0] + 2.0 * (rates[:, 1] + rates[:, 2]) + rates[:, 3])
        return total / (6.0 * self.steps)

    def _rate(self, visited: Visited) -> Tensor:
        """F at every stage [M, 4, S, B, W]."""
        shape, s_hat, speed = visited.position.shape, None, None
        u, velocity = (x.flatten(1, 3) for x in visited[:2])
        if self.ode.flow.uses_arc_length:
            known, table = visited.log_metric, self.ode.table
            log_metric = self.ode.log_metric(u, self.index) if known is None else known.flatten(1, 3)
            length = table.length(self.table.density)
            s_hat = 2.0 * table.evaluate(table.coefficients(self.table.density), u) / length - 1.0
            speed = 2.0 * torch.exp(0.5 * log_metric) * velocity / length
        return self.ode.flow(FlowPoint(u, s_hat, velocity, speed, self.index)).reshape(shape)

    def _visited(self, u0: Tensor, v0: Tensor) -> Iterator[Visited]:
        """What the stages visited, as many steps at a time as `AT_ONCE` allows."""
        per = max(1, AT_ONCE // (4 * max(1, u0.numel())))
        refusal = None if self.rule.exact else "the kernels hold the exact symbols, and another rule was asked for"
        wavelength = self.ode.grid(u0, self.index)[1]
        network = on_kernels("geodesic_rk4", self.metric, wavelength, u0, v0, refusal=refusal)
        if network is None:
            yield from self._one_by_one(u0, v0, per)
            return
        flat = network.flat(u0, v0, wavelength)
        states = geodesic_states(*flat, *network.weights.tensors, steps=self.steps, **network.settings)  # type: ignore[arg-type]
        u, v = states[:, :-1].unflatten(-1, u0.shape[1:]).unbind(2)  # [M, S, B, W] each, at the beginning of each step
        for first in range(0, self.steps, per):
            yield self._from_states(u[:, first : first + per], v[:, first : first + per])

    def _from_states(self, u: Tensor, v: Tensor) -> Visited:
        """The four stages of steps that begin with u and v [M, S, B, W], every step at once."""
        h, shape = 1.0 / self.steps, u.shape
        visited = [(u, v)]
        for ahead in (0.5 * h, 0.5 * h, h):
            at = visited[-1]
            _, acceleration = self._acceleration(*(x.flatten(1, 2) for x in at))
            visited.append((u + ahead * at[1], v + ahead * acceleration.reshape(shape)))
        position, velocity = (torch.stack(x, 1) for x in zip(*visited, strict=True))
        return Visited(position, velocity, None)

    def _one_by_one(self, u0: Tensor, v0: Tensor, per: int) -> Iterator[Visited]:
        """Step after step, for metrics and rules that no kernel holds."""
        visited: list[tuple[Tensor, ...]] = []

        def field(state: State) -> State:
            log_metric, acceleration = self._acceleration(*state)
            visited.append(state if log_metric is None else (*state, log_metric))
            return state[1], acceleration

        state: State = (u0, v0)
        for step in range(1, self.steps + 1):
            state = STEPPERS["rk4"].step(field, state, 1.0 / self.steps)
            if step % per == 0 or step == self.steps:
                found = [torch.stack(x, 1).unflatten(1, (-1, 4)).transpose(1, 2) for x in zip(*visited, strict=True)]
                yield Visited(found[0], found[1], found[2] if len(found) > 2 else None)
                visited.clear()

    def _acceleration(self, u: Tensor, v: Tensor) -> tuple[Tensor | None, Tensor]:
        """d²u/dt² at u and v [M, B, W], and ln g̃ there where it comes with it."""
        if self.rule.exact:  # Γ̃ = ½ slope
            log_metric, slope = self.ode.log_metric_and_slope(u, self.index)
            return log_metric, -0.5 * slope * v.square()
        return None, self.rule.acceleration(self.metric, u, v, self.ode.grid(u, self.index)[1])
