"""Integrators of the coupled state: torchdiffeq's rk4, dopri5 and adjoint."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from geonode.flow.solvers.base import SOLVERS, Solver


@SOLVERS.register("rk4")
class RungeKutta4(Solver):
    """Fourth order (the 3/8 rule), steps of equal length.

    Args:
        ode_steps: their number.
    """

    def __init__(self, ode_steps: int = 20) -> None:
        self.ode_steps = ode_steps

    def integrate(self, rhs: nn.Module, state: Tensor) -> Tensor:
        """State at t = 1; see `Solver.integrate`."""
        from torchdiffeq import odeint

        states: Any = odeint(rhs, state, _span(state), method="rk4", options={"step_size": 1.0 / self.ode_steps})
        return states[-1]


class _Adaptive(Solver):
    """Dormand and Prince's fifth-order pair, steps by tolerances.

    Args:
        rtol, atol: relative and absolute tolerance of a step.
    """

    adaptive = True

    def __init__(self, rtol: float = 1e-5, atol: float = 1e-7) -> None:
        self.rtol, self.atol = rtol, atol


@SOLVERS.register("dopri5")
class Dopri5(_Adaptive):
    """Dormand and Prince's pair, differentiated through its steps.

    Args:
        rtol, atol: relative and absolute tolerance of a step.
    """

    def integrate(self, rhs: nn.Module, state: Tensor) -> Tensor:
        """State at t = 1; see `Solver.integrate`."""
        from torchdiffeq import odeint

        span = _span(state)
        states: Any = odeint(
            rhs, state, span, method="dopri5", rtol=self.rtol, atol=self.atol, options={"step_t": span}
        )
        return states[-1]


@SOLVERS.register("adjoint")
class Adjoint(_Adaptive):
    """Dormand and Prince's pair, differentiated by the adjoint ODE: constant memory, gradients of parameters alone.

    Args:
        rtol, atol: relative and absolute tolerance of a step.
    """

    by_parameters = True

    def integrate(self, rhs: nn.Module, state: Tensor) -> Tensor:
        """State at t = 1; see `Solver.integrate`."""
        from torchdiffeq import odeint_adjoint

        trained = tuple(p for p in rhs.parameters() if p.requires_grad)
        span = _span(state)
        states: Any = odeint_adjoint(
            rhs,
            state,
            span,
            method="dopri5",
            rtol=self.rtol,
            atol=self.atol,
            options={"step_t": span},
            adjoint_params=trained,
        )
        return states[-1]


def _span(state: Tensor) -> Tensor:
    """Start and end; as ``step_t`` no step goes past them, where the path has no meaning and may overflow."""
    return torch.tensor([0.0, 1.0], dtype=state.dtype, device=state.device)
