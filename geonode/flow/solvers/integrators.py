"""Integrators of the coupled state: classical Runge–Kutta, and torchdiffeq's dopri5 and adjoint."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from geonode.errors import SolverError
from geonode.flow.solvers.base import SOLVERS, Solver, Transport
from geonode_kernels.runge_kutta import STEPPERS
from geonode_runtime.wording import argument


@SOLVERS.register("rk4")
class RungeKutta4(Solver):
    """The classical method of fourth order, steps of equal length: those of shooting, so that a path that was shot ends
    where it should. One kernel takes all steps where there is one for metric and flow; elsewhere the flow is asked
    once, at all the states that the steps visit.

    Args:
        ode_steps: their number.
    """

    def __init__(self, ode_steps: int = 20) -> None:
        self.ode_steps = ode_steps

    @property
    def steps_at_once(self) -> bool:
        """See `Solver.steps_at_once`: not of a subclass with an integrator of its own."""
        return type(self).integrate is RungeKutta4.integrate

    def transport(self, problem: Transport) -> Tensor:
        """See `Solver.transport`."""
        carried = problem.fixed_steps(self.ode_steps) if self.steps_at_once else None
        return super().transport(problem) if carried is None else carried

    def integrate(self, rhs: nn.Module, state: Tensor) -> Tensor:
        """State at t = 1; see `Solver.integrate`."""
        h = 1.0 / self.ode_steps
        for step in range(self.ode_steps):
            (state,) = STEPPERS["rk4"].step(lambda y, t=step * h: (rhs(t, y[0]),), (state,), h)
        return state


class _Adaptive(Solver):
    """Dormand and Prince's fifth-order pair, steps by tolerances, of which no more are taken than allowed.

    No step is shorter than 1/``ode_steps`` of the path: where the tolerances ask for shorter ones they are not kept,
    and a warning says so.

    Args:
        ode_steps: the most steps.
        rtol, atol: relative and absolute tolerance of a step.
    """

    adaptive = True

    def __init__(self, ode_steps: int = 20, rtol: float = 1e-5, atol: float = 1e-7) -> None:
        self.ode_steps, self.rtol, self.atol = ode_steps, rtol, atol

    def integrate(self, rhs: nn.Module, state: Tensor) -> Tensor:
        """State at t = 1; see `Solver.integrate`.

        Raises:
            SolverError: the state does not stay finite.
        """
        span, watch = _span(state), _Tolerance()
        # no step goes past the end, where the path has no meaning and may overflow
        options = {"step_t": span, "min_step": 1.0 / self.ode_steps, "norm": watch.norm}
        rhs.callback_accept_step = watch.accepted  # type: ignore[assignment] - where torchdiffeq looks for it
        try:
            states = self._solve(rhs, state, span, options)
        except AssertionError as error:
            raise SolverError(_DIVERGED) from error
        if not bool(torch.isfinite(states[-1]).all()):
            raise SolverError(_DIVERGED)
        if watch.missed:
            warnings.warn(
                f"{argument('solver', SOLVERS.name_of(self))} may take {self.ode_steps} steps (path.ode_steps), "
                "and that is too "
                f"few for {argument('rtol', self.rtol)} and {argument('atol', self.atol)}: the error is larger. "
                "Allow more steps, or a "
                "larger error.",
                stacklevel=2,
            )
        return states[-1]

    def _solve(self, rhs: nn.Module, state: Tensor, span: Tensor, options: dict[str, Any]) -> Any:
        """States [2, N, S] at both ends of the span."""
        raise NotImplementedError


@SOLVERS.register("dopri5")
class Dopri5(_Adaptive):
    """Dormand and Prince's pair, differentiated through its steps.

    Args:
        ode_steps: the most steps; none is shorter than the path divided by it.
        rtol, atol: relative and absolute tolerance of a step.
    """

    def _solve(self, rhs: nn.Module, state: Tensor, span: Tensor, options: dict[str, Any]) -> Any:
        from torchdiffeq import odeint

        return odeint(rhs, state, span, method="dopri5", rtol=self.rtol, atol=self.atol, options=options)


@SOLVERS.register("adjoint")
class Adjoint(_Adaptive):
    """Dormand and Prince's pair, differentiated by the adjoint ODE: constant memory, gradients of parameters alone.

    Args:
        ode_steps: the most steps, forwards and again backwards; none is shorter than the path divided by it.
        rtol, atol: relative and absolute tolerance of a step.
    """

    by_parameters = True

    def _solve(self, rhs: nn.Module, state: Tensor, span: Tensor, options: dict[str, Any]) -> Any:
        from torchdiffeq import odeint_adjoint

        trained = tuple(p for p in rhs.parameters() if p.requires_grad)
        return odeint_adjoint(
            rhs, state, span, method="dopri5", rtol=self.rtol, atol=self.atol, options=options, adjoint_params=trained
        )


class _Tolerance:
    """Whether a step was accepted though its error lay above the tolerances, as torchdiffeq tells those who ask."""

    def __init__(self) -> None:
        self.missed = False
        self._last: Tensor | None = None

    def norm(self, error: Tensor) -> Tensor:
        """Root mean square, as torchdiffeq's own; of a step, the error relative to its tolerance."""
        self._last = error.abs().square().mean().sqrt()
        return self._last

    def accepted(self, *_: Any) -> None:
        """A step was accepted: its norm is the last one that was asked for."""
        self.missed |= self._last is not None and bool(self._last > 1.0)


_DIVERGED = (
    "The coupled ODE does not stay finite along its path; train with smaller learning rates (metric_lr, flow_lr), or "
    "choose solver quadrature or rk4."
)


def _span(state: Tensor) -> Tensor:
    """Start and end."""
    return torch.tensor([0.0, 1.0], dtype=state.dtype, device=state.device)
