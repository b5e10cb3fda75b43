"""Work–precision: error against time of every solver, for the problems that have several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

import geonode_kernels as kernels
from geonode.bench import problem, timing
from geonode.bench.case import Setting, Size
from geonode.bench.cases.common import arguments, metric_network, network_weights
from geonode.geodesic import arc_length_geodesic, exponential_map, shoot

Extra = tuple[str, dict[str, Any]]


def _points(setting: Setting) -> Size:
    return Size(30, 601) if setting.device == "cuda" else Size(5, 61)


def _curve(
    name: str,
    label: str,
    run: Callable[[], tuple[Tensor, Tensor]],
    exact: np.ndarray,
    setting: Setting,
    budget: float,
    **more: Any,
) -> Extra:
    """One point of a work–precision curve: the error of (c, v) and the time."""
    with torch.no_grad():
        state = torch.stack([x.reshape(-1)[: problem.CHECKED] for x in run()]).cpu().numpy()
        ms = timing.median_ms(lambda _: run(), 1, setting.device, 0.3 * budget)
    return "curve", {
        "problem": "initial value",
        "solver": name,
        "label": label,
        "error": problem.error(state, exact),
        "ms": ms,
        **more,
    }


def initial_value(setting: Setting, budget: float) -> Iterator[Extra]:
    """Error against time of every solver of the initial-value problem, float32."""
    n, exact = _points(setting).trajectories, problem.reference()
    base = Setting(setting.device, setting.suite, 0)  # the seed of the reference
    c, v, wavelength = arguments(base, n)
    weights, metric = network_weights(setting.device), metric_network(setting.device)
    full = setting.suite == "full"
    several = ("fp32", "tf32", "bf16") if full else ("fp32", "tf32")  # each is a kernel to compile
    for precision in several if setting.device == "cuda" else ("fp32",):
        for steps in (2, 5, 10, 20, 40) if full else (2, 5, 20):

            def fused(steps: int = steps, precision: str = precision) -> tuple[Tensor, Tensor]:
                return kernels.geodesic_rk4(c, v, wavelength, *weights, steps=steps, precision=precision)  # type: ignore[arg-type]

            name = f"geonode fused RK4, {precision}" if setting.device == "cuda" else "geonode RK4, torch"
            yield _curve(
                name, f"{steps} steps", fused, exact, setting, budget, evaluations=4 * steps, precision=precision
            )
    methods: dict[str, Sequence[int]] = {"euler": (20,), "heun": (5, 20), "kutta3": (10,), "rk4": (5, 20)}
    for method, counts in methods.items():
        for steps in counts:

            def fixed(method: str = method, steps: int = steps) -> tuple[Tensor, Tensor]:
                solution = exponential_map(metric, c[0], v[0], wavelength[0], steps=steps, method=method)
                return solution.end, solution.end_velocity  # type: ignore[return-value]

            yield _curve(f"geonode {method}", f"{steps} steps", fixed, exact, setting, budget)
    for method in ("dopri5", "dopri8") if full else ("dopri5",):
        for rtol in (1e-3, 1e-5):

            def adaptive(method: str = method, rtol: float = rtol) -> tuple[Tensor, Tensor]:
                solution = exponential_map(
                    metric, c[0], v[0], wavelength[0], steps=1, method=method, rtol=rtol, atol=1e-2 * rtol
                )
                return solution.end, solution.end_velocity  # type: ignore[return-value]

            yield _curve(f"geonode {method} (torchdiffeq)", f"rtol {rtol:g}", adaptive, exact, setting, budget)


def two_points(setting: Setting, budget: float) -> Iterator[Extra]:
    """Error of the initial velocity against time: closed form by nodes, shooting by steps; truth 128 nodes, float64."""
    size = Size(10, 61) if setting.device == "cuda" else Size(4, 21)
    metric = metric_network(setting.device)
    wavelength = torch.linspace(-1.0, 1.0, size.wavelengths, device=setting.device)
    generator = torch.Generator().manual_seed(11)
    a, b = torch.rand(2, size.pairs, 1, generator=generator).to(setting.device)
    shape = (size.pairs, size.wavelengths)
    with torch.no_grad():
        doubles = [t.double() for t in (a, b, wavelength)]
        exact_metric = metric_network(setting.device, torch.float64)
        exact = arc_length_geodesic(exact_metric, *doubles, nodes=128, shared=False).initial_velocity.expand(shape)  # type: ignore[arg-type]

        def point(solver: str, label: str, run: Callable[[], Tensor]) -> Extra:
            error = ((run().double() - exact).norm() / exact.norm()).item()
            ms = timing.median_ms(lambda _: run(), 1, setting.device, 0.3 * budget)
            return "curve", {"problem": "two points", "solver": solver, "label": label, "error": error, "ms": ms}

        for nodes in (8, 16, 32, 64):

            def closed(nodes: int = nodes) -> Tensor:
                return arc_length_geodesic(metric, a, b, wavelength, nodes=nodes, shared=True).initial_velocity

            yield point("closed form", f"{nodes} nodes", closed)
        ends = [t.expand(shape).contiguous() for t in (a, b, wavelength)]
        for steps in (5, 20) if setting.suite == "full" else (5, 10):
            yield point(
                "shooting", f"{steps} steps",
                lambda steps=steps: shoot(metric, *ends, ode_steps=steps).initial_velocity,  # type: ignore[arg-type]
            )  # fmt: skip


def coupled(setting: Setting, budget: float) -> Iterator[Extra]:
    """The coupled neural ODE by every solver; truth is the quadrature with 64 nodes in float64.

    Forward: error of the change of absorbance. In the full suite also of the training gradient, where the adjoint
    differs from dopri5.
    """
    from geonode.bench.cases.node import batch, build_ode, pairs_batch
    from geonode.config import GeodesicConfig
    from geonode.training.loss import losses

    size, base = Size(10, 61) if setting.device == "cuda" else Size(4, 21), GeodesicConfig(flow="path_independent")
    choices: list[tuple[str, str, dict[str, Any]]] = [
        *(("quadrature", f"{n} nodes", {"nodes": n}) for n in ((1, 2, 4, 16) if setting.suite == "full" else (2, 16))),
        *(("rk4", f"{n} steps", {"ode_steps": n}) for n in ((2, 5, 20) if setting.suite == "full" else (2, 5))),
        *(("dopri5", f"rtol {r:g}", {"rtol": r, "atol": 1e-2 * r}) for r in (1e-3, 1e-5)),
    ]

    def forward(solver: str, dtype: torch.dtype, options: dict[str, Any]) -> Callable[[], Tensor]:
        ode = build_ode(size, setting.device, dtype, base.replace(**options))
        source, _, start, end = batch(setting, size, dtype=dtype)
        return lambda: ode(source, start, end, solver=solver).detach() - source

    def gradient(solver: str, dtype: torch.dtype, options: dict[str, Any]) -> Callable[[], Tensor]:
        ode = build_ode(size, setting.device, dtype, base.replace(solver=solver, **options))
        data = pairs_batch(batch(setting, size, dtype=dtype))

        def run() -> Tensor:
            total = losses(ode, data, base.loss.at(0.0))["total"].sum()
            return torch.cat([g.flatten() for g in torch.autograd.grad(total, list(ode.parameters()))])

        return run

    def points(name: str, make: Callable[..., Callable[[], Tensor]], solvers: list[Any]) -> Iterator[Extra]:
        exact = make("quadrature", torch.float64, {"nodes": 64})()
        for solver, label, options in solvers:
            run = make(solver, torch.float32, options)
            try:
                run()
            except AssertionError as failure:  # how torchdiffeq says that its step size has shrunk to nothing
                yield "note", {"text": f"work–precision, {name}, {solver} {label}: {failure}"}
                continue
            error = ((run().double() - exact).norm() / exact.norm()).item()
            ms = timing.median_ms(lambda _, run=run: run(), 1, setting.device, 0.3 * budget)
            yield "curve", {"problem": name, "solver": solver, "label": label, "error": error, "ms": ms}

    with torch.no_grad():
        yield from points("coupled NODE", forward, choices)
    if setting.suite == "full":
        adjoint = [("adjoint", label, options) for solver, label, options in choices if solver == "dopri5"]
        yield from points("training gradient", gradient, [*choices, *adjoint])
