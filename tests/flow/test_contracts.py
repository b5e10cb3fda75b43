"""Every shipped flow and solver keeps its contract; a subclass that overrides `forward` is honoured everywhere."""

from __future__ import annotations

from typing import ClassVar

import pytest
import torch

import geonode
from geonode.config import GeodesicConfig
from geonode.errors import BundleError, InputError
from geonode.flow import (
    FLOWS,
    SOLVERS,
    CoupledSpectralODE,
    Flow,
    FreeFlow,
    GradientFlow,
    MultiAnalyteODE,
    SpectralFlow,
    VelocityFlow,
)
from geonode.flow.solvers import Adjoint, Dopri5, Quadrature, RungeKutta4
from geonode.metric import MetricNetwork, PowerLaw, Sphere, fused
from geonode.testing import FlowContract, SolverContract
from tests.flow.conftest import build


@FLOWS.register("doubling of a test")
class Doubling(SpectralFlow):
    """The default flow, twice as fast."""

    def forward(self, point):
        return 2.0 * super().forward(point)


@FLOWS.register("doubling gradient of a test")
class DoublingGradient(GradientFlow):
    """The flow of several analytes, twice as fast."""

    def forward(self, point):
        return 2.0 * super().forward(point)


class TestSpectralFlow(FlowContract):
    flow = SpectralFlow


class TestVelocityFlow(FlowContract):
    flow = VelocityFlow


class TestFreeFlow(FlowContract):
    flow = FreeFlow


class TestGradientFlow(FlowContract):
    flow = GradientFlow
    analytes = 2


class TestDoubling(FlowContract):
    flow = Doubling


class TestQuadrature(SolverContract):
    solver = Quadrature
    settings: ClassVar = {"nodes": 24}


class TestRungeKutta4(SolverContract):
    solver = RungeKutta4
    settings: ClassVar = {"ode_steps": 60}


class TestDopri5(SolverContract):
    solver = Dopri5
    settings: ClassVar = {"rtol": 1e-9, "atol": 1e-11, "ode_steps": 200}


class TestAdjoint(SolverContract):
    solver = Adjoint
    settings: ClassVar = {"rtol": 1e-9, "atol": 1e-11, "ode_steps": 200}


@pytest.mark.parametrize("solver", ["quadrature", "rk4", "dopri5", "adjoint"])
@pytest.mark.parametrize("path", ["arc_length", "shooting"])
def test_doubling_the_rate_doubles_the_transport_under_every_solver(pairs, solver, path):
    ode, start = build(path=path, solver="rk4"), 0.0
    source, start, end = (x[:3] for x in pairs)
    plain = ode(source, start, end, solver=solver) - source
    assert plain.abs().max() > 1e-2
    ode.flow.__class__ = Doubling
    torch.testing.assert_close(ode(source, start, end, solver=solver) - source, 2.0 * plain, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("solver", ["rk4", None])
def test_doubling_the_rate_of_several_analytes_doubles_the_transport(solver):
    grid = torch.linspace(400.0, 700.0, 4)
    config = GeodesicConfig(metric_hidden=(4,), flow_hidden=4, embedding=3, ode_steps=8, newton_steps=4)
    ode = MultiAnalyteODE(grid, 2, config).double()
    with torch.no_grad():
        ode.flow.a_weight.add_(0.3)
    source, start = torch.zeros(1, 4, dtype=torch.float64), torch.tensor([[0.2, 0.3]], dtype=torch.float64)
    end = torch.tensor([[0.6, 0.5]], dtype=torch.float64)
    plain = ode(source, start, end, solver="rk4")
    ode.flow.__class__ = DoublingGradient
    torch.testing.assert_close(ode(source, start, end, solver=solver), 2.0 * plain, rtol=1e-9, atol=1e-12)
    with pytest.raises(InputError, match="has no potential"):
        ode(source, start, end, solver="potential")


@pytest.mark.parametrize("name", ["integral", "misfit", "potential", "tanh_units", "path_independent"])
def test_a_shortcut_does_not_outlive_its_formula(name):
    assert getattr(Doubling, name) == getattr(Flow, name)
    kept = type("Kept", (Doubling,), {name: getattr(SpectralFlow, name)})
    assert getattr(kept, name) == getattr(SpectralFlow, name)

    class Mixed:
        def forward(self, point):
            return point.speed

    assert getattr(type("WithMixin", (Mixed, SpectralFlow), {}), name) == getattr(Flow, name)
    assert getattr(type("Same", (SpectralFlow,), {}), name) == getattr(SpectralFlow, name)


@pytest.fixture(scope="module")
def standards():
    return geonode.simulate_assay(noise=0.002, seed=1).select_wavelengths(slice(0, 200, 10))


def test_training_honours_it_and_a_bundle_says_what_it_is(standards, tmp_path, monkeypatch):
    config = GeodesicConfig(epochs=1, members=1, flow_hidden=6, metric_hidden=(4,), flow_lr=0.0, metric_lr=0.0)
    plain = geonode.fit(standards, config, device="cpu")
    double = geonode.fit(standards, config, flow=Doubling, device="cpu")
    assert type(double.ode.flow) is Doubling and double.config.flow.name == "doubling of a test"
    # it starts at the optimum of the flow that it doubles: far from its own, and the loss says so
    assert double.history[-1]["reconstruction"] > 100.0 * plain.history[-1]["reconstruction"]
    double.save(tmp_path / "double.bundle")
    again = geonode.load(tmp_path / "double.bundle")
    assert type(again.ode.flow) is Doubling
    found, expected = (model.predict_spectra(15.0)[0].values for model in (again, double))
    assert abs(found - expected).max() <= 1e-6 * abs(expected).max()
    monkeypatch.delitem(FLOWS._items, "doubling of a test")
    with pytest.raises(BundleError, match=r"with the flow 'doubling of a test', which is not registered here; import"):
        geonode.load(tmp_path / "double.bundle")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"flow": "river"}, "flow='river' is not known"),
        ({"solver": "euler"}, "solver='euler' is not known"),
        ({"metric": type("Unknown", (PowerLaw,), {})}, "is not a registered metric"),
        ({"flow": type("Unknown", (SpectralFlow,), {})}, "is not a registered flow"),
        ({"metric": Sphere()}, "is a metric of 2 analytes"),
        ({"flow": GradientFlow}, "is for several analytes, and here is one"),
        ({"solver": "potential"}, "is for several analytes"),
        ({"metric": PowerLaw(-2.0)}, "PowerLaw is not a positive number everywhere"),  # infinite at zero
    ],
)
def test_what_cannot_be_had_is_refused_in_a_sentence(standards, given, sentence):
    with pytest.raises(InputError, match=sentence):
        geonode.fit(standards, GeodesicConfig(flow="path_independent", epochs=1, members=1), device="cpu", **given)


@pytest.mark.parametrize("exponent", [-1.0, 0.5])
def test_a_metric_of_concentration_is_converted_to_the_warp_coordinate(exponent):
    """Its geodesics are its own, whatever the warp: the path's middle is where the metric's arc length is half."""

    class Shifted(PowerLaw):
        """A power of the distance from −5, so that zero is a point like others."""

        def forward(self, c, wavelength=None):
            return super().forward(c + 5.0, wavelength)

        def in_domain(self, c):
            return c > -5.0

    metric, ode = Shifted(exponent), build()
    other = CoupledSpectralODE(torch.linspace(400.0, 700.0, 5), None, ode.warp, metric=metric).place(
        "cpu", torch.float64
    )
    c = torch.tensor([[1.0, 20.0, 40.0]], dtype=torch.float64)
    u = ode.warp.scaled(c)
    expected = metric(c).log() - ode.warp(c).log()
    torch.testing.assert_close(other.log_metric(u)[..., 0], expected, rtol=0, atol=1e-9)
    _, slope = other.log_metric_and_slope(u)
    step = 1e-6
    numeric = (other.log_metric(u + step) - other.log_metric(u - step)) / (2.0 * step)
    torch.testing.assert_close(slope, numeric, rtol=1e-4, atol=1e-6)


def test_the_networks_of_the_recipes_are_taken_as_they_are():
    network = MetricNetwork(models=1)
    ode = CoupledSpectralODE(torch.linspace(400.0, 700.0, 5), metric=network)
    assert ode.metric is network and fused.metric_weights(network) is None
    u = torch.tensor([[0.0, 0.5]])
    assert torch.equal(ode.log_metric(u)[0, :, 0], network(u, torch.full_like(u, -1.0))[0].log())


def test_all_solvers_and_flows_are_registered_with_the_names_of_the_settings():
    assert set(SOLVERS) >= {"quadrature", "rk4", "dopri5", "adjoint", "potential"}
    assert {name for name in FLOWS if "test" not in name} >= {"path_independent", "velocity", "free", "gradient"}
