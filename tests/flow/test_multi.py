"""Several analytes: the spectrum depends on concentrations alone, whatever path the metric prescribes."""

from __future__ import annotations

import math

import pytest
import torch

from geonode.config import GeodesicConfig
from geonode.errors import InputError
from geonode.flow import FlowPoint, MultiAnalyteODE
from geonode.metric import Metric, PoincareHalfPlane

WAVELENGTHS = torch.linspace(400.0, 700.0, 3)


class Upper(Metric):
    """The half-plane moved so that the unit square of warp coordinates [−1, 1]² lies inside it."""

    def __init__(self) -> None:
        super().__init__(dim=2)
        self.plane = PoincareHalfPlane()

    @staticmethod
    def moved(c: torch.Tensor) -> torch.Tensor:
        return c + torch.tensor([0.0, 2.5], dtype=c.dtype)

    def forward(self, c: torch.Tensor, wavelength: torch.Tensor | None = None) -> torch.Tensor:
        return self.plane(self.moved(c), wavelength)

    def value_and_derivative(self, c: torch.Tensor, wavelength: torch.Tensor | None = None):
        return self.plane.value_and_derivative(self.moved(c), wavelength)

    def two_derivatives(self, c: torch.Tensor, wavelength: torch.Tensor | None = None):
        return self.plane.two_derivatives(self.moved(c), wavelength)


def build(metric: Metric | None = None, **changes) -> MultiAnalyteODE:
    config = GeodesicConfig(metric_hidden=(6,), flow_hidden=8, ode_steps=20, newton_steps=4, rtol=1e-8, atol=1e-10)
    ode = MultiAnalyteODE(WAVELENGTHS, 2, config.replace(**changes), metric=metric, seed=2).double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in ode.flow.parameters():
            parameter.add_(0.5 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return ode


def pairs(count: int = 3) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    draw = lambda *shape: torch.rand(*shape, generator=generator, dtype=torch.float64)  # noqa: E731
    return draw(count, 3), draw(count, 2), draw(count, 2)


@pytest.mark.parametrize("solver", ["rk4", "dopri5", "adjoint", "potential"])
def test_the_solver_of_the_settings_is_the_one_that_is_taken(solver: str) -> None:
    source, start, end = pairs()
    with torch.no_grad():
        few = {"rtol": 1e-3, "atol": 1e-5, "ode_steps": 10, "newton_steps": 4}
        configured = build(flow="gradient", solver=solver, **few)(source, start, end)
        asked = build(**few)(source, start, end, solver=solver)
        default = build(**few)(source, start, end)
    assert torch.equal(configured, asked)
    assert torch.equal(configured, default) == (solver == "potential")


@pytest.mark.parametrize("solver", ["rk4", "dopri5"])
def test_potential_and_path_agree(solver: str) -> None:
    ode = build()
    source, start, end = pairs()
    with torch.no_grad():
        by_potential = ode(source, start, end)
        torch.testing.assert_close(ode(source, start, end, solver=solver), by_potential, rtol=0, atol=1e-5)
    assert (by_potential - source).abs().max().item() > 0.1


def test_the_path_is_bent_and_the_spectrum_does_not_notice() -> None:
    source, start, end = pairs()
    flat, bent = build(), build(metric=Upper())
    bent.flow.load_state_dict(flat.flow.state_dict())
    with torch.no_grad():
        middle = bent.geodesics(start, end).at(0.5)
        chord = 0.5 * (bent.to_x(start) + bent.to_x(end))[:, None]
        assert (middle - chord).abs().max().item() > 1e-2
        torch.testing.assert_close(bent(source, start, end, solver="rk4"), flat(source, start, end), rtol=0, atol=1e-4)


def test_laws() -> None:
    ode = build()
    source, start, end = pairs()
    assert torch.equal(ode(source, start, start.clone()), source)
    back = ode(ode(source, start, end), end, start)
    torch.testing.assert_close(back, source, rtol=0, atol=1e-12)


def test_the_flow_is_the_gradient_of_its_potential() -> None:
    flow = build().flow
    x = torch.rand(1, 4, 2, dtype=torch.float64)
    v = torch.randn(1, 4, 2, dtype=torch.float64)
    _, along = torch.func.jvp(flow.potential, (x,), (v,))
    one = FlowPoint(x[:, :, None], None, v[:, :, None], None)  # the same place at every wavelength
    torch.testing.assert_close(flow(one), along)
    wide = flow(FlowPoint(x[:, :, None].expand(1, 4, 3, 2), None, v[:, :, None].expand(1, 4, 3, 2), None))
    torch.testing.assert_close(wide, along)
    index = torch.tensor([2, 0])
    torch.testing.assert_close(flow.potential(x, index), flow.potential(x)[..., index])
    assert torch.equal(flow(one._replace(velocity=torch.zeros_like(one.velocity))), torch.zeros_like(along))


def test_a_lost_path_is_nan_and_alone() -> None:
    source, start, end = pairs()
    start = start.clone()
    start[1, 0] = math.nan
    ode = build()
    found = ode(source, start, end, solver="rk4")
    assert torch.isnan(found[1]).all() and torch.isfinite(found[[0, 2]]).all()
    found[[0, 2]].sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in ode.parameters() if p.grad is not None)


def test_bad_input() -> None:
    with pytest.raises(InputError, match="use CoupledSpectralODE for one"):
        MultiAnalyteODE(WAVELENGTHS, 1)
    with pytest.raises(InputError, match="1 warps were given for 2 analytes"):
        MultiAnalyteODE(WAVELENGTHS, 2, warps=[build().warps[0]])
    with pytest.raises(InputError, match=r"must be \[B, 2\]"):
        build().to_x(torch.zeros(3))
