"""On a GPU the library takes its kernels, and they give what plain torch gives: geodesics, a fit by shooting, the
blueprint's step."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

import geonode
import geonode_kernels as gk
from geonode.christoffel import Grid
from geonode.data import simulate_assay
from geonode.flow import CoupledSpectralODE
from geonode.metric import MetricNetwork
from geonode.training.ensemble import train
from geonode.training.loss import losses
from geonode.training.problem import build_problem, fit_gp
from geonode.training.terms.batch import PairsBatch
from geonode_kernels import _dispatch
from tests.kernels.common import SPLIT, relative
from tests.tolerances import tolerance

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here"),
]
PAIRS, WIDTH = 30, 601


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """Nothing was taken before the test."""
    monkeypatch.setattr(_dispatch, "_taken", {})


def by_torch(monkeypatch, function):
    """What ``function`` gives where every kernel is refused."""
    with monkeypatch.context() as patch:
        patch.setattr(_dispatch, "verify", lambda tensors, explicit=False: "this test wants torch")
        patch.setattr(_dispatch, "_taken", {})
        result = function()
        assert all(path.startswith("torch") for path in gk.paths_taken().values())
    return result


def took(*ops):
    """Each op went by its kernel since the test began."""
    taken = gk.paths_taken()
    assert all(taken.get(op, "").split(";")[0] == "triton" for op in ops), taken


def close(ours, single, exact, kind):
    """Within the table's tolerance of float64; where results cancel, within `SPLIT` times what torch's float32 is off.

    ``ours`` by kernels, ``single`` by torch in float32, ``exact`` by torch in float64, all on the GPU.
    """
    allowed = tolerance(torch.float32, kind)["rtol"]
    for i, (a, b, e) in enumerate(zip(ours, single, exact, strict=True)):
        assert a.dtype == b.dtype == torch.float32 and e.dtype == torch.float64
        limit = max(allowed, SPLIT * relative(b, e))
        assert relative(a, e) <= limit or e.norm() < 1e-6, f"{kind} {i}: {relative(a, e):.1e}, limit {limit:.1e}"


def problems(dtype=torch.float32):
    """A metric of the original recipe, start, end or velocity, and wavelength: [30, 601]."""
    draw = torch.Generator().manual_seed(5)
    metric = MetricNetwork(seed=3).to("cuda", dtype)
    a, b = torch.rand(2, PAIRS, WIDTH, generator=draw).to("cuda", dtype)
    return metric, a, b, torch.linspace(-1.0, 1.0, WIDTH).to("cuda", dtype)


def with_gradients(function, metric, *points):
    """Results of a public function, and gradients to the points and every parameter."""
    leaves = [p.detach().clone().requires_grad_() for p in points]
    results = function(metric, *leaves)
    results = results if isinstance(results, tuple) else (results,)
    loss = sum(r.square().mean() for r in results)
    gradients = torch.autograd.grad(loss, [*leaves, *metric.parameters()], materialize_grads=True, allow_unused=True)
    return [r.detach() for r in results], gradients


def exponential(metric, a, v, wavelength):
    found = geonode.exponential_map(metric, a, v - 0.5, wavelength)
    return found.end, found.end_velocity, found.at(0.5)


CALLS = {
    "exact": (lambda m, a, b, w: geonode.christoffel(m, a + 0.0 * b, w), ["metric_christoffel"]),
    "finite_difference": (
        lambda m, a, b, w: geonode.christoffel(m, a + 0.0 * b, w, method="finite_difference", epsilon=0.05),
        ["metric_christoffel", "christoffel_fd"],
    ),
    "grid": (
        lambda m, a, b, w: geonode.christoffel(
            m, a + 0.0 * b, w, method=Grid(m, 0.0, 1.0, -1.0, 1.0, shape=(33, 17), dtype=a.dtype)
        ),
        ["metric_christoffel", "christoffel_grid"],
    ),
    "exponential_map": (exponential, ["geodesic_rk4", "metric_density"]),
    "shoot": (lambda m, a, b, w: geonode.shoot(m, a, b, w).initial_velocity, ["geodesic_shoot"]),
    "closed_form": (lambda m, a, b, w: geonode.arc_length_geodesic(m, a, b, w).initial_velocity, ["metric_density"]),
}


@pytest.mark.parametrize("name", CALLS)
def test_geometry_takes_its_kernels_and_equals_torch_with_every_gradient(monkeypatch, name):
    function, ops = CALLS[name]
    ours = with_gradients(function, *problems())
    took(*ops)
    single = by_torch(monkeypatch, lambda: with_gradients(function, *problems()))
    exact = with_gradients(function, *problems(torch.float64))
    for i, kind in enumerate(("solver", "gradient")):
        close(ours[i], single[i], exact[i], kind)


def test_statuses_of_a_grid_of_problems_are_exactly_those_of_torch(monkeypatch):
    metric, *_ = problems()
    with torch.no_grad():
        for weight in metric.network.mlp.weights:
            weight *= 3.0
    ends = torch.cat([torch.linspace(-20.0, 20.0, 57), torch.tensor([1e20, 3e38, torch.nan, torch.inf])]).cuda()
    wavelength = torch.tensor([-1.0, 0.1, 0.9], device="cuda")

    def statuses():
        found = geonode.shoot(metric, ends[:, None, None], ends[:, None], wavelength)
        paths = geonode.exponential_map(metric, ends[:, None, None], ends[:, None], wavelength)
        return found.status, paths.status

    ours = statuses()
    took("geodesic_shoot", "geodesic_rk4")
    for status, theirs in zip(ours, by_torch(monkeypatch, statuses), strict=True):
        assert torch.equal(status, theirs), f"{int((status != theirs).sum())} of {status.numel()} differ"
        assert len(status.unique()) >= 3


def step(config, pairs=24, width=61, mixed=False, dtype=torch.float32):
    """Loss of a coupled ODE drawn at random, and its gradient by every parameter."""
    draw = torch.Generator().manual_seed(2)
    ode = CoupledSpectralODE(torch.linspace(350.0, 950.0, width), config, seed=0)
    with torch.no_grad():
        for parameter in ode.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=draw)
    ode = ode.place("cuda", dtype)
    start, end = (2.0 * torch.rand(2, 1, pairs, generator=draw, dtype=torch.float64) - 1.0).cuda()
    source, target = torch.rand(2, 1, pairs, width, generator=draw).to("cuda", dtype)
    batch = PairsBatch(start, end, source, target, torch.ones(1, pairs, dtype=dtype, device="cuda"))
    with torch.autocast("cuda", torch.float16, enabled=mixed):
        total = losses(ode, batch, {"reconstruction": 1.0})["total"]
    found = torch.autograd.grad(total.sum(), list(ode.parameters()), materialize_grads=True, allow_unused=True)
    return [total.detach()], found


@pytest.mark.parametrize(
    ("flow", "ops"), [("velocity", ["path_points", "velocity_loss"]), ("path_independent", ["flow_loss"])]
)
@pytest.mark.parametrize(("pairs", "width"), [(24, 61), (61, 37), (64, 48)])
def test_the_step_of_a_fused_flow_takes_its_kernels_and_equals_torch(monkeypatch, flow, ops, pairs, width):
    config = geonode.GeodesicConfig(flow=flow, precision="32-true")
    ours = step(config, pairs, width)
    took("metric_value", "arc_length", *ops)
    single = by_torch(monkeypatch, lambda: step(config, pairs, width))
    exact = step(config, pairs, width, dtype=torch.float64)
    for i, kind in enumerate(("solver", "gradient")):
        close(ours[i], single[i], exact[i], kind)


@pytest.mark.parametrize("solver", ["rk4", "dopri5", "adjoint"])
@pytest.mark.parametrize("christoffel", ["exact", "finite_difference", "grid"])
def test_the_blueprints_step_takes_its_kernels_and_equals_torch(monkeypatch, christoffel, solver):
    config = geonode.GeodesicConfig.blueprint(precision="32-true", solver=solver, christoffel=christoffel)
    ours = step(config)
    if christoffel == "exact" and solver == "rk4":
        took("coupled_shot")
    elif christoffel == "exact":
        took("geodesic_shoot", "metric_christoffel")
    else:
        took("metric_christoffel", {"finite_difference": "christoffel_fd"}.get(christoffel, "metric_christoffel"))
        assert "another rule" in gk.paths_taken()["geodesic_shoot"]
    single = by_torch(monkeypatch, lambda: step(config))
    exact = step(config.replace(rtol=1e-9, atol=1e-11), dtype=torch.float64)
    for i, kind in enumerate(("solver", "gradient")):
        close(ours[i], single[i], exact[i], kind)


@pytest.mark.parametrize("solver", ["rk4", "dopri5", "adjoint"])
def test_the_blueprints_step_in_half_precision_takes_its_kernels(solver):
    config = geonode.GeodesicConfig.blueprint(solver=solver)
    loss, gradients = step(config, mixed=True)
    took(*(["coupled_shot"] if solver == "rk4" else ["geodesic_shoot", "metric_christoffel"]))
    exact, _ = step(geonode.GeodesicConfig.blueprint(precision="32-true", solver=solver))
    assert loss != exact  # half precision was honoured
    torch.testing.assert_close(loss, exact, **tolerance(torch.bfloat16, "solver"))
    assert all(bool(torch.isfinite(g).all()) for g in gradients)


@pytest.mark.parametrize("flow", ["free", "path_independent"])
def test_a_fit_by_shooting_takes_its_kernels_and_ends_where_torch_ends(monkeypatch, flow):
    assay = simulate_assay(wavelengths=np.linspace(300.0, 700.0, 21).tolist())
    config = geonode.GeodesicConfig(
        path="shooting", solver="rk4", flow=flow, epochs=2, precision="32-true", predictor="node",
        ode_steps=4, newton_steps=4, batch_size=16,
    )  # fmt: skip

    def fitted():
        model = geonode.fit(assay, config, device="cuda")
        return torch.as_tensor(np.asarray(model.predict_spectra(assay.levels)[0]))

    ours = fitted()
    took(*(["coupled_shot"] if flow == "free" else ["geodesic_shoot", "metric_christoffel"]))
    theirs = by_torch(monkeypatch, fitted)
    assert (ours - theirs).abs().max() <= 1e-3 * theirs.abs().max()


def _losses(problem, config, backend):
    """The total loss of each epoch."""
    found = []
    train(problem, config, seed=1, backend=backend, report=found.append)
    return torch.tensor([row["total"] for row in found[0].history])


@pytest.mark.parametrize("precision", ["32-true", "16-mixed"])
@pytest.mark.parametrize(
    "changes",
    [
        {"christoffel": "finite_difference"},
        {"christoffel": "grid"},
        {"flow": "velocity", "warp": True},
        {"flow": "path_independent", "warp": True, "path": "arc_length"},
    ],
    ids=str,
)
def test_fixed_steps_that_no_one_kernel_holds_are_captured_and_train_the_same(changes, precision):
    """Other rules of Γ, other flows: the graph holds every launch of shooting and steps."""
    assay = simulate_assay(wavelengths=np.linspace(300.0, 700.0, 9).tolist())
    config = geonode.GeodesicConfig.blueprint(
        precision=precision, epochs=4, batch_size=16, micro_batch=None, ode_steps=4, newton_steps=2, **changes
    )
    problem = build_problem([fit_gp(assay)], assay.wavelengths, config).to("cuda", torch.float32)

    history = partial(_losses, problem, config)
    captured = history("triton")  # an error where steps cannot be captured
    took("metric_christoffel", "adamw")
    kind = torch.float32 if precision == "32-true" else torch.bfloat16
    torch.testing.assert_close(captured, history("torch"), **tolerance(kind, "solver"))
    assert bool(torch.isfinite(captured).all()) and len(captured.unique()) == len(captured)


def test_the_blueprints_training_is_captured_repeatable_and_equal_to_torch(monkeypatch):
    assay = simulate_assay(wavelengths=np.linspace(300.0, 700.0, 21).tolist())
    config = geonode.GeodesicConfig.blueprint(
        precision="32-true", epochs=20, batch_size=32, micro_batch=16, ode_steps=10, newton_steps=6
    )
    problem = build_problem([fit_gp(assay)], assay.wavelengths, config).to("cuda", torch.float32)

    history = partial(_losses, problem, config)
    captured = history("triton")  # an error where steps cannot be captured
    took("coupled_shot", "adamw")
    assert torch.equal(captured, history("triton"))
    torch.testing.assert_close(captured, history("torch"), **tolerance(torch.float32, "solver"))
    plain = by_torch(monkeypatch, lambda: history("torch"))
    torch.testing.assert_close(captured, plain, **tolerance(torch.float32, "solver"))
