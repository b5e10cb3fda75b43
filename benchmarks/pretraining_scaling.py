"""How pre-training scales over processes: measured points, and what a model of the cost foretells beyond them.

    python benchmarks/pretraining_scaling.py                                    # one process, results/…-1.json
    torchrun --nproc-per-node 4 benchmarks/pretraining_scaling.py               # weak scaling: a batch a process
    torchrun --nproc-per-node 4 benchmarks/pretraining_scaling.py --strong 8    # eight batches a step, shared out
    python benchmarks/pretraining_scaling.py --foretell results/pretraining_scaling-<card>-1.json

Weak: every process has a batch of the same size, and the efficiency is the rate ÷ processes ÷ the rate of one. Strong:
a step has a given number of batches, and processes share them. Beside the rate of `geonode.prior.pretrain` itself, one
all-reduce of the gradient is timed alone.

The model: a step takes t = compute + 2 (N − 1)/N · S/B + 2 ⌈log₂ N⌉ · α, with S the bytes of the gradient, B and α
bandwidth and latency of the slowest link of a tree (Sanders, Speck & Träff 2009: both trees together reach full
bandwidth at logarithmic latency, which is what NCCL does beyond one host). Nothing else is shared: no process reads
what another has drawn. Processes wait for the slowest; that is not in the model.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from geonode.prior.settings import PretrainSettings, cpu_settings  # noqa: E402
from geonode.prior.training import pretrain  # noqa: E402
from geonode.training.launch import is_main_process, launched  # noqa: E402
from geonode_runtime.files import write_text  # noqa: E402

LINKS = {"NVLink, one host of 8": (400e9, 4e-6), "InfiniBand, 400 Gb/s a GPU": (45e9, 12e-6)}
"""Bytes a second and seconds of a hop, as NCCL reaches them; nominal, not measured here."""
BYTES = 4  # of a gradient's entry


def foretold(compute: float, size: int, processes: int, link: str) -> float:
    """Seconds of a step by the model in this file's text; ``compute`` of one process alone, ``size`` in bytes."""
    if processes == 1:
        return compute
    bandwidth, latency = LINKS[link]
    moved = 2.0 * (processes - 1) / processes * size / bandwidth
    return compute + moved + 2.0 * math.ceil(math.log2(processes)) * latency


def reduction_seconds(size: int, device: torch.device, repeats: int = 50) -> float:
    """Median time of an all-reduce of ``size`` bytes among the processes that train; 0 for one alone."""
    if not torch.distributed.is_initialized():
        return 0.0
    value, times = torch.ones(size // BYTES, device=device), []
    for _ in range(repeats):
        torch.distributed.barrier()
        begin = time.perf_counter()
        torch.distributed.all_reduce(value)
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return sorted(times)[repeats // 2]


def measure(steps: int, warm: int, strong: int | None) -> dict[str, Any]:
    """The rate after ``warm`` steps; the dictionary is complete in the first process."""
    job = launched()
    processes = 1 if job is None else job[1]
    base = PretrainSettings() if torch.cuda.is_available() else cpu_settings()
    settings = base.with_changes(steps=steps, validate_every=10**9, accumulate=strong or processes)
    settings = dataclasses.replace(settings, exclude=("competitive", "kinetic", "redox"))
    lines: list[tuple[float, dict[str, Any]]] = []
    with tempfile.TemporaryDirectory() as folder:
        module = pretrain(settings, folder, report=lambda line: lines.append((time.perf_counter(), line)))
        size = BYTES * sum(p.numel() for p in module.network.parameters())
        # Lightning has brought the module back to the host by now.
        device = torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else module.device
        reduction = reduction_seconds(size, device)
    if not is_main_process():
        return {}
    logged = [(at, line) for at, line in lines if "validation" not in line]
    (begin, first), (end, last) = next(row for row in logged if row[1]["step"] >= warm), logged[-1]
    return {
        "card": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "processes": processes,
        "batches of a step": settings.accumulate,
        "assays/s": (last["assays"] - first["assays"]) / (end - begin),
        "seconds of a step": (end - begin) / (last["step"] - first["step"]),
        "seconds of an all-reduce": reduction,
        "bytes of the gradient": size,
    }


def table(one: dict[str, Any]) -> str:
    """What the model foretells from the measured rate of one process."""
    rows = ["| processes | link | step | efficiency, weak | assays/s |", "|---|---|---|---|---|"]
    compute, size = one["seconds of a step"], one["bytes of the gradient"]
    for processes in (2, 4, 8, 64, 512):
        link = list(LINKS)[0 if processes <= 8 else 1]
        step = foretold(compute, size, processes, link)
        efficiency = compute / step
        rate = processes * one["assays/s"] * efficiency
        rows.append(f"| {processes} | {link} | {1e3 * step:.2f} ms | {efficiency:.1%} | {rate:,.0f} |")
    return "\n".join(rows)


def main() -> None:
    """See the top of the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--warm", type=int, default=150)
    parser.add_argument("--strong", type=int, help="batches of a step; default one a process (weak scaling)")
    parser.add_argument("--foretell", type=Path, help="print the model's table from this record of one process")
    parser.add_argument("--out", type=Path, help="file; default benchmarks/results/pretraining_scaling-<card>-<N>.json")
    args = parser.parse_args()
    if args.foretell:
        print(table(json.loads(args.foretell.read_text())))
        return
    found = measure(args.steps, args.warm, args.strong)
    if found:
        name = f"pretraining_scaling-{found['card'].replace(' ', '-')}-{found['processes']}.json"
        write_text(args.out or ROOT / "benchmarks" / "results" / name, json.dumps(found, indent=1) + "\n")
        print(json.dumps(found))


if __name__ == "__main__":
    main()
