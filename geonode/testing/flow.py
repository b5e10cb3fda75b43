"""`FlowContract`: what every flow must do, whatever its formula."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from geonode.errors import InputError
from geonode.flow import FLOWS, CoupledSpectralODE, Flow, FlowPoint
from geonode.flow.config import FlowConfig
from geonode.flow.parts import OdeDefaults, build_flow
from geonode.geodesic.config import PathConfig

_WIDTH = 5


class FlowContract:
    """Tests of one flow; inherit it and name the flow's class, which must be registered.

        class TestDoubling(FlowContract):
            flow = Doubling

    Attributes:
        flow: the class under test.
        options: arguments that its constructor needs besides those of `geonode.flow.FlowConfig`.
        analytes: D.
    """

    flow: ClassVar[type[Flow]]
    options: ClassVar[dict[str, Any]] = {}
    analytes: ClassVar[int] = 1

    # --- what the tests share -----------------------------------------------------------------------------------

    def make(self, models: int = 2, seed: int = 3) -> Flow:
        """A small flow in float64, away from its start; model m of a stack is the single model of seed + m."""
        config = FlowConfig(FLOWS.name_of(self.flow), hidden=4, embedding=3, options=self.options)
        grid = torch.linspace(-1.0, 1.0, _WIDTH, dtype=torch.float64)
        flow = build_flow(config, grid, models, seed, self.analytes).place("cpu", torch.float64)
        with torch.no_grad():
            for parameter in flow.parameters():
                for m, rows in enumerate(parameter if len(parameter) == models else parameter[None]):
                    generator = torch.Generator().manual_seed(seed + m)
                    rows.add_(0.2 * torch.randn(rows.shape, generator=generator, dtype=torch.float64))
        return flow

    def point(self, models: int = 2, pairs: int = 3, index: Tensor | None = None) -> FlowPoint:
        """A point of moving paths."""
        generator = torch.Generator().manual_seed(1)
        width = _WIDTH if index is None else len(index)
        shape = (models, pairs, width, *([self.analytes] if self.analytes > 1 else []))
        position, velocity = 2.0 * torch.rand(2, *shape, generator=generator, dtype=torch.float64) - 1.0
        s_hat, speed = 2.0 * torch.rand(2, models, pairs, width, generator=generator, dtype=torch.float64) - 1.0
        uses = self.flow.uses_arc_length
        return FlowPoint(position, s_hat if uses else None, velocity, speed if uses else None, index)

    def _moved(self, point: FlowPoint, change: Any) -> FlowPoint:
        """The point with every tensor of M models changed."""
        return FlowPoint(*(change(x) if x is not None else None for x in point[:4]), point.index)  # type: ignore[arg-type]

    def _ode(self, solver: str = "quadrature") -> CoupledSpectralODE:
        config = OdeDefaults(path=PathConfig(solver=solver, ode_steps=60))
        ode = CoupledSpectralODE(torch.linspace(400.0, 700.0, _WIDTH), config, models=2, seed=3, flow=self.make())
        ode.place("cpu", torch.float64)
        with torch.no_grad():
            for parameter in ode.metric.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        return ode

    def _ends(self) -> tuple[Tensor, Tensor, Tensor]:
        source = torch.zeros(2, 2, _WIDTH, dtype=torch.float64)
        start, end = torch.tensor([[[0.1, 0.8]] * 2, [[0.9, 0.3]] * 2], dtype=torch.float64)
        return source, start, end

    def _one_analyte(self) -> None:
        if self.analytes > 1:
            pytest.skip("paths of several analytes are those of MultiAnalyteODE")

    # --- the tests ----------------------------------------------------------------------------------------------

    def test_a_rate_for_every_model_pair_and_wavelength(self) -> None:
        rate = self.make()(self.point())
        assert rate.shape == (2, 3, _WIDTH) and torch.isfinite(rate).all() and rate.abs().max() > 0

    def test_drawn_wavelengths_are_rows_of_all(self) -> None:
        flow, index = self.make(), torch.tensor([4, 1])
        whole = self.point()
        drawn = self._moved(whole, lambda x: x[:, :, index])._replace(index=index)
        torch.testing.assert_close(flow(drawn), flow(whole)[..., index], rtol=0, atol=1e-12)

    def test_nothing_moves_nothing_changes(self) -> None:
        point = self.point()
        rest = point._replace(
            velocity=torch.zeros_like(point.velocity),
            speed=None if point.speed is None else torch.zeros_like(point.speed),
        )
        if self.flow.still_at_rest:
            assert torch.equal(self.make()(rest), torch.zeros(2, 3, _WIDTH, dtype=torch.float64))
        else:
            assert self.make()(rest).abs().max() > 0  # it says that it breaks the law, and does

    def test_gradients_are_those_of_the_formula(self) -> None:
        flow, point = self.make(models=1), self.point(models=1, pairs=2)
        inputs = [x.requires_grad_() for x in (point.position, point.velocity)]
        assert torch.autograd.gradcheck(
            lambda p, v: flow(point._replace(position=p, velocity=v)), inputs, check_forward_ad=False
        )
        flow(point).square().sum().backward()
        assert any(p.grad is not None and p.grad.abs().max() > 0 for p in flow.parameters())

    def test_single_precision_is_double_precision_rounded(self) -> None:
        exact = self.make()(self.point()).detach()
        flow = self.make().place("cpu", torch.float32)
        found = flow(self._moved(self.point(), lambda x: x.float()))
        assert found.dtype is torch.float32
        torch.testing.assert_close(found.double(), exact, rtol=1e-4, atol=1e-4 * exact.abs().max().item())

    def test_a_stack_is_its_models_side_by_side(self) -> None:
        stack, alone = self.make(models=2, seed=3), self.make(models=1, seed=4)
        second = self._moved(self.point(), lambda x: x[1:])
        torch.testing.assert_close(stack(self.point())[1:], alone(second), rtol=0, atol=1e-9)

    def test_the_state_goes_there_and_back(self) -> None:
        one, other = self.make(seed=3), self.make(seed=9)
        assert not torch.equal(one(self.point()), other(self.point()))
        other.load_state_dict(one.state_dict())
        assert torch.equal(one(self.point()), other(self.point()))
        assert torch.equal(copy.deepcopy(one)(self.point()), one(self.point()))

    def test_settings_make_it_again(self) -> None:
        from geonode.flow.config import flow_settings

        made = FlowConfig(**flow_settings(self.make()))
        assert made == FlowConfig(FLOWS.name_of(self.flow), hidden=4, embedding=3, options=self.options)

    def test_a_start_counts_no_padding_and_stays_finite(self) -> None:
        rng = np.random.default_rng(0)
        shape = (2, 6, *([self.analytes] if self.analytes > 1 else []))
        points = torch.from_numpy(np.sort(rng.uniform(-1, 1, shape), 1))
        targets, weight = torch.from_numpy(rng.normal(size=(2, 6, _WIDTH))), torch.full((2, 6), 0.2).double()
        weight[:, -1] = 0.0
        rates = []
        for noise in (0.0, 100.0):
            targets[:, -1] += noise
            flow = self.make()
            flow.start_from(points, targets, weight)
            rates.append(flow(self.point()))
        assert torch.isfinite(rates[0]).all()
        if self.analytes == 1:
            torch.testing.assert_close(rates[1], rates[0], rtol=0, atol=1e-9)

    def test_the_integral_is_the_quadrature_of_the_rate(self) -> None:
        self._one_analyte()
        ode = self._ode()
        source, start, end = self._ends()
        found = ode(source, start, end, solver="quadrature")
        ode.flow.integral = lambda path, nodes: Flow.integral(ode.flow, path, nodes)  # type: ignore[method-assign]
        torch.testing.assert_close(ode(source, start, end, solver="quadrature"), found, rtol=0, atol=1e-9)

    def test_solvers_agree(self) -> None:
        self._one_analyte()
        ode, ends = self._ode(), self._ends()
        torch.testing.assert_close(ode(*ends, solver="rk4"), ode(*ends, solver="quadrature"), rtol=0, atol=1e-5)

    def test_a_fused_loss_is_transport_and_a_mean_square(self) -> None:
        self._one_analyte()
        ode, (source, start, end) = self._ode(), self._ends()
        u, v = ode.to_u(start), ode.to_u(end)
        change, weight = torch.rand(2, 2, _WIDTH, dtype=torch.float64), torch.tensor([[1.0, 3.0]] * 2).double()
        fused = ode.misfit(u, v, change, weight, backend="torch")
        if fused is not None:
            error = (ode.transport(source, u, v) - change).square().mean(-1)
            expected = (error * weight).sum(1) / weight.sum(1)
            torch.testing.assert_close(fused, expected, rtol=1e-9, atol=1e-12)

    def test_independence_of_the_path_is_what_it_says(self) -> None:
        self._one_analyte()
        ode, (source, start, end) = self._ode(), self._ends()
        middle = 0.5 * (start + end)
        by_way = ode(ode(source, start, middle), middle, end)
        if self.flow.path_independent:
            torch.testing.assert_close(by_way, ode(source, start, end), rtol=0, atol=1e-6)
        else:
            with pytest.raises(InputError, match="depends on the path"):
                ode.potential(ode.table.phi(torch.cat([start, end], 1)), ode.on_table(), None, 4)
