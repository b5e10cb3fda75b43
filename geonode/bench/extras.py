"""What is measured once beside the cases: batch sizes, CPU against GPU, and one problem at a time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from geonode.bench import curves, problem, timing
from geonode.bench.case import Case, Setting, Size
from geonode.bench.worker import peak, reset_peak

Extra = tuple[str, dict[str, Any]]


def all_of(cases: Sequence[Case], setting: Setting, plan: dict[str, Any]) -> Iterator[Extra]:
    """Every extra that fits the chosen cases."""
    names, budget = {case.name for case in cases}, plan["budget"]
    for case in cases:
        yield from _told(f"batch sizes of {case.name}", sweep(case, setting, budget))
        if setting.device == "cuda":
            yield from _told(f"CPU against GPU, {case.name}", crossover(case, setting, budget))
    if "geodesic-ivp" in names:
        yield from _told("work–precision of the initial-value problem", curves.initial_value(setting, budget))
        yield from _told("the sequential loop", sequential(setting))
    if names & {"geodesic-shoot", "geodesic-closed-form"}:
        yield from _told("work–precision of two points", curves.two_points(setting, budget))
    if any(name.startswith("node-") for name in names):
        yield from _told("work–precision of the coupled ODE", curves.coupled(setting, budget))


def _told(what: str, extras: Iterator[Extra]) -> Iterator[Extra]:
    """``extras``; where one fails that is said, and what comes after it is measured all the same."""
    try:
        yield from extras
    except Exception as failure:
        yield "broken", {"text": f"{what}: {type(failure).__name__}: {failure}"}


def sweep(case: Case, setting: Setting, budget: float) -> Iterator[Extra]:
    """Time at each size of the case's sweep."""
    for size in case.sweep(setting):
        work = case.build(setting, size)
        run = work.run
        if setting.device == "cuda" and work.capture:
            run = timing.captured(work.run, work.rotations, work.state)
        reset_peak(setting.device)
        ms = timing.median_ms(run, work.rotations, setting.device, 0.3 * budget)
        memory = peak(setting.device).get("peak_gb")
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


def sequential(setting: Setting, count: int = 12) -> Iterator[Extra]:
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
    yield (
        "sequential",
        {
            "seconds_each": statistics.median(seconds),
            "problems": count,
            "error": problem.error(np.stack(ends, 1), exact),
            "method": "scipy.integrate.solve_ivp, RK45, rtol 1e-6, atol 1e-9, one problem at a time, one process",
        },
    )
