"""Metric and Christoffel symbols, geodesic initial-value and two-point problems."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import geonode_kernels as kernels
from geonode.bench.case import Case, Checked, Setting, Size, Work, register
from geonode.bench.cases.common import (
    DOTS,
    EPOCH,
    MEGA,
    TANH,
    arguments,
    evaluations,
    metric_network,
    network_weights,
    products,
    sizes,
)
from geonode.bench.correctness import compare
from geonode.bench.problem import STEPS
from geonode.christoffel import Grid, christoffel
from geonode.geodesic import arc_length_geodesic, exponential_map, shoot

CHECK = 1_021  # an odd number of trajectories: tiles must not be full
SMALL = Size(10, 21)


def _check_arguments(setting: Setting, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    return arguments(Setting(setting.device, setting.suite, setting.seed + 7), CHECK, dtype=dtype)


def _symbols(method: str):
    """Builder of `geonode.christoffel` by one method: what the library runs, its checks included."""
    limits = {"exact": 1e-5, "finite_difference": 2e-3, "grid": 1e-4}
    notes = {
        "exact": "geonode.christoffel",
        "finite_difference": "geonode.christoffel: three evaluations of the metric; the error is the method's, at ε = "
        "5e-3 of the range",
        "grid": "geonode.christoffel with a table of 2000 × 601, made once and not timed",
    }

    def build(setting: Setting, size: Size) -> Work:
        n, metric = size.trajectories, metric_network(setting.device)
        rule: Any = method
        if method == "grid":
            rule = Grid(metric, 0.0, 1.0, -1.0, 1.0, shape=(2000, 601), dtype=torch.float32)
        sets = [arguments(setting, n, i) for i in range(3)]

        @torch.no_grad()
        def gamma(c: Tensor, wavelength: Tensor) -> Tensor:
            return christoffel(metric, c, wavelength, method=rule)

        @torch.no_grad()
        def check() -> list[Checked]:
            c, _, wavelength = _check_arguments(setting)
            exact = christoffel(metric_network(setting.device, torch.float64), c.double(), wavelength.double())
            return compare([gamma(c, wavelength)], [exact], ["gamma"], limits[method])

        moved = 12.0 * n + (4.0 * min(rule.table.numel(), 4 * n) if method == "grid" else 0.0)
        each = {"exact": 1.0, "finite_difference": 3.0 if setting.device == "cuda" else 1.5, "grid": 0.0}[method]
        operations: dict[str, float] = {}
        if each:
            operations = products(setting.device, "kernel", each * DOTS * n)
            operations["special"] = 1.5 * each * TANH * n
        return Work(
            lambda i: gamma(sets[i][0], sets[i][2]), check, {"points": n}, operations, moved, 3, capture=True,
            notes=notes[method],
        )  # fmt: skip

    return build


def _initial_value(setting: Setting, size: Size, gradient: bool = False) -> Work:
    n, weights = size.trajectories, network_weights(setting.device)
    sets = [arguments(setting, n, i) for i in range(2)]

    def gradients(c: Tensor, v: Tensor, wavelength: Tensor, *parameters: Tensor, backend: str = "auto"):
        leaves = [t.detach().requires_grad_() for t in (c, v, *parameters)]
        end, speed = kernels.geodesic_rk4(*leaves[:2], wavelength, *leaves[2:], steps=STEPS, backend=backend)  # type: ignore[arg-type]
        return torch.autograd.grad((end, speed), leaves, (2 * end.detach(), 2 * speed.detach()))

    @torch.no_grad()
    def forward(*tensors: Tensor, backend: str = "auto"):
        return kernels.geodesic_rk4(*tensors, steps=STEPS, backend=backend)  # type: ignore[arg-type]

    function = gradients if gradient else forward

    def check() -> list[Checked]:
        sample = [*_check_arguments(setting), *weights]
        exact = function(*(t.double() for t in sample), backend="torch")
        names = ("c", "v", "W1", "b1", "W2", "b2", "W3", "b3")[: len(exact)]
        return compare(function(*sample), exact, names, 2e-5 if gradient else 1e-6)

    asked = evaluations(setting.device, 4 * STEPS) * n
    # forward and backward: three products against two, for ∂Γ/∂c too, then six
    work = DOTS * asked * (4.5 if gradient and setting.device == "cuda" else 3 if gradient else 1)
    return Work(
        lambda i: function(*sets[i], *weights), check, {"odes": n},
        {**products(setting.device, "kernel", work), "special": 1.5 * TANH * asked * (2 if gradient else 1)},
        (12.0 + 8.0) * n, 2, capture=True,
        notes=f"the bare kernel, geonode_kernels.geodesic_rk4: {STEPS} classical Runge–Kutta steps, as the peers "
        "integrate; exponential-map is what the library runs",
    )  # fmt: skip


def _exponential_map(setting: Setting, size: Size) -> Work:
    n, metric = size.trajectories, metric_network(setting.device)
    sets = [[t[0] for t in arguments(setting, n, i)] for i in range(2)]

    @torch.no_grad()
    def run(i: int) -> Tensor | None:
        return exponential_map(metric, *sets[i], steps=STEPS).end_velocity  # type: ignore[arg-type]

    @torch.no_grad()
    def check() -> list[Checked]:
        sample = [t[0] for t in _check_arguments(setting)]
        ours = exponential_map(metric, *sample, steps=STEPS)  # type: ignore[arg-type]
        c, v, wavelength = (t.double() for t in sample)
        exact = exponential_map(metric_network(setting.device, torch.float64), c, v, wavelength, steps=STEPS)
        failed = float((ours.status != exact.status).sum())
        pairs = [ours.end, ours.end_velocity], [exact.end, exact.end_velocity]
        return [*compare(*pairs, ("c", "v"), 1e-6), Checked("statuses that differ", failed, 0.0)]  # type: ignore[arg-type]

    # twice, once in half the steps, and the energy of each state
    asked = (2 * evaluations(setting.device, 4 * STEPS) + evaluations(setting.device, 2 * STEPS) + STEPS) * n
    return Work(
        run, check, {"odes": n},
        {**products(setting.device, "kernel", DOTS * asked), "special": 1.5 * TANH * asked}, 20.0 * n, 2,
        notes=f"geonode.exponential_map, {STEPS} steps: status, energy drift and half-step check included",
    )  # fmt: skip


def _shoot(setting: Setting, size: Size) -> Work:
    n, metric = size.trajectories, metric_network(setting.device)

    def ends(rotation: int) -> list[Tensor]:
        a, _, wavelength = (t[0] for t in arguments(setting, n, rotation))
        return [a, a.roll(1).contiguous(), wavelength]

    sets = [ends(i) for i in range(2)]

    @torch.no_grad()
    def run(i: int) -> Tensor:
        return shoot(metric, *sets[i], ode_steps=STEPS).initial_velocity  # type: ignore[arg-type]

    @torch.no_grad()
    def check() -> list[Checked]:
        a, b, wavelength = (t[:211] for t in sets[0])
        shot = shoot(metric, a, b, wavelength, ode_steps=STEPS)
        exact = arc_length_geodesic(
            metric_network(setting.device, torch.float64), a.double(), b.double(), wavelength.double(), shared=False
        )
        failed = float((shot.status != 0).sum())
        return [
            *compare([shot.initial_velocity], [exact.initial_velocity], ["velocity against the closed form"], 1e-4),
            Checked("problems not converged", failed, 0.0),
        ]

    return Work(
        run, check, {"odes": n}, {}, 36.0 * n, 2, capture=True,
        notes="geonode.shoot: ten Newton steps, four stages, energy and half-step checks; problems rest once "
        "converged, so operations are not counted",
    )  # fmt: skip


def _closed_form(setting: Setting, size: Size) -> Work:
    metric = metric_network(setting.device)
    wavelength = torch.linspace(-1.0, 1.0, size.wavelengths, device=setting.device)

    def ends(rotation: int) -> list[Tensor]:
        generator = torch.Generator().manual_seed(setting.seed + rotation)
        return list(torch.rand(2, size.pairs, 1, generator=generator).to(setting.device))

    sets = [ends(i) for i in range(2)]

    @torch.no_grad()
    def run(i: int) -> Tensor:
        return arc_length_geodesic(metric, *sets[i], wavelength, shared=True).initial_velocity  # type: ignore[arg-type]

    @torch.no_grad()
    def check() -> list[Checked]:
        a, b = sets[0]
        few = (a[:5], b[:5], wavelength[:: max(1, size.wavelengths // 41)])
        ours = arc_length_geodesic(metric, *few, shared=True)  # type: ignore[arg-type]
        exact = metric_network(setting.device, torch.float64)
        doubles = [t.double() for t in few]
        theirs = arc_length_geodesic(exact, *doubles, nodes=128, shared=False)  # type: ignore[arg-type]
        return [
            *compare([ours.initial_velocity], [theirs.initial_velocity], ["velocity"], 1e-5),
            Checked("problems not converged", float((ours.status != 0).sum()), 0.0),
        ]

    n = size.trajectories
    return Work(
        run, check, {"odes": n}, {}, 16.0 * n, 2, notes="float64 inside; its table of 64 nodes a wavelength included"
    )


register(
    Case("christoffel-exact", "Γ from the metric's own derivative", _symbols("exact"), sizes([EPOCH], [MEGA], [EPOCH]))
)
register(
    Case(
        "christoffel-fd",
        "Γ by finite differences",
        _symbols("finite_difference"),
        sizes([EPOCH], [EPOCH], [Size(256, 601)]),
    )
)
register(Case("christoffel-grid", "Γ from a table, bilinear", _symbols("grid"), sizes([EPOCH], [MEGA])))
register(
    Case(
        "geodesic-ivp", "geodesic initial-value problems, RK4", _initial_value,
        sizes([Size(30, 61)], [EPOCH, MEGA], [EPOCH]),
        sweep=sizes(
            [Size(1, 61), Size(1, 601), Size(5, 601)],
            [Size(1, 61), Size(1, 601), Size(5, 601), Size(100, 601), Size(500, 601), Size(2048, 601)],
            [Size(8192, 601)],
        ),
    )
)  # fmt: skip
register(
    Case(
        "geodesic-ivp-gradient", "the same, forward and backward",
        lambda setting, size: _initial_value(setting, size, gradient=True),
        sizes([Size(10, 61)], [EPOCH, MEGA]),
    )
)  # fmt: skip
register(
    Case(
        "exponential-map", "the exponential map with its checks", _exponential_map,
        sizes([Size(10, 61)], [EPOCH], [MEGA]),
    )
)  # fmt: skip
register(Case("geodesic-shoot", "two-point geodesics by shooting", _shoot, sizes([SMALL], [EPOCH], [MEGA])))
register(
    Case("geodesic-closed-form", "two-point geodesics in closed form", _closed_form, sizes([EPOCH], [EPOCH], [MEGA]))
)
