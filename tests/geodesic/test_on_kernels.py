"""Where the public functions take kernels: in the interpreter on a CPU, compiled on a GPU; and what they refuse."""

from __future__ import annotations

import pytest
import torch

import geonode
import geonode_kernels as gk
from geonode.christoffel import Grid
from geonode.errors import InputError
from geonode.metric import LogMetricNetwork, MetricNetwork
from geonode.metric.log import ExponentialMetric
from geonode_kernels import _dispatch
from tests.tolerances import tolerance

pytest.importorskip("triton")
CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"


@pytest.fixture
def kernels(monkeypatch):
    """``auto`` takes kernels here too: in Triton's interpreter where there is no GPU. Forgets what was taken before."""
    verify = _dispatch.verify
    monkeypatch.setattr(_dispatch, "verify", lambda tensors, explicit=False: verify(tensors, True))
    monkeypatch.setattr(_dispatch, "_taken", {})


def metrics():
    """A metric of the original recipe, one of the default flow's, and a stack."""
    network = LogMetricNetwork(hidden=(7, 5), seed=2)
    with torch.no_grad():
        network.network.mlp.weights[-1].normal_(generator=torch.Generator().manual_seed(4))
    return {
        "softplus": MetricNetwork(hidden=(6, 9), seed=1),
        "exp": ExponentialMetric(network),
        "stack": MetricNetwork(hidden=(6, 9), models=2, seed=1),
    }


def problems(name):
    """start, velocity or end, and wavelength, whose shapes broadcast: [2, 3], [3] or [2, 3]."""
    draw = torch.Generator().manual_seed(9)
    a, b = (torch.rand(2, 3, generator=draw).to(DEVICE) for _ in range(2))
    wavelength = torch.linspace(-1.0, 1.0, 3, device=DEVICE)
    return a, b, wavelength


def solved(function, metric, a, b, wavelength):
    """Results of a public function, and its gradients to both points, the wavelength and every parameter."""
    leaves = [t.detach().clone().requires_grad_() for t in (a, b, wavelength)]
    results = function(metric, *leaves)
    results = results if isinstance(results, tuple) else (results,)
    draws = torch.Generator().manual_seed(3)
    loss = sum((r * torch.randn(r.shape, generator=draws).to(r)).sum() for r in results)
    wanted = [*leaves, *metric.parameters()]
    gradients = torch.autograd.grad(loss, wanted, allow_unused=True, materialize_grads=True)
    return [r.detach().cpu() for r in results], [g.cpu() for g in gradients]


def exponential(metric, a, v, wavelength):
    found = geonode.exponential_map(metric, a, v - 0.5, wavelength, steps=4, jacobian=True, drift_tolerance=1.0)
    return found.end, found.end_velocity, found.jacobian, found.at(torch.tensor([0.3, 1.0], device=DEVICE))


FUNCTIONS = {
    "christoffel": (lambda m, a, b, w: geonode.christoffel(m, a + b, w), {"metric_christoffel"}),
    "finite_difference": (
        lambda m, a, b, w: geonode.christoffel(m, a + b, w, method="finite_difference", epsilon=0.1, high=1.2),
        {"metric_christoffel", "christoffel_fd"},
    ),
    "grid": (
        lambda m, a, b, w: geonode.christoffel(
            m, a + b, w, method=Grid(m, 0.0, 2.0, -1.0, 1.0, shape=(9, 4), dtype=torch.float32)
        ),
        {"metric_christoffel", "christoffel_grid"},
    ),
    "exponential_map": (exponential, {"geodesic_rk4", "metric_density"}),
    "shoot": (
        lambda m, a, b, w: geonode.shoot(m, a, b, w, newton_steps=4, ode_steps=4, stages=2).initial_velocity,
        {"geodesic_shoot"},
    ),
    "shoot_path": (
        lambda m, a, b, w: geonode.shoot(m, a, b, w, newton_steps=4, ode_steps=4, stages=2).at(0.4),
        {"geodesic_shoot", "geodesic_rk4"},
    ),
    "closed_form": (
        lambda m, a, b, w: geonode.arc_length_geodesic(m, a, b, w, nodes=12).initial_velocity,
        {"metric_density"},
    ),
}


@pytest.mark.parametrize("kind", ["softplus", "exp", "stack"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions_take_kernels_and_equal_the_torch_path(kernels, monkeypatch, name, kind) -> None:
    """Values and every gradient; `paths_taken` names the kernels."""
    function, ops = FUNCTIONS[name]
    metric, (a, b, wavelength) = metrics()[kind].to(DEVICE), problems(kind)
    ours = solved(function, metric, a, b, wavelength)
    taken = gk.paths_taken()
    assert {op: taken.get(op, "").split(";")[0] for op in ops} == dict.fromkeys(ops, "triton")
    monkeypatch.setattr(_dispatch, "verify", lambda tensors, explicit=False: "this test wants torch")
    theirs = solved(function, metric, a, b, wavelength)
    assert all("this test wants torch" in gk.paths_taken()[op] for op in ops)
    for what, kernel, plain in (("value", ours[0], theirs[0]), ("gradient", ours[1], theirs[1])):
        limits = tolerance(torch.float32, "solver" if what == "value" else what)
        for x, y in zip(kernel, plain, strict=True):
            scale = y.abs().max().clamp_min(1.0)
            torch.testing.assert_close(x / scale, y / scale, **limits)


def test_statuses_are_those_of_the_torch_path(kernels, monkeypatch) -> None:
    metric = MetricNetwork(hidden=(6, 9), seed=1).to(DEVICE)
    with torch.no_grad():
        for weight in metric.network.mlp.weights:
            weight *= 4.0
    ends = torch.tensor([-20.0, 0.0, 0.3, 1.0, 8.0, 3e38, torch.nan, torch.inf], device=DEVICE)
    a, b, wavelength = ends[:, None], ends[None], torch.tensor(0.2, device=DEVICE)
    asked = {"shoot": {"newton_steps": 3, "ode_steps": 3}, "exponential_map": {"steps": 3}}
    for name, numbers in asked.items():
        ours = getattr(geonode, name)(metric, a, b, wavelength, **numbers).status
        with monkeypatch.context() as patch:
            patch.setattr(_dispatch, "verify", lambda tensors, explicit=False: "this test wants torch")
            theirs = getattr(geonode, name)(metric, a, b, wavelength, **numbers).status
        assert torch.equal(ours, theirs) and len(ours.unique()) >= 3


class Doubled(MetricNetwork):
    """Not what the kernels hold: they must not stand in for it."""

    def forward(self, c, wavelength=None):
        return 2.0 * super().forward(c, wavelength)

    def value_and_derivative(self, c, wavelength=None):
        g, dg = super().value_and_derivative(c, wavelength)
        return 2.0 * g, 2.0 * dg


REFUSED = {
    "a subclass's own formula": (lambda: Doubled(hidden=(4, 4)), {}, "Doubled is not a network"),
    "three layers": (lambda: MetricNetwork(hidden=(4, 4, 4)), {}, "not 3 of tanh"),
    "other units": (lambda: MetricNetwork(hidden=(4, 4), activation="silu"), {}, "not 2 of silu"),
    "another floor": (lambda: MetricNetwork(hidden=(4, 4), floor=0.2), {}, "softplus + 0.2"),
    "another transform": (lambda: MetricNetwork(hidden=(4, 4), transform="exp"), {}, "exp + 0.1"),
    "too wide": (lambda: MetricNetwork(hidden=(4, 129)), {}, "129 units"),
    "float64": (lambda: MetricNetwork(hidden=(4, 4)).double(), {}, "float64"),
    "another rule": (lambda: MetricNetwork(hidden=(4, 4)), {"christoffel": "finite_difference"}, "another rule"),
    "another method": (lambda: MetricNetwork(hidden=(4, 4)), {"method": "heun"}, "a method of order 2"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_kernel_goes_by_torch_and_says_why(kernels, name) -> None:
    make, numbers, words = REFUSED[name]
    metric = make().to(DEVICE)
    dtype = next(metric.parameters()).dtype
    a, b, wavelength = (t.to(dtype) for t in problems("softplus"))
    found = geonode.shoot(metric, a, b, wavelength, newton_steps=3, ode_steps=3, **numbers)
    assert bool(found.converged.all())
    assert words in gk.paths_taken()["geodesic_shoot"]


def test_two_analytes_transforms_and_other_metrics_go_by_torch_and_say_why(kernels) -> None:
    draw = torch.Generator().manual_seed(2)
    a, b = (torch.rand(3, 2, generator=draw).to(DEVICE) for _ in range(2))
    geonode.shoot(MetricNetwork(dim=2, hidden=(4,)).to(DEVICE), a, b, torch.zeros(3, device=DEVICE), ode_steps=3)
    assert "2 coordinates" in gk.paths_taken()["geodesic_shoot"]
    metric, wavelength = MetricNetwork(hidden=(4, 4)).to(DEVICE), torch.zeros((), device=DEVICE)
    x = torch.tensor(0.3, device=DEVICE)
    torch.func.grad(lambda c: geonode.christoffel(metric, c, wavelength))(x)
    assert "torch.func" in gk.paths_taken()["metric_christoffel"]
    torch.func.jvp(lambda c: geonode.christoffel(metric, c, wavelength), (x,), (x,))
    assert gk.paths_taken()["metric_christoffel"].startswith("torch: ")


@pytest.mark.parametrize("name", ["christoffel", "exponential_map", "shoot", "closed_form"])
def test_second_derivatives_equal_the_torch_path(kernels, monkeypatch, name) -> None:
    metric, (a, b, wavelength) = metrics()["softplus"].to(DEVICE), problems("softplus")
    function, _ = FUNCTIONS[name]

    def twice():
        leaves = [t.detach().clone().requires_grad_() for t in (a, b)]
        out = function(metric, *leaves, wavelength)
        out = out[0] if isinstance(out, tuple) else out
        first = torch.autograd.grad(out.square().sum(), leaves, create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in first), [*leaves, *metric.parameters()])

    ours = twice()
    assert any("second derivative" in taken for taken in gk.paths_taken().values())
    monkeypatch.setattr(_dispatch, "verify", lambda tensors, explicit=False: "this test wants torch")
    for x, y in zip(ours, twice(), strict=True):
        assert (x - y).norm() <= 1e-3 * y.norm() + 1e-5


def test_an_empty_batch_and_points_without_their_models_are_no_problem_for_a_kernel(kernels) -> None:
    metric = MetricNetwork(hidden=(4, 4)).to(DEVICE)
    empty = torch.zeros(0, device=DEVICE)
    assert geonode.shoot(metric, empty, empty, empty).status.shape == (0,)
    assert "no point" in gk.paths_taken()["geodesic_shoot"]
    stack = MetricNetwork(hidden=(4, 4), models=2).to(DEVICE)
    with pytest.raises(InputError, match="stacks 2 models"):
        geonode.christoffel(stack, torch.zeros(3, 2, device=DEVICE), torch.zeros(2, device=DEVICE))
