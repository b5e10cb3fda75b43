"""What is measured once beside the cases: batch sizes, work–precision, CPU against GPU, and one problem at a time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

import geonode_kernels as kernels
from geonode.bench import problem, timing
from geonode.bench.case import Case, Setting, Size
from geonode.bench.cases.common import arguments, metric_network, network_weights
from geonode.geodesic import arc_length_geodesic, exponential_map, shoot

Extra = tuple[str, dict[str, Any]]


def all_of(cases: Sequence[Case], setting: Setting, plan: dict[str, Any]) -> Iterator[Extra]:
    """Every extra that fits the chosen cases."""
    names = {case.name for case in cases}
    for case in cases:
        yield from sweep(case, setting, plan["budget"])
        if setting.device == "cuda":
            yield from crossover(case, setting, plan["budget"])
    if "geodesic-ivp" in names:
        yield from initial_value_curves(setting, plan["budget"])
        yield sequential(setting)
    if names & {"geodesic-shoot", "geodesic-closed-form"}:
        yield from two_point_curves(setting, plan["budget"])


def _median(run: timing.Call, rotations: int, device: str, budget: float) -> float:
    samples = (
        timing.event_samples(run, rotations, budget)
        if device == "cuda"
        else timing.wall_samples(run, rotations, device, budget)
    )
    return statistics.median(samples)


def sweep(case: Case, setting: Setting, budget: float) -> Iterator[Extra]:
    """Time at each size of the case's sweep."""
    for size in case.sweep(setting):
        work = case.build(setting, size)
        run = work.run
        if setting.device == "cuda" and work.capture:
            run = timing.captured(work.run, work.rotations, work.state)
        ms = _median(run, work.rotations, setting.device, 0.3 * budget)
        memory = torch.cuda.max_memory_allocated() / 1e9 if setting.device == "cuda" else None
        yield "sweep", {"case": case.name, "size": list(size), "ms": ms, "counts": work.counts, "memory_gb": memory}
        del work, run


def crossover(case: Case, setting: Setting, budget: float) -> Iterator[Extra]:
    """The same case on this host's CPU at growing sizes, for the size from which the GPU is faster."""
    if not case.sweep(setting):
        return
    host = Setting("cpu", setting.suite, setting.seed)
    for size in (Size(1, 8), Size(1, 61), Size(1, 601)):
        for where in (host, setting):
            work = case.build(where, size)
            run = work.run
            if where.device == "cuda" and work.capture:
                run = timing.captured(work.run, work.rotations, work.state)
            # a call and its result, as the caller waits for it: launches count here
            ms = statistics.median(timing.wall_samples(run, work.rotations, where.device, 0.2 * budget))
            yield "crossover", {"case": case.name, "size": list(size), "device": where.device, "ms": ms}


def sequential(setting: Setting, count: int = 12) -> Extra:
    """One problem after another by scipy.integrate.solve_ivp (RK45, rtol 1e-6), as one would without batching."""
    from scipy.integrate import solve_ivp

    c, v, wavelength = (a[:count].astype("float64") for a in problem.points(problem.CHECKED, 1))
    weights = [w.astype("float64") for w in problem.weights()]
    seconds, ends = [], []
    for k in range(count):

        def slope(_t: float, y: np.ndarray, k: int = k) -> list[float]:
            gamma = problem.christoffel(y[:1], wavelength[k : k + 1], weights)[0]
            return [y[1], -gamma * y[1] * y[1]]

        begin = time.perf_counter()
        solution = solve_ivp(slope, (0.0, 1.0), [c[k], v[k]], method="RK45", rtol=1e-6, atol=1e-9)
        seconds.append(time.perf_counter() - begin)
        ends.append(solution.y[:, -1])
    exact = problem.reference(problem.CHECKED)[:, :count]
    return "sequential", {
        "seconds_each": statistics.median(seconds),
        "problems": count,
        "error": problem.error(np.stack(ends, 1), exact),
        "method": "scipy.integrate.solve_ivp, RK45, rtol 1e-6, atol 1e-9, one problem at a time, one process",
    }


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
        ms = _median(lambda _: run(), 1, setting.device, 0.3 * budget)
    return "curve", {
        "problem": "initial value",
        "solver": name,
        "label": label,
        "error": problem.error(state, exact),
        "ms": ms,
        **more,
    }


def initial_value_curves(setting: Setting, budget: float) -> Iterator[Extra]:
    """Error against time of every solver of the initial-value problem, float32."""
    n, exact = _points(setting).trajectories, problem.reference()
    base = Setting(setting.device, setting.suite, 0)  # the seed of the reference
    c, v, wavelength = arguments(base, n)
    weights, metric = network_weights(setting.device), metric_network(setting.device)
    full = setting.suite == "full"
    for precision in ("fp32", "tf32", "bf16") if setting.device == "cuda" else ("fp32",):
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
    for method in ("dopri5", "tsit5") if full else ("dopri5",):
        for rtol in (1e-3, 1e-5):

            def adaptive(method: str = method, rtol: float = rtol) -> tuple[Tensor, Tensor]:
                solution = exponential_map(
                    metric, c[0], v[0], wavelength[0], steps=1, method=method, rtol=rtol, atol=1e-2 * rtol
                )
                return solution.end, solution.end_velocity  # type: ignore[return-value]

            yield _curve(f"geonode {method} (torchdiffeq)", f"rtol {rtol:g}", adaptive, exact, setting, budget)


def two_point_curves(setting: Setting, budget: float) -> Iterator[Extra]:
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
            ms = _median(lambda _: run(), 1, setting.device, 0.3 * budget)
            return "curve", {"problem": "two points", "solver": solver, "label": label, "error": error, "ms": ms}

        for nodes in (8, 16, 32, 64):

            def closed(nodes: int = nodes) -> Tensor:
                return arc_length_geodesic(metric, a, b, wavelength, nodes=nodes, shared=True).initial_velocity

            yield point("closed form", f"{nodes} nodes", closed)
        ends = [t.expand(shape).contiguous() for t in (a, b, wavelength)]
        flat = [t.reshape(1, -1) for t in ends]
        weights = network_weights(setting.device)
        for steps in (5, 20) if setting.suite == "full" or setting.device == "cuda" else (5, 10):
            yield point(
                "shooting, torch", f"{steps} steps",
                lambda steps=steps: shoot(metric, *ends, ode_steps=steps).initial_velocity,  # type: ignore[arg-type]
            )  # fmt: skip
            yield point(
                "shooting, fused" if setting.device == "cuda" else "shooting, kernels' torch path", f"{steps} steps",
                lambda steps=steps: kernels.geodesic_shoot(*flat, *weights, steps=steps).velocity.reshape(shape),  # type: ignore[arg-type]
            )  # fmt: skip
