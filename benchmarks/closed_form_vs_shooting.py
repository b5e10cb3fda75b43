"""The closed form for one analyte against shooting, on a learned metric.

1. 18 030 problems (30 ordered pairs of 6 levels × 601 wavelengths), float64: every status, the relative difference of
   the initial velocities as the steps of the integrator get finer, and the order that difference falls with.
2. Time of both, forward alone, and forward with backward.
3. One training epoch of 30 pairs × 601 wavelengths, forward and backward, of the coupled ODE: closed form and
   quadrature against shooting and RK4, the same networks, the same run.

    python benchmarks/closed_form_vs_shooting.py             # minutes on two cores
    python benchmarks/closed_form_vs_shooting.py --quick     # every tenth wavelength

The metric is a MetricNetwork fitted to the pull-back metric of the simulated assay, (∂A/∂c)² per wavelength. Results go
to benchmarks/results/closed_form_vs_shooting.json.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "kernels")]

from geonode.config import GeodesicConfig  # noqa: E402
from geonode.data import simulate_assay  # noqa: E402
from geonode.flow import CoupledSpectralODE  # noqa: E402
from geonode.geodesic import GeodesicSolution, arc_length_geodesic, shoot  # noqa: E402
from geonode.metric import MetricNetwork  # noqa: E402

LEVELS = (0.0, 10.0, 20.0, 30.0, 40.0, 60.0)
STEPS = (20, 40, 80, 160)


def learned_metric(epochs: int = 400) -> MetricNetwork:
    """A metric network fitted to 1 + (∂A/∂c)² of the simulated assay, c and λ normalised."""
    c = torch.linspace(0.0, 1.0, 41, dtype=torch.float64)
    truth = torch.as_tensor(simulate_assay(dtype=torch.float64).truth((60.0 * c).tolist()))[:, ::10]
    slope = torch.gradient(truth, spacing=(c,), dim=0)[0]
    target = 1.0 + (slope / slope.square().mean().sqrt()).square()
    wl = torch.linspace(-1.0, 1.0, target.shape[1], dtype=torch.float64)
    metric = MetricNetwork(seed=0).double()
    optimiser = torch.optim.Adam(metric.parameters(), lr=5e-3)
    for _ in range(epochs):
        optimiser.zero_grad()
        (metric(c[:, None], wl) / target).log().square().mean().backward()
        optimiser.step()
    return metric


def problems(stride: int) -> tuple[Tensor, Tensor, Tensor]:
    """start, end and wavelength [30, W] in normalised units."""
    levels = torch.tensor(LEVELS, dtype=torch.float64) / 60.0
    i, j = torch.where(~torch.eye(6, dtype=torch.bool))
    wl = torch.linspace(-1.0, 1.0, 601, dtype=torch.float64)[::stride]
    shape = (30, len(wl))
    return levels[i][:, None].expand(shape), levels[j][:, None].expand(shape), wl.expand(shape)


def best_of(function: Callable[[], Any], repeats: int) -> float:
    """Shortest wall time in seconds, after one call to warm up where it is repeated."""
    if repeats > 1:
        function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def summary(solution: GeodesicSolution) -> dict[str, Any]:
    """Counts of every status and the largest residual and drift."""
    return {
        "problems": solution.status.numel(),
        "converged": int(solution.converged.sum()),
        "largest_residual": solution.residual.max().item(),
        "largest_energy_drift": solution.energy_drift.max().item(),
        "largest_iterations": int(solution.iterations.max()),
    }


def agreement(metric: MetricNetwork, stride: int) -> dict[str, Any]:
    """Statuses, relative differences by step count, and the measured order."""
    start, end, wl = problems(stride)
    with torch.no_grad():
        closed = arc_length_geodesic(metric, start, end, wl)
        check = arc_length_geodesic(metric, start, end, wl, nodes=128, shared=False)
        report: dict[str, Any] = {"closed_form": summary(closed), "shooting": {}}
        print(f"  closed form: {int(closed.converged.sum())}/{closed.status.numel()} converged", flush=True)
        report["closed_form"]["relative_difference_to_128_own_nodes"] = relative(closed, check)
        for steps in STEPS:
            shot = shoot(metric, start, end, wl, ode_steps=steps, newton_steps=6, stages=1 if steps > 40 else 4)
            difference = relative(closed, shot)
            report["shooting"][str(steps)] = {**summary(shot), "relative_difference": difference}
            print(
                f"  {steps:3d} steps: {int(shot.converged.sum())}/{shot.status.numel()} converged, relative difference "
                f"{difference['largest']:.2e} (median {difference['median']:.2e})",
                flush=True,
            )
    for kind in ("largest", "median"):
        errors = [report["shooting"][str(steps)]["relative_difference"][kind] for steps in STEPS]
        report[f"order_of_{kind}"] = [math.log2(coarse / fine) for coarse, fine in pairwise(errors)]
    return report


def relative(one: GeodesicSolution, other: GeodesicSolution) -> dict[str, float]:
    """Largest and median relative difference of the initial velocities."""
    difference = ((one.initial_velocity - other.initial_velocity) / one.initial_velocity).abs()
    return {"largest": difference.max().item(), "median": difference.median().item()}


def timings(metric: MetricNetwork, stride: int) -> dict[str, Any]:
    """Seconds for all problems: forward without a graph, and forward with backward."""
    report: dict[str, Any] = {}
    for dtype in (torch.float64, torch.float32):
        start, end, wl = (x.to(dtype) for x in problems(stride))
        metric = metric.to(dtype)
        entry: dict[str, float] = {}
        for name, solve, repeats in (("closed_form", arc_length_geodesic, 5), ("shooting", shoot, 1)):

            def forward(solve=solve, ends=(start, end, wl), metric=metric) -> Tensor:
                return solve(metric, *ends).initial_velocity

            def both(forward=forward, metric=metric) -> None:
                metric.zero_grad()
                forward().square().mean().backward()

            with torch.no_grad():
                entry[f"{name}_s"] = best_of(forward, repeats)
            entry[f"{name}_with_backward_s"] = best_of(both, repeats)
        entry["ratio"] = entry["shooting_s"] / entry["closed_form_s"]
        entry["ratio_with_backward"] = entry["shooting_with_backward_s"] / entry["closed_form_with_backward_s"]
        report[str(dtype).removeprefix("torch.")] = entry
        print(f"  {dtype}: " + ", ".join(f"{key} {value:.4g}" for key, value in entry.items()), flush=True)
    return report


def epoch(stride: int) -> dict[str, Any]:
    """One epoch over 30 pairs, forward and backward, of the same coupled ODE by both routes (float32)."""
    start, end, _ = problems(stride)
    wavelengths = torch.linspace(350.0, 950.0, 601)[::stride]
    source = torch.rand(30, len(wavelengths), generator=torch.Generator().manual_seed(0))
    report: dict[str, Any] = {}
    routes = {"closed_form": ({}, 5), "shooting": ({"path": "shooting", "solver": "rk4"}, 1)}
    for name, (settings, repeats) in routes.items():
        ode = CoupledSpectralODE(wavelengths, GeodesicConfig(**settings), seed=0)
        with torch.no_grad():
            last = ode.metric.network.mlp.weights[-1]
            last.copy_(0.3 * torch.randn(last.shape, generator=torch.Generator().manual_seed(0)))

        def step(ode: CoupledSpectralODE = ode) -> None:
            ode.zero_grad()
            (ode(source, start[:, 0], end[:, 0]) - source).square().mean().backward()

        report[f"{name}_s"] = best_of(step, repeats)
        print(f"  {name}: {report[f'{name}_s']:.4f} s", flush=True)
    report["ratio"] = report["shooting_s"] / report["closed_form_s"]
    return report


def main() -> None:
    """Run everything, print it and write the JSON file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="every tenth wavelength; writes nothing")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "closed_form_vs_shooting.json")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    stride = 10 if options.quick else 1
    print("fitting the metric", flush=True)
    metric = learned_metric()
    report: dict[str, Any] = {
        "machine": {"cpu": platform.machine(), "threads": options.threads, "torch": torch.__version__},
    }
    print("agreement", flush=True)
    report["agreement_float64"] = agreement(metric, stride)
    print("time", flush=True)
    report["time"] = timings(metric, stride)
    print("epoch of 30 pairs", flush=True)
    report["epoch_float32"] = epoch(stride)
    orders = ", ".join(f"{x:.2f}" for x in report["agreement_float64"]["order_of_median"])
    print(f"epoch ratio {report['epoch_float32']['ratio']:.0f}, measured orders {orders}")
    if not options.quick:
        text = json.dumps(report, indent=2) + "\n"
        temporary = options.out.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(text)
        temporary.replace(options.out)
        print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
