"""rk4 of the coupled ODE by the kernel that takes all steps at once: in the interpreter on a CPU, compiled on a GPU."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import geonode_kernels as gk
from geonode import GeodesicConfig
from geonode.flow import CoupledSpectralODE, stages
from geonode.flow.free import FreeFlow
from geonode.flow.solvers import RungeKutta4
from geonode.flow.transport import PathTransport
from geonode.training.loss import losses
from geonode.training.terms.batch import PairsBatch
from geonode_kernels import _dispatch
from tests.tolerances import tolerance

pytest.importorskip("triton")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PAIRS, WIDTH, MODELS = 5, 3, 2
KINDS = {
    "shot": {},
    "closed form": {"path": "arc_length"},
    "warped and wide": {"warp": True, "flow_hidden": 17, "metric_hidden": (5, 7)},
}


@pytest.fixture
def kernels(monkeypatch):
    """``auto`` takes kernels here too: in Triton's interpreter where there is no GPU."""
    verify = _dispatch.verify
    monkeypatch.setattr(_dispatch, "verify", lambda tensors, explicit=False: verify(tensors, True))
    monkeypatch.setattr(_dispatch, "_taken", {})


def build(dtype=torch.float32, **changes) -> CoupledSpectralODE:
    """The blueprint, small, its metric far from flat."""
    small = {"precision": "32-true", "metric_hidden": (6, 5), "flow_hidden": 4, "ode_steps": 3, "newton_steps": 5}
    config = GeodesicConfig.blueprint(**{**small, **changes})
    ode = CoupledSpectralODE(torch.linspace(400.0, 700.0, WIDTH), config, models=MODELS, seed=3)
    draw = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in ode.parameters():
            parameter += 0.2 * torch.randn(parameter.shape, generator=draw)
    return ode.place(DEVICE, dtype)


def pairs(dtype=torch.float32, index=None) -> PairsBatch:
    draw = torch.Generator().manual_seed(4)
    start, end = (2.0 * torch.rand(2, MODELS, PAIRS, generator=draw, dtype=torch.float64) - 1.0).to(DEVICE)
    width = WIDTH if index is None else len(index)
    source, target = torch.rand(2, MODELS, PAIRS, width, generator=draw).to(DEVICE, dtype)
    weight = torch.rand(MODELS, PAIRS, generator=draw).to(DEVICE, dtype)
    return PairsBatch(start, end, source, target, weight, index)


def step(ode: CoupledSpectralODE, batch: PairsBatch) -> list[torch.Tensor]:
    """The loss of each model and its gradient by every parameter."""
    total = losses(ode, batch, {"reconstruction": 1.0})["total"]
    found = torch.autograd.grad(total.sum(), list(ode.parameters()), materialize_grads=True, allow_unused=True)
    return [total.detach(), *found]


def by_itself(ode: CoupledSpectralODE, batch: PairsBatch, steps: int) -> list[torch.Tensor]:
    """Spectra that were carried in other steps than their paths were shot in, and gradients."""
    found = ode.transport(batch.source, batch.start, batch.end, solver=RungeKutta4(steps))
    total = torch.nan_to_num(found).square().mean()
    return [found.detach(), *torch.autograd.grad(total, list(ode.parameters()))]


def test_other_steps_than_those_of_the_shot_are_taken_apart_from_it(request):
    exact = by_itself(build(torch.float64), pairs(torch.float64), 2)
    request.getfixturevalue("kernels")
    ours = by_itself(build(), pairs(), 2)
    assert gk.paths_taken()["coupled_rk4"] == "triton" and "coupled_shot" not in gk.paths_taken()
    for a, e in zip(ours, exact, strict=True):
        torch.testing.assert_close(a.double(), e, **tolerance(torch.float32, "gradient"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_and_every_gradient_are_those_of_plain_torch(request, kind):
    exact = step(build(torch.float64, **KINDS[kind]), pairs(torch.float64))
    request.getfixturevalue("kernels")
    ours = step(build(**KINDS[kind]), pairs())
    taken = "coupled_shot" if kind != "closed form" else "coupled_rk4"
    assert gk.paths_taken()[taken] == "triton"
    for name, a, e in zip(["loss", *dict(build().named_parameters())], ours, exact, strict=True):
        torch.testing.assert_close(
            a.double(), e, **tolerance(torch.float32, "gradient"), msg=lambda text, name=name: f"{name}: {text}"
        )


def test_chosen_wavelengths_are_carried_as_all_are(kernels):
    index = torch.tensor([2, 0], device=DEVICE)
    ode, batch = build(path="arc_length"), pairs()
    whole = ode.transport(batch.source, batch.start, batch.end)
    part = ode.transport(batch.source[..., index], batch.start, batch.end, index)
    torch.testing.assert_close(part, whole[..., index], **tolerance(torch.float32))


def test_a_geodesic_that_is_not_found_is_nan_and_counts_for_nothing(kernels):
    ode, batch = build(newton_steps=1, ode_steps=1), pairs()
    found = ode.transport(batch.source, batch.start, batch.end)
    lost = torch.isnan(found)
    assert 0 < int(lost.sum()) < lost.numel()
    assert all(bool(torch.isfinite(g).all()) for g in step(ode, batch))


class Doubled(FreeFlow):
    """A formula of one's own: no kernel knows it."""

    def forward(self, point):
        return 2.0 * super().forward(point)


class Euler(RungeKutta4):
    """An integrator of one's own under another's steps."""

    def integrate(self, rhs, state):
        return state + rhs(0.0, state)


def test_a_flow_or_integrator_of_ones_own_is_honoured(kernels):
    batch, grid = pairs(), torch.linspace(-1.0, 1.0, WIDTH)
    torch.manual_seed(0)
    plain, doubled = (kind(grid, 4, models=MODELS, seed=5) for kind in (FreeFlow, Doubled))
    changes = []
    for flow in (plain, doubled):
        ode = build(path="arc_length")
        ode.flow = flow.to(DEVICE)
        changes.append(ode.transport(batch.source, batch.start, batch.end) - batch.source)
    torch.testing.assert_close(changes[1], 2.0 * changes[0], **tolerance(torch.float32, "solver"))
    assert "Doubled is no single layer" in gk.paths_taken()["coupled_rk4"]
    ode = build(path="arc_length")
    by_euler = ode.transport(batch.source, batch.start, batch.end, solver=Euler(4))
    assert not torch.allclose(by_euler, ode.transport(batch.source, batch.start, batch.end), atol=1e-3)


def one_by_one(ode: CoupledSpectralODE, batch: PairsBatch) -> torch.Tensor:
    """The coupled state integrated as any method integrates it, a step after the other."""
    problem = PathTransport(ode, batch.source, batch.start, batch.end, ode.on_table(batch.index), batch.index)
    solver = ode.solver()
    return problem.spectra(solver.integrate(problem.right_hand_side(False), problem.initial_state()))


@pytest.mark.parametrize("at_once", [1, 4 * MODELS * PAIRS * WIDTH * 2, 2**22])
@pytest.mark.parametrize(
    "changes",
    [
        {"flow": "path_independent", "warp": True},
        {"flow": "velocity", "warp": True, "path": "arc_length"},
        {"christoffel": "finite_difference"},
        {"christoffel": "grid", "flow": "velocity", "warp": True},
        {"metric": "flat"},
    ],
    ids=str,
)
def test_asking_the_flow_once_is_taking_the_steps_one_by_one(monkeypatch, changes, at_once):
    monkeypatch.setattr(stages, "AT_ONCE", at_once)
    ode, batch = build(torch.float64, **changes), pairs(torch.float64)
    expected = one_by_one(ode, batch)
    parameters = list(ode.parameters())

    def gradients(spectra):
        return torch.autograd.grad(spectra.nan_to_num().square().mean(), parameters, allow_unused=True)

    found = ode.transport(batch.source, batch.start, batch.end)
    torch.testing.assert_close(found, expected, equal_nan=True, **tolerance(torch.float64))
    for a, e in zip(gradients(found), gradients(expected), strict=True):
        assert (a is None) == (e is None)
        if a is not None and e is not None:
            torch.testing.assert_close(a, e, **tolerance(torch.float64, "gradient"))


@pytest.mark.parametrize("flow", ["velocity", "path_independent"])
def test_where_a_kernel_holds_the_path_alone_the_flow_is_asked_at_its_stages(request, flow):
    changes = {"flow": flow, "warp": True, "path": "arc_length"}
    exact = step(build(torch.float64, **changes), pairs(torch.float64))
    request.getfixturevalue("kernels")
    ours = step(build(**changes), pairs())
    assert gk.paths_taken()["geodesic_rk4"] == "triton" and "no single layer" in gk.paths_taken()["coupled_rk4"]
    for a, e in zip(ours, exact, strict=True):
        torch.testing.assert_close(a.double(), e, **tolerance(torch.float32, "gradient"))


RECORDED = [
    {},
    {"path": "arc_length"},
    {"christoffel": "finite_difference"},
    {"christoffel": "grid"},
    {"flow": "velocity", "warp": True},
    {"flow_hidden": 65},
    {"metric_hidden": (4, 129)},
    {"metric": "flat"},
]
REFUSED = [
    ({"solver": "adjoint"}, "solver='adjoint' with path='shooting' decides its steps by looking at values"),
    ({"solver": "dopri5", "path": "arc_length"}, "decides its steps by looking"),
]


class LooksAtValues(TorchDispatchMode):
    """Counts what would wait for a device: values read, and results whose shape depends on them."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function in (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.nonzero.default):
            self.seen.append(function)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("changes", RECORDED, ids=str)
def test_what_a_graph_can_hold_looks_at_no_value(changes):
    ode, batch = build(**changes), pairs()
    assert ode.capture_refusal() is None
    with LooksAtValues() as looks:
        step(ode, batch)
    assert looks.seen == []


@pytest.mark.parametrize(("changes", "reason"), REFUSED, ids=str)
def test_what_a_graph_cannot_hold_says_why(changes, reason):
    ode, batch = build(**changes), pairs()
    assert reason in (ode.capture_refusal() or "")
    with LooksAtValues() as looks:
        step(ode, batch)
    assert looks.seen


def test_an_integrator_of_ones_own_is_not_recorded(monkeypatch):
    ode = build()
    monkeypatch.setattr(ode, "solver", lambda which=None: Euler(4))
    assert "Euler steps by itself" in (ode.capture_refusal() or "")
