"""The coupled spectral ODE for one analyte: laws, agreement of every solver, gradients."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geonode.errors import InputError
from geonode.flow import CoupledSpectralODE, path
from geonode.flow.solvers import SOLVERS, Dopri5
from geonode.geodesic import arc_length_geodesic
from geonode.metric.coordinate import WarpCoordinateMetric
from tests.flow.conftest import build
from tests.tolerances import tolerance

FLOWS = ("path_independent", "velocity", "free")
LAWFUL = ("path_independent", "velocity")
LEVELS = st.floats(0.0, 70.0)


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


# ------------------------------------------------------------------ laws


@pytest.mark.parametrize("flow", LAWFUL)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@settings(max_examples=10)
@given(st.lists(LEVELS, min_size=1, max_size=9), st.integers(0, 100))
def test_a_path_of_no_length_changes_nothing(flow: str, dtype: torch.dtype, levels: list[float], seed: int) -> None:
    ode = build(flow=flow, dtype=dtype)
    source = torch.randn(len(levels), 5, generator=torch.Generator().manual_seed(seed)).to(dtype)
    here = vector(*levels)
    assert torch.equal(ode(source, here, here.clone()), source)


@pytest.mark.parametrize("solver", ["rk4", "dopri5"])
def test_nor_does_it_for_the_general_solvers(make, pairs, solver: str) -> None:
    source, start, _ = pairs
    found = make()(source, start, start.clone(), solver=solver)
    torch.testing.assert_close(found, source, rtol=0, atol=0 if solver == "rk4" else 1e-14)  # dopri5 interpolates


@settings(max_examples=15)
@given(LEVELS, LEVELS, st.sampled_from([torch.float64, torch.float32]))
def test_there_and_back(a: float, b: float, dtype: torch.dtype) -> None:
    ode = build(dtype=dtype)
    source = torch.rand(1, 5, generator=torch.Generator().manual_seed(0)).to(dtype)
    away = ode(source, vector(a), vector(b))
    assert (ode(away, vector(b), vector(a)) - source).abs().max().item() <= 1e-6


@settings(max_examples=15)
@given(LEVELS, LEVELS, LEVELS)
def test_two_steps_are_one(a: float, b: float, c: float) -> None:
    ode = build(nodes=32)  # the law is exact; what remains is the quadrature
    source = torch.zeros(1, 5, dtype=torch.float64)
    once = ode(source, vector(a), vector(c))
    twice = ode(ode(source, vector(a), vector(b)), vector(b), vector(c))
    torch.testing.assert_close(twice, once, rtol=0, atol=1e-7)


@pytest.mark.parametrize("flow", FLOWS)
def test_the_metric_receives_a_gradient_from_the_data(make, pairs, flow: str) -> None:
    ode = make(flow=flow)
    source, start, end = pairs
    ode(source, start, end).square().sum().backward()
    largest = max(p.grad.abs().max().item() for p in ode.metric.parameters())
    assert largest > 1e-4, "m_θ must be trained by the spectra, or it earns nothing"


def test_it_does_so_from_its_zero_start(pairs) -> None:
    ode = CoupledSpectralODE(torch.linspace(400, 700, 5), seed=1)
    source, start, end = (x.float() for x in pairs)
    torch.nn.init.normal_(ode.flow.a_weight)
    ode(source, start / 70.0, end / 70.0).square().sum().backward()
    assert ode.metric.network.mlp.weights[-1].grad.abs().max().item() > 1e-6


# ------------------------------------------------------------------ solvers


@pytest.mark.smoke
@pytest.mark.parametrize("flow", FLOWS)
def test_all_solvers_agree(make, pairs, flow: str) -> None:
    ode = make(flow=flow)
    source, start, end = pairs
    with torch.no_grad():
        quadrature = ode(source, start, end)
        for solver in ("rk4", "dopri5", "adjoint"):
            torch.testing.assert_close(
                ode(source, start, end, solver=solver), quadrature, rtol=0, atol=2e-6, msg=solver
            )
        assert (quadrature - source).abs().max().item() > 0.1, "a flow that does nothing would agree with anything"


@pytest.mark.smoke
@pytest.mark.parametrize("flow", FLOWS)
def test_all_gradients_agree(make, pairs, flow: str) -> None:
    source, start, end = pairs
    gradients = {}
    for solver in ("quadrature", "rk4", "dopri5", "adjoint"):
        ode = make(flow=flow, rtol=1e-6, atol=1e-8, ode_steps=20)
        ode(source, start, end, solver=solver).square().sum().backward()
        gradients[solver] = {name: p.grad for name, p in ode.named_parameters() if p.grad is not None}
    for solver in ("rk4", "dopri5", "adjoint"):
        for name, reference in gradients["quadrature"].items():
            scale = reference.abs().max().item()
            difference = (gradients[solver][name] - reference).abs().max().item()
            assert difference <= 1e-4 * scale + 1e-7, (solver, name, difference, scale)


@pytest.mark.parametrize("flow", ("velocity", "free"))
@pytest.mark.parametrize("together", [1, 60, 200])
def test_nodes_that_are_evaluated_together_are_those_one_by_one(monkeypatch, pairs, flow: str, together: int) -> None:
    """Of 16 nodes one, two or six at a time, or all: values and gradients to rounding; no path at all is no error."""
    source, start, end = pairs
    found = []
    for points in (2**14, together):
        monkeypatch.setattr(path, "_TOGETHER", points)
        ode = build(flow=flow)
        spectra = ode(source, start, end)
        found.append([spectra, *torch.autograd.grad(spectra.square().sum(), [p for p in ode.parameters()])])
        assert ode(source[:0], start[:0], end[:0]).shape == (0, 5)
    scale = max(float(g.abs().max()) for g in found[0][1:])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12 * scale)


@pytest.mark.parametrize("solver", ["dopri5", "adjoint"])
def test_adaptive_steps_end_at_the_ends(solver: str) -> None:
    class Recording(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rate, self.seen = torch.nn.Parameter(torch.tensor(0.3, dtype=torch.float64)), []

        def forward(self, t: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
            self.seen.append(float(t.detach()))
            return self.rate * state

    rhs = Recording()
    state = torch.ones(4, 3, dtype=torch.float64)
    for _ in range(2):  # the options of one backward pass must not be those of the next reversed
        end = SOLVERS[solver](rtol=1e-3, atol=1e-5).integrate(rhs, state)
        torch.testing.assert_close(end, math.exp(0.3) * state, rtol=1e-4, atol=0)
        (gradient,) = torch.autograd.grad(end.sum(), [rhs.rate])
        torch.testing.assert_close(gradient.item(), 12 * math.exp(0.3), rtol=1e-3, atol=0)
    assert min(rhs.seen) >= 0.0 and max(rhs.seen) <= 1.0


@pytest.mark.parametrize("solver", ["rk4", "dopri5"])
def test_shooting_finds_the_same_path(make, pairs, solver: str) -> None:
    source, start, end = pairs
    closed = make(solver=solver)
    shot = make(solver=solver, path="shooting")
    with torch.no_grad():
        expected = closed(source, start, end)
        torch.testing.assert_close(shot(source, start, end), expected, rtol=0, atol=1e-5)


def test_the_original_recipe_without_warp(pairs) -> None:
    source, start, end = pairs
    settings = {"warp": False, "flow": "free", "flow_hidden": 16}
    shot, closed = (build(path=path, solver="rk4", **settings) for path in ("shooting", "arc_length"))
    with torch.no_grad():
        torch.testing.assert_close(shot(source, start, end), closed(source, start, end), rtol=0, atol=1e-5)
    assert shot.metric.network.mlp.sizes == (2, 8, 8, 1) and type(shot.metric).__name__ == "MetricNetwork"


def test_a_path_that_cannot_be_found_is_nan_and_alone(make, pairs) -> None:
    source, start, end = pairs
    ode = make(solver="rk4", path="shooting", newton_steps=1, ode_steps=4)
    good = make(solver="rk4", path="shooting", newton_steps=8, ode_steps=4)
    found, expected = ode(source, start, end), good(source, start, end)
    lost = torch.isnan(found)
    assert not torch.isnan(expected).any()
    torch.testing.assert_close(found[~lost], expected[~lost], rtol=0, atol=1e-6)
    torch.where(lost, 0.0, found).sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in ode.parameters() if p.grad is not None)


def test_the_state_is_one_row_per_pair_and_wavelength(make, pairs, monkeypatch) -> None:
    shapes = []

    def spy(self, rhs, state):
        shapes.append((tuple(state.shape), tuple(rhs(torch.zeros(()), state).shape)))
        return state

    monkeypatch.setattr(Dopri5, "integrate", spy)
    make()(*pairs, solver="dopri5")
    assert shapes == [((30, 3), (30, 3))]


# ------------------------------------------------------------------ derivatives


@pytest.mark.parametrize("flow", FLOWS)
def test_gradcheck(make, flow: str) -> None:
    ode = make(flow=flow, metric_hidden=(3,), flow_hidden=3, table_nodes=32, nodes=6)
    source = torch.rand(2, 5, dtype=torch.float64)
    names = [name for name, p in ode.named_parameters() if p.requires_grad]
    weights = [p.detach().clone().requires_grad_() for p in ode.parameters() if p.requires_grad]
    start, end = vector(5.0, 40.0).requires_grad_(), vector(50.0, 20.0).requires_grad_()

    def run(start: torch.Tensor, end: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(ode, dict(zip(names, weights, strict=True)), (source, start, end))

    assert torch.autograd.gradcheck(run, (start, end, *weights), fast_mode=True)
    if flow == "path_independent":
        assert torch.autograd.gradgradcheck(run, (start, end, *weights), fast_mode=True)


def test_derivative_by_the_end_exists_at_the_start(make) -> None:
    """dA/dc where nothing moves: what sensitivities are made of."""
    ode = make()
    source = torch.zeros(1, 5, dtype=torch.float64)
    here, there = vector(20.0), vector(20.0).requires_grad_()
    (slope,) = torch.autograd.grad(ode(source, here, there)[0, 2], there)
    h = 1e-4
    difference = (ode(source, here, here + h) - ode(source, here, here - h))[0, 2] / (2 * h)
    torch.testing.assert_close(slope[0], difference, rtol=1e-6, atol=1e-9)


# ------------------------------------------------------------------ metric, models, input


def test_full_metric_agrees_with_the_closed_form_solver(make) -> None:
    ode = make(models=2)
    metric = ode.metric_in_u()
    assert isinstance(metric, WarpCoordinateMetric)
    start, end = ode.to_u(vector(0.0, 30.0)[None].expand(2, 2)), ode.to_u(vector(50.0, 70.0)[None].expand(2, 2))
    wl = ode.wavelength.double().expand(2, 2, 5)
    solution = arc_length_geodesic(metric, start[..., None].expand(2, 2, 5), end[..., None].expand(2, 2, 5), wl)
    assert bool(solution.converged.all())
    table = ode.on_table()
    s_hat = ode.table.scaled(ode.table.phi(torch.cat([start, end], 1)), table.density)
    length = 0.5 * ode.table.length(table.density) * (s_hat[:, 2:] - s_hat[:, :2])
    speed = torch.exp(0.5 * ode.log_metric(start))
    torch.testing.assert_close(solution.initial_velocity, length / speed, **tolerance(torch.float64, "solver"))


@pytest.mark.parametrize("flow", FLOWS)
def test_a_stack_is_its_models(make, pairs, flow: str) -> None:
    source, start, end = pairs
    stack, single = make(models=2, flow=flow), make(models=1, flow=flow)
    own = single.state_dict()
    together = stack(source.expand(2, 6, 5), start.expand(2, 6), end.expand(2, 6))
    for m in range(2):
        single.load_state_dict(
            {k: v if v.shape == own[k].shape else v[m : m + 1] for k, v in stack.state_dict().items()}
        )
        torch.testing.assert_close(together[m], single(source, start, end), rtol=1e-9, atol=1e-9)


def test_without_metric_network(make, pairs) -> None:
    ode = make(metric_network=False)
    source, start, end = pairs
    with torch.no_grad():
        torch.testing.assert_close(ode(source, start, end), ode(source, start, end, solver="dopri5"), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda ode, x, a: ode(x, a, a + 20.0), "outside the range this model was trained for"),
        (lambda ode, x, a: ode(x, a, a[:1]), r"must be \[M, B, W\]"),
        (lambda ode, x, a: ode(x[:, :3], a, a), r"must be \[M, B, W\]"),
        (lambda ode, x, a: ode(x, a, a, solver="euler"), "choose one of quadrature, rk4, dopri5, adjoint"),
        (lambda ode, x, a: CoupledSpectralODE(torch.tensor([500.0])), "at least two"),
    ],
)
def test_bad_input(make, call, says: str) -> None:
    with pytest.raises(InputError, match=says):
        call(make(), torch.zeros(2, 5, dtype=torch.float64), vector(60.0, 70.0))
