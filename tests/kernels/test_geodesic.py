"""geodesic_rk4, its steps, and shooting: kernel against reference, and laws that hold for any geodesic."""

from __future__ import annotations

import importlib
from functools import partial

import pytest
import torch

import geonode_kernels as gk
from tests.kernels.common import FULL, check, draws, metric_weights, relative, strided
from tests.tolerances import tolerance

# models, problems, H1, H2, steps: from six steps on, Γ is interpolated where it may be
CASES = [(1, 1, 3, 5, 3), (2, 19, 5, 17, 6), pytest.param((1, FULL, 64, 64, 20), marks=pytest.mark.gpu)]


def inputs(device, models, n, h1, h2, seed=21):
    """c, v, λ [M, N] and weights."""
    draw = draws(seed, device)
    c, v, wavelength = (strided(draw(models, n, scale=s)) for s in (1.0, 0.8, 1.0))
    return [c, v, wavelength, *metric_weights(draw, models, h1, h2)]


@pytest.mark.parametrize("output", ["softplus", "exp"])
@pytest.mark.parametrize("case", CASES)
def test_rk4_and_every_gradient(device, poisoned, case, output):
    kernel = partial(gk.geodesic_rk4, steps=case[4], output=output, backend="triton")
    plain = partial(gk.geodesic_rk4, steps=case[4], output=output, backend="torch")
    check(kernel, plain, inputs(device, *case[:4]), largest=5e-6)


@pytest.mark.parametrize("output", ["softplus", "exp"])
@pytest.mark.parametrize("case", CASES)
def test_states_and_every_gradient(device, poisoned, case, output):
    kernel = partial(gk.geodesic_states, steps=case[4], output=output, backend="triton")
    plain = partial(gk.geodesic_states, steps=case[4], output=output, backend="torch")
    check(kernel, plain, inputs(device, *case[:4]), largest=5e-6)


INTERPOLATED = importlib.import_module("geonode_kernels.geodesic_rk4")._launch


@pytest.mark.parametrize(
    ("speed", "steep", "none", "all_of_them"),
    [(0.3, 0.5, False, True), (0.8, 2.0, False, False), (-0.8, 3.0, True, False)],
)
@pytest.mark.parametrize("output", ["softplus", "exp"])
def test_paths_are_interpolated_where_the_poles_are_far_and_exact_everywhere(
    device, poisoned, speed, steep, none, all_of_them, output
):
    c, v, wavelength, *weights = inputs(device, 1, 40, 5, 9)
    v = torch.full_like(v, speed) if speed < 0 else v * (speed / 0.8)
    arguments = [c, v, wavelength, *(steep * w for w in weights)]
    ranges = INTERPOLATED(*arguments[:3], arguments[3:], 6, 0, ["softplus", "exp"].index(output), save=True)[2]
    assert bool((ranges == 0).all()) == none and bool((ranges != 0).all()) == all_of_them
    kernel = partial(gk.geodesic_rk4, steps=6, output=output, backend="triton")
    plain = partial(gk.geodesic_rk4, steps=6, output=output, backend="torch")
    check(kernel, plain, arguments, largest=5e-6)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e20])
@pytest.mark.parametrize("where", [0, 1, 2])
def test_no_problem_decides_how_another_is_integrated(device, where, bad):
    arguments = inputs(device, 1, 40, 5, 9)
    clean = gk.geodesic_rk4(*arguments, steps=6, backend="triton")
    arguments[where] = arguments[where].clone()
    arguments[where][0, 3] = bad
    spoiled = gk.geodesic_rk4(*arguments, steps=6, backend="triton")
    others = torch.arange(40, device=device) != 3
    assert all(torch.equal(a[:, others], b[:, others]) for a, b in zip(clean, spoiled, strict=True))


def test_the_last_state_is_the_end(device):
    arguments = inputs(device, 2, 19, 5, 17)
    states = gk.geodesic_states(*arguments, steps=3, backend="triton")
    ends = gk.geodesic_rk4(*arguments, steps=3, backend="triton")
    assert states.shape == (2, 4, 2, 19)
    assert torch.equal(states[:, 0, 0], arguments[0]) and torch.equal(states[:, 0, 1], arguments[1])
    assert torch.equal(states[:, -1], torch.stack(ends, 1))


@pytest.mark.parametrize("precision", ["tf32", pytest.param("bf16", marks=pytest.mark.gpu)])
def test_rk4_in_lower_precision(device, precision):
    arguments = inputs(device, 1, 33, 16, 16)
    got = gk.geodesic_rk4(*arguments, steps=4, precision=precision, backend="triton")
    exact = gk.geodesic_rk4(*(t.double() for t in arguments), steps=4, backend="torch")
    assert max(relative(a, b) for a, b in zip(got, exact, strict=True)) < (2e-3 if precision == "tf32" else 2e-2)


@pytest.mark.parametrize("function", [gk.geodesic_rk4, gk.geodesic_states])
def test_a_second_walk_through_one_graph_integrates_anew(device, function):
    leaves = [t.requires_grad_() for t in inputs(device, 1, 5, 3, 3)]
    out = function(*leaves, steps=2, backend="triton")
    loss = (out if function is gk.geodesic_states else out[0]).square().sum()
    walks = [torch.autograd.grad(loss, leaves, retain_graph=True) for _ in range(3)]
    assert all(torch.equal(a, b) for walk in walks[1:] for a, b in zip(walks[0], walk, strict=True))


# ---------------------------------------------------------------- shooting


def problems(device, models=2, n=7, h1=5, h2=9):
    draw = draws(31, device)
    a, b = 0.5 + 0.5 * draw(models, n), 0.5 + 0.5 * draw(models, n)
    return [a, b, draw(models, n), *metric_weights(draw, models, h1, h2)]


SHOOT = {"steps": 6, "newton": 6, "stages": 3}


@pytest.mark.parametrize("output", ["softplus", "exp"])
def test_shooting_agrees_with_its_reference_in_value_and_gradient(device, poisoned, output):
    arguments = problems(device)
    kernel = lambda *a: gk.geodesic_shoot(*a, **SHOOT, output=output, backend="triton").velocity  # noqa: E731
    plain = lambda *a: gk.geodesic_shoot(*a, **SHOOT, output=output, backend="torch").velocity  # noqa: E731
    # a bias added to ln g scales every length alike: no geodesic sees it
    check(kernel, plain, arguments, constant=[8] if output == "exp" else [], largest=2e-5)
    got = gk.geodesic_shoot(*arguments, **SHOOT, output=output, backend="triton")
    assert bool((got.status == 0).all()) and bool((got.residual < 1e-4).all())
    assert got.status.dtype == got.iterations.dtype == torch.int64


@pytest.mark.parametrize(
    "numbers",
    [
        {},
        {"steps": 1},
        {"steps": 2, "drift_tolerance": 1e-3},
        {"steps": 3, "newton": 1},
        {"steps": 3, "newton": 2, "stages": 1, "tolerance": 1e-6},
        {"steps": 3, "newton": 1, "stages": 5},
    ],
    ids=str,
)
def test_statuses_on_a_grid_of_problems_are_exactly_those_of_the_torch_path(device, numbers):
    """Converged, out of iterations, too coarse, left the domain, not finite: and what belongs to each."""
    draw = draws(33, device)
    weights = [3.0 * w for w in metric_weights(draw, 1, 5, 7)]
    ends = torch.tensor([-30.0, -1.0, 0.0, 0.2, 1.0, 4.0, 1e20, 1e38, torch.nan, torch.inf], device=device)
    a, b = (x.reshape(1, -1) for x in torch.meshgrid(ends, ends, indexing="ij"))
    wavelength = draw(1, a.shape[1])
    wavelength[0, 5] = torch.inf
    numbers = {**SHOOT, **numbers}
    kernel, plain = (
        gk.geodesic_shoot(a, b, wavelength, *weights, **numbers, backend=backend) for backend in ("triton", "torch")
    )
    assert torch.equal(kernel.status, plain.status), (kernel.status - plain.status).nonzero()
    assert len(kernel.status.unique()) >= 3
    good = plain.status == 0
    torch.testing.assert_close(kernel.velocity[good], plain.velocity[good], **tolerance(torch.float32, "solver"))
    torch.testing.assert_close(kernel.drift[good], plain.drift[good], rtol=1e-2, atol=1e-4)
    near = (a.abs() < 1e10) & (b.abs() < 1e10)  # rounding decides how a path of 1e20 is found
    assert ((kernel.iterations - plain.iterations)[near].abs() <= 1).all()


def test_a_bad_problem_has_its_status_and_touches_no_neighbour(device):
    a, b, wavelength, *weights = problems(device)
    clean = gk.geodesic_shoot(a, b, wavelength, *weights, **SHOOT, backend="triton")
    a, b = a.clone(), b.clone()
    a[0, 1], b[1, 2], b[0, 3] = torch.nan, torch.inf, 1e4
    for backend in ("triton", "torch"):
        got = gk.geodesic_shoot(a, b, wavelength, *weights, **SHOOT, backend=backend)
        assert got.status[0, 1] == got.status[1, 2] == 3 and got.status[0, 3] != 0
        if backend == "triton":
            others = torch.ones_like(a, dtype=torch.bool)
            others[0, 1] = others[1, 2] = others[0, 3] = False
            for mine, before in zip(got, clean, strict=True):
                assert torch.equal(mine[others], before[others])


def test_a_failed_problem_leaves_no_nan_in_any_gradient(device):
    leaves = [t.requires_grad_() for t in problems(device)]
    start = leaves[0].detach().clone()
    start[0, 1] = torch.nan
    for backend in ("triton", "torch"):
        shot = gk.geodesic_shoot(start.requires_grad_(), *leaves[1:], **SHOOT, backend=backend)
        gradients = torch.autograd.grad(shot.velocity[shot.status == 0].sum(), [start, *leaves[1:]])
        assert all(bool(torch.isfinite(g).all()) for g in gradients)


@pytest.mark.parametrize("steps", [3, 4, 8])
@pytest.mark.parametrize("output", ["softplus", "exp"])
def test_the_derivative_of_shooting_is_that_of_the_discrete_path_however_coarse(steps, output):
    """Against differences, in float64: Newton's slope is the exact geodesic's, and what it lacks is not left out."""
    draw = draws(71, "cpu")
    a, b, wavelength = 0.5 + 0.5 * draw(1, 100), 0.8 * draw(1, 100), draw(1, 100)
    a, b, *rest = (t.double() for t in (a, b, wavelength, *metric_weights(draw, 1, 16, 16)))
    options = {"steps": steps, "newton": 20, "tolerance": 1e-12, "output": output, "backend": "torch"}
    end = b.clone().requires_grad_()
    shot = gk.geodesic_shoot(a, end, *rest, **options)
    assert bool((shot.status == 0).all())
    (slope,) = torch.autograd.grad(shot.velocity.sum(), end)
    h = 1e-4
    there, back = (gk.geodesic_shoot(a, b + x, *rest, **options).velocity for x in (h, -h))
    torch.testing.assert_close(slope, (there - back) / (2.0 * h), **tolerance(torch.float64, "solver"))


def test_shooting_solves_what_it_says_and_a_path_of_no_length_rests(device):
    a, b, wavelength, *weights = problems(device)
    b = b.clone()
    b[0, 0] = a[0, 0]
    shot = gk.geodesic_shoot(a, b, wavelength, *weights, **SHOOT, backend="triton")
    reached, _ = gk.geodesic_rk4(a, shot.velocity, wavelength, *weights, steps=6, backend="torch")
    torch.testing.assert_close(reached, b, rtol=0, atol=1e-5)
    assert shot.velocity[0, 0] == 0 and shot.status[0, 0] == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("share", [0.5, 1.0, 8.0])
def test_a_path_as_short_as_rounding_errors_converges(device, dtype, share):
    a, _, wavelength, *weights = (t.to(dtype) for t in problems(device, 1))
    end = a + share * torch.finfo(dtype).eps * a
    backends = ["torch", "triton"] if dtype is torch.float32 else ["torch"]
    for backend in backends:
        shot = gk.geodesic_shoot(a, end, wavelength, *weights, **SHOOT, backend=backend)
        assert bool((shot.status == 0).all()), (backend, shot.status)


def test_counts_below_one_are_refused(device):
    with pytest.raises(ValueError, match="newton"):
        gk.geodesic_shoot(*problems(device), newton=0)
