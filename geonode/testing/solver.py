"""`SolverContract`: what every solver of the coupled state must do, whatever its method."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

from geonode.config import GeodesicConfig
from geonode.flow import SOLVERS, CoupledSpectralODE, Solver

_WIDTH = 4


class SolverContract:
    """Tests of one solver; inherit it and name its class, which must be registered.

        class TestMidpoint(SolverContract):
            solver = Midpoint
            settings = {"ode_steps": 200}

    Attributes:
        solver: the class under test.
        settings: arguments with which it is accurate to `tolerance`.
        tolerance: largest error of a spectrum of order one.
    """

    solver: ClassVar[type[Solver]]
    settings: ClassVar[dict[str, Any]] = {}
    tolerance: ClassVar[float] = 1e-5

    # --- what the tests share -----------------------------------------------------------------------------------

    def make(self) -> Solver:
        """The solver."""
        return self.solver(**self.settings)

    def _ode(self, models: int = 2, seed: int = 0) -> CoupledSpectralODE:
        config = GeodesicConfig(metric_hidden=(4,), flow_hidden=4, embedding=3, table_nodes=32)
        ode = CoupledSpectralODE(torch.linspace(400.0, 700.0, _WIDTH), config, models=models, seed=seed)
        ode.place("cpu", torch.float64)
        with torch.no_grad():
            for parameter in ode.parameters():
                for m, rows in enumerate(parameter):
                    generator = torch.Generator().manual_seed(seed + m)
                    rows.add_(0.1 * torch.randn(rows.shape, generator=generator, dtype=torch.float64))
        return ode

    def _pairs(self) -> tuple[Tensor, Tensor, Tensor]:
        source = torch.rand(2, 3, _WIDTH, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        start, end = torch.tensor([[0.1, 0.8, 0.4]] * 2).double(), torch.tensor([[0.9, 0.3, 0.4]] * 2).double()
        return source, start, end

    def _integrates(self) -> None:
        if self.solver.closed_form:
            pytest.skip("a closed form integrates no state")

    # --- the tests ----------------------------------------------------------------------------------------------

    def test_it_is_registered_and_its_settings_make_it_again(self) -> None:
        settings = Solver.settings(self.make())
        assert SOLVERS[str(settings["solver"])] is self.solver
        again = Solver.of(GeodesicConfig().replace(solver=self.make()).path)
        assert type(again) is self.solver and self.settings.items() <= again.arguments.items()

    def test_it_refuses_settings_that_it_does_not_have(self) -> None:
        with pytest.raises(TypeError):
            self.solver(**self.settings, no_such_setting=1)

    def test_spectra_are_those_of_the_exact_integral(self) -> None:
        ode, pairs = self._ode(), self._pairs()
        exact = ode(*pairs, solver=SOLVERS["quadrature"](nodes=32))
        assert (exact - pairs[0]).abs().max() > 1e-2
        torch.testing.assert_close(ode(*pairs, solver=self.make()), exact, rtol=0, atol=self.tolerance)

    def test_a_path_of_no_length_changes_nothing(self) -> None:
        source, start, _ = self._pairs()
        found = self._ode()(source, start, start.clone(), solver=self.make())
        torch.testing.assert_close(found, source, rtol=0, atol=1e-13)

    def test_there_and_back(self) -> None:
        ode, (source, start, end) = self._ode(), self._pairs()
        there = ode(source, start, end, solver=self.make())
        torch.testing.assert_close(
            ode(there, end, start, solver=self.make()), source, rtol=0, atol=2.0 * self.tolerance
        )

    def test_a_stack_is_its_models_side_by_side(self) -> None:
        source, start, end = self._pairs()
        stack = self._ode(models=2, seed=0)(source, start, end, solver=self.make())
        alone = self._ode(models=1, seed=1)(source[1:], start[1:], end[1:], solver=self.make())
        # an adaptive solver chooses one step for all, so that a stack may step otherwise than a model alone
        torch.testing.assert_close(stack[1:], alone, rtol=0, atol=self.tolerance if self.solver.adaptive else 1e-9)

    def test_gradients_are_those_of_the_exact_integral(self) -> None:
        found = []
        for solver in (SOLVERS["quadrature"](nodes=32), self.make()):
            ode = self._ode()
            ode(*self._pairs(), solver=solver).square().sum().backward()
            found.append(torch.cat([p.grad.flatten() for p in ode.parameters() if p.grad is not None]))
        scale = float(found[0].abs().max())
        torch.testing.assert_close(found[1], found[0], rtol=0, atol=100.0 * self.tolerance * scale)

    def test_single_precision(self) -> None:
        ode, (source, start, end) = self._ode(), self._pairs()
        exact = ode(source, start, end, solver=self.make())
        found = ode.place("cpu", torch.float32)(source.float(), start, end, solver=self.make())
        assert found.dtype is torch.float32
        torch.testing.assert_close(found.double(), exact, rtol=0, atol=1e-4 + self.tolerance)

    def test_a_known_equation(self) -> None:
        """dy/dt = −2 y from 1: exp(−2) at t = 1; every row of the state its own."""
        self._integrates()

        class Decay(nn.Module):
            def forward(self, t: Tensor, state: Tensor) -> Tensor:
                return -2.0 * state

        start = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64)
        end = self.make().integrate(Decay(), start)
        torch.testing.assert_close(end, start * torch.exp(torch.tensor(-2.0).double()), rtol=0, atol=self.tolerance)

    def test_it_says_whether_it_integrates(self) -> None:
        if self.solver.closed_form:
            assert not self.solver.adaptive
        else:
            assert self.solver.integrate is not Solver.integrate or self.solver.transport is not Solver.transport
