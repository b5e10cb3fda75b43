"""Integrators of the coupled state: torchdiffeq's rk4, dopri5 and adjoint behind one function.

A new solver is one entry of SOLVERS: a function (rhs, state [N, 3], settings) → state at t = 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from geonode.errors import InputError


def _rk4(rhs: nn.Module, state: Tensor, steps: int, rtol: float, atol: float) -> Tensor:
    from torchdiffeq import odeint

    states: Any = odeint(rhs, state, _span(state), method="rk4", options={"step_size": 1.0 / steps})  # the 3/8 rule
    return states[-1]


def _dopri5(rhs: nn.Module, state: Tensor, steps: int, rtol: float, atol: float) -> Tensor:
    from torchdiffeq import odeint

    span = _span(state)
    states: Any = odeint(rhs, state, span, method="dopri5", rtol=rtol, atol=atol, options={"step_t": span})
    return states[-1]


def _adjoint(rhs: nn.Module, state: Tensor, steps: int, rtol: float, atol: float) -> Tensor:
    from torchdiffeq import odeint_adjoint

    trained = tuple(p for p in rhs.parameters() if p.requires_grad)
    span = _span(state)
    states: Any = odeint_adjoint(
        rhs, state, span, method="dopri5", rtol=rtol, atol=atol, options={"step_t": span}, adjoint_params=trained
    )
    return states[-1]


def _span(state: Tensor) -> Tensor:
    """Start and end; as ``step_t`` no step goes past them, where the path has no meaning and may overflow."""
    return torch.tensor([0.0, 1.0], dtype=state.dtype, device=state.device)


SOLVERS: dict[str, Callable[..., Tensor]] = {"rk4": _rk4, "dopri5": _dopri5, "adjoint": _adjoint}


def integrate(rhs: nn.Module, state: Tensor, solver: str, **settings: Any) -> Tensor:
    """State [N, 3] at t = 1 from the state at t = 0.

    Args:
        rhs: called as ``rhs(t, state)``, gives the derivative of the state [N, 3].
        state: at t = 0.
        solver: a key of SOLVERS.
        settings: ``steps`` (used by rk4), ``rtol`` and ``atol`` (used by the others); all three are needed.

    Raises:
        InputError: a solver that is not in SOLVERS.
    """
    if solver not in SOLVERS:
        raise InputError(f"solver={solver!r} is not known; choose quadrature or one of {', '.join(SOLVERS)}.")
    return SOLVERS[solver](rhs, state, **settings)
