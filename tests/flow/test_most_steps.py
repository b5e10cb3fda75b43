"""`ode_steps` is the most that dopri5 and adjoint take: fewer evaluations, never more than allowed, and a word where
the tolerances are not kept."""

from __future__ import annotations

import math
import warnings

import pytest
import torch
from torch import Tensor, nn

from geonode.errors import SolverError
from geonode.flow.solvers import SOLVERS
from tests.flow.conftest import build

ADAPTIVE = ["dopri5", "adjoint"]
A_STEP = 6  # evaluations of Dormand and Prince's pair a step; two more to begin


class Turning(nn.Module):
    """dy/dt = 40 cos(40 t): many short steps at small tolerances."""

    def __init__(self) -> None:
        super().__init__()
        self.rate, self.calls = nn.Parameter(torch.tensor(40.0, dtype=torch.float64)), 0

    def forward(self, t: Tensor, state: Tensor) -> Tensor:
        self.calls += 1
        return self.rate * torch.cos(self.rate * t) + 0.0 * state


START = torch.zeros(2, 3, dtype=torch.float64)


@pytest.mark.parametrize("solver", ADAPTIVE)
@pytest.mark.parametrize("most", [1, 3, 10, 20])
def test_no_more_steps_are_taken_than_allowed_and_the_error_is_said(solver, most):
    rhs = Turning()
    with pytest.warns(
        UserWarning, match=f"solver='{solver}' may take {most} steps .path.ode_steps., .* too few for rtol=1e-09"
    ):
        SOLVERS[solver](ode_steps=most, rtol=1e-9, atol=1e-11).integrate(rhs, START)
    # a step that is refused is tried again, shorter: at most once for each that is accepted
    assert rhs.calls <= 2 * A_STEP * most + 2


@pytest.mark.parametrize("solver", ADAPTIVE)
def test_with_enough_steps_the_tolerance_is_kept_and_nothing_is_said(solver):
    rhs = Turning()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        end = SOLVERS[solver](ode_steps=1000, rtol=1e-9, atol=1e-11).integrate(rhs, START)
    torch.testing.assert_close(end, torch.full_like(START, math.sin(40.0)), rtol=0, atol=1e-7)
    assert rhs.calls > 2 * A_STEP * 20, "an equation that twenty steps solve would show nothing"


@pytest.mark.parametrize("flow", ["path_independent", "velocity", "free"])
@pytest.mark.parametrize("solver", ADAPTIVE)
def test_the_setting_reaches_the_solver(pairs, flow, solver):
    calls = []
    for most in (2, 40):
        ode = build(flow=flow, solver=solver, ode_steps=most, rtol=1e-9, atol=1e-11)
        count = [0]
        ode.flow.register_forward_hook(lambda *_, count=count: count.__setitem__(0, count[0] + 1))
        with (
            torch.no_grad(),
            pytest.warns(UserWarning, match=f"may take {most} steps") if most == 2 else warnings.catch_warnings(),
        ):
            ode(*pairs)
        calls.append(count[0])
    assert calls[0] <= 2 * A_STEP * 2 + 2 < calls[1]


@pytest.mark.parametrize("solver", ADAPTIVE)
def test_backwards_the_adjoint_takes_no_more_either(solver):
    rhs = Turning()
    with pytest.warns(UserWarning, match="too few"):
        end = SOLVERS[solver](ode_steps=4, rtol=1e-9, atol=1e-11).integrate(rhs, START)
    rhs.calls = 0
    torch.autograd.grad(end.sum(), [rhs.rate])
    assert rhs.calls <= (2 * A_STEP * 4 + 2 if solver == "adjoint" else 0)


@pytest.mark.parametrize("solver", ADAPTIVE)
@pytest.mark.parametrize("rate", [1e308, float("nan"), float("inf")])
def test_a_state_that_does_not_stay_finite_is_a_sentence(solver, rate):
    class Away(nn.Module):
        def forward(self, t: Tensor, state: Tensor) -> Tensor:
            return rate * (1.0 + state)

    with pytest.raises(SolverError, match="does not stay finite along its path; train with smaller learning rates"):
        SOLVERS[solver]().integrate(Away(), START)
