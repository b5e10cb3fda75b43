"""The original recipe (`GeodesicConfig.blueprint`) in `geonode.fit`'s own loop: losses against plain torch, then time.

    python benchmarks/blueprint.py --json out.json          # 2048 pairs × 601 wavelengths, one GPU

First the losses of 20 optimiser steps of a small assay, kernels and graph against plain torch of the same device. Then
`geonode.fit` at full size: samples (pairs of concentrations) a second between two epochs of one training, shooting,
losses, optimiser and looks included; SM activity by NVML over the same time; the most memory that torch took; what
each kernel took of a step. Last, one batch of 256 pairs by the rules of Γ that no kernel of the whole path holds.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import geonode
from geonode.commands.common import nvml_probe
from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset, simulate_assay
from geonode.training.batches import BatchSource
from geonode.training.ensemble import train
from geonode.training.problem import build_problem, fit_gp
from geonode.training.steps import StackSteps, use_captured
from geonode_kernels import _dispatch, paths_taken
from geonode_runtime.files import write_text

STEPS = 20


def assay(wavelengths: int) -> SpectralDataset:
    """The simulated assay of six levels."""
    return simulate_assay(wavelengths=np.linspace(350.0, 950.0, wavelengths).tolist())


def losses(precision: str, plain: bool, wavelengths: int = 41, pairs: int = 32) -> list[float]:
    """Losses of the first steps of a small training; ``plain``: every kernel refused, nothing captured."""
    config = GeodesicConfig.blueprint(
        precision=precision, epochs=STEPS, batch_size=pairs, micro_batch=pairs // 2, ode_steps=10, newton_steps=6
    )
    data = assay(wavelengths)
    problem = build_problem([fit_gp(data)], data.wavelengths, config).to("cuda", torch.float32)
    found: list[Any] = []
    verify = _dispatch.verify
    if plain:
        _dispatch.verify = lambda tensors, explicit=False: "plain torch was asked for"
    try:
        train(problem, config, seed=1, backend="torch" if plain else "auto", report=found.append)
    finally:
        _dispatch.verify = verify
    return [row["total"] for row in found[0].history]


def compared(precision: str, plain: bool) -> dict[str, Any]:
    """Losses by kernels in a graph, those of a second time, and where ``plain`` those of plain torch beside them."""
    ours = losses(precision, plain=False)
    found = {"precision": precision, "same_bits_again": ours == losses(precision, plain=False), "ours": ours}
    if plain:
        theirs = losses(precision, plain=True)
        worst = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs, strict=True))
        found |= {"largest_relative_difference": worst, "torch": theirs}
    return found


def timed(precision: str, wavelengths: int, first: int, last: int, **changes: Any) -> dict[str, Any]:
    """`geonode.fit`: seconds between the ends of two epochs, of which each is one mega-batch."""
    config = GeodesicConfig.blueprint(precision=precision, epochs=last, **changes)
    pairs = config.training.batch_size or 0
    torch.cuda.reset_peak_memory_stats()
    probe, marks, counters = nvml_probe(), [], {}

    def progress(what: str, done: int, of: int) -> None:
        if done in (first, last):
            torch.cuda.synchronize()
            marks.append(time.perf_counter())
            counters.update({} if probe is None else probe())

    begin = time.perf_counter()
    model = geonode.fit(assay(wavelengths), config, device="cuda", seed=0, progress=progress)
    whole = time.perf_counter() - begin
    samples = (last - first) * pairs / (marks[1] - marks[0])
    return {
        "precision": precision,
        "changes": {name: str(value) for name, value in changes.items()},
        "pairs": pairs,
        "wavelengths": wavelengths,
        "samples_per_s": samples,
        "ms_per_step": 1e3 * pairs / samples,
        "fit_s": whole,
        "peak_memory_gb": torch.cuda.max_memory_reserved() / 1e9,
        "losses": [model.history[i]["total"] for i in (0, len(model.history) // 2, -1)],
        "device_counters": counters,
    }


def profiled(precision: str, wavelengths: int) -> dict[str, float]:
    """Milliseconds of every kernel in one optimiser step, the longest first, and what lies between them."""
    config = GeodesicConfig.blueprint(precision=precision, epochs=4)
    data = assay(wavelengths)
    problem = build_problem([fit_gp(data)], data.wavelengths, config).to("cuda", torch.float32)
    ode = problem.build_model(config, 0)
    source = BatchSource(problem, ode.table, config)
    steps = StackSteps(ode, source, config, use_captured("auto", source, ode))
    steps.epoch(0)
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        for number in range(source.steps_per_epoch):
            steps.take(1, number)
        torch.cuda.synchronize()
    rows = {e.key[:60]: e.self_device_time_total / 1e3 for e in profiler.key_averages() if e.self_device_time_total > 0}
    ordered = dict(sorted(rows.items(), key=lambda row: -row[1])[:12])
    return {"all": sum(rows.values()), **{name: round(ms, 3) for name, ms in ordered.items()}}


def main() -> None:
    """Run and print; ``--json`` also writes the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wavelengths", type=int, default=601)
    parser.add_argument("--epochs", type=int, nargs=2, default=(5, 25), help="between whose ends it is timed")
    parser.add_argument("--precision", nargs="*", default=["16-mixed", "32-true"])
    parser.add_argument("--micro", type=int, nargs="*", default=[256, 2048], help="pairs of a micro-batch")
    parser.add_argument("--rules", nargs="*", default=["exact", "finite_difference", "grid"])
    parser.add_argument("--losses", action=argparse.BooleanOptionalAction, default=True, help="compare losses first")
    parser.add_argument("--plain", action=argparse.BooleanOptionalAction, default=True, help="plain torch too (20 s)")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    result: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    if options.losses:
        result["losses"] = compared("32-true", options.plain)
        print(json.dumps(result["losses"]), flush=True)
    variants = [(precision, micro) for precision in options.precision for micro in options.micro]
    result["fit"] = [timed(p, options.wavelengths, *options.epochs, micro_batch=micro) for p, micro in variants]
    print(json.dumps(result["fit"], indent=1), flush=True)
    one = {"batch_size": 256, "micro_batch": None}
    result["rules"] = [timed("32-true", options.wavelengths, 2, 6, christoffel=rule, **one) for rule in options.rules]
    print(json.dumps(result["rules"], indent=1), flush=True)
    result["kernels_ms"] = {precision: profiled(precision, options.wavelengths) for precision in options.precision}
    result["paths"] = paths_taken()
    print(json.dumps({name: result[name] for name in ("device", "kernels_ms", "paths")}, indent=1), flush=True)
    if options.json is not None:
        write_text(options.json, json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
