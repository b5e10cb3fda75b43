"""Kernels on a GPU: correctness first, then time, share of the measured ceilings, and the same work in peers.

    python benchmarks/kernels.py --out benchmarks/results

Writes kernels-<card>.json; every row is the median of repeated runs in this one run. A row whose kernel disagrees
with the float64 reference reports no time. Peers run in processes of their own (kernels_peers.py).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import torch
import triton
from kernels_common import (
    EVALUATION_FLOP,
    HIDDEN,
    LARGE,
    ROOT,
    SMALL,
    WAVELENGTHS,
    ceilings,
    error,
    geodesic_arguments,
    graph_timed,
    peak,
    timed,
)
from kernels_ops import op_rows
from kernels_peers import STEPS
from kernels_steps import Step, compared, wrong_by

import geonode_kernels as gk
from geonode.bench.host import commit
from geonode_kernels._blocks import TABLE
from geonode_kernels._nodes import nodes_for

ASKED = nodes_for(4 * STEPS)  # evaluations of the network a path, of the bench's own problem


def geodesic_rows(rates: dict) -> list[dict]:
    """geodesic_rk4, forward in three precisions and forward + backward."""
    rows = []
    sample = geodesic_arguments(4099)
    exact = gk.geodesic_rk4(*(t.double() for t in sample), steps=STEPS, backend="torch")
    for n in (SMALL, LARGE):
        arguments = geodesic_arguments(n)
        for precision, limit, products in (("fp32", 1e-6, 3), ("tf32", 1e-3, 1), ("bf16", 2e-2, 1)):
            out = gk.geodesic_rk4(*sample, steps=STEPS, precision=precision, backend="triton")
            wrong = max(error(a, b) for a, b in zip(out, exact, strict=True))
            row = {"op": "geodesic_rk4", "direction": "forward", "n": n, "precision": precision, "error": wrong}
            if wrong <= limit:
                with torch.no_grad():
                    run = partial(gk.geodesic_rk4, *arguments, steps=STEPS, precision=precision, backend="triton")
                    row["ms"] = timed(run)
                    row["graph_ms"] = graph_timed(run)
                tensor = products * ASKED * n * EVALUATION_FLOP / row["ms"] / 1e9
                row["tensor_tflop_s"], row["share_of_fp16"] = tensor, tensor / rates["fp16_tflop_s"]
            rows.append(row)
        rows.append(geodesic_gradient_row(n, rates))
    return rows


def geodesic_gradient_row(n: int, rates: dict) -> dict:
    """Forward + backward of Σ c² + v², gradients to c, v and every weight."""
    wanted = [i for i in range(9) if i != 2]

    def gradients(arguments, **kw):
        leaves = [t.detach().requires_grad_(i in wanted) for i, t in enumerate(arguments)]
        c, v = gk.geodesic_rk4(*leaves, steps=STEPS, **kw)
        return torch.autograd.grad((c, v), [leaves[i] for i in wanted], (2 * c.detach(), 2 * v.detach()))

    sample = geodesic_arguments(32_771)
    ours = gradients(sample, backend="triton")
    exact = gradients([t.double() for t in sample], backend="torch")
    each = [error(a, b) for a, b in zip(ours, exact, strict=True)]
    wrong = max(each)
    again = gradients(sample, backend="triton")
    row = {"op": "geodesic_rk4", "direction": "forward+backward", "n": n, "precision": "fp32", "error": wrong}
    row["errors"] = each
    row["bitwise_repeatable"] = all(torch.equal(a, b) for a, b in zip(ours, again, strict=True))
    if wrong <= 1e-5 and row["bitwise_repeatable"]:
        del sample, ours, exact, again
        arguments = geodesic_arguments(n)
        run = lambda: gradients(arguments, backend="triton")  # noqa: E731
        row["ms"], row["peak_gb"] = timed(run, 9), peak(run)
        if n == SMALL:
            row["graph_ms"] = graph_timed(run)
        # at each node: three dots forward, for ∂Γ/∂c too, and six back, of three products each at the measured rate
        floor = 3 * 9 * ASKED * n * EVALUATION_FLOP / 2 / rates["fp16_tflop_s"] / 1e9
        row["floor_ms"], row["share_of_nine_dot_floor"] = floor, floor / row["ms"]
    return row


def training_rows(rates: dict) -> list[dict]:
    """The library's step of the default flow: 2048 pairs (throughput, memory) and 30 pairs (latency, 500 epochs)."""
    rows, wrong = [], wrong_by("path_independent")
    for pairs in (2048, 30):
        row = {"op": "training step, default flow", "pairs": pairs, "wavelengths": WAVELENGTHS, "error": wrong}
        rows.append(row)
        if wrong > 1e-4:
            continue
        step = Step("path_independent", pairs)
        token = torch.zeros(1, device="cuda")
        captured = gk.CapturedStep(step, [token], step.optimizer.state_tensors())
        row["ms"] = timed(captured, 50)
        row["trajectories_per_s"] = pairs * WAVELENGTHS / row["ms"] * 1e3
        # two exponentials and one reciprocal for two nodes; 16 special-function results a cycle and multiprocessor
        tanh = pairs * WAVELENGTHS * 16 * HIDDEN
        row["tanh_per_s"] = tanh / row["ms"] * 1e3
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(500):
            captured()
        torch.cuda.synchronize()
        row["500_steps_s"] = time.perf_counter() - begin
        del captured
        torch.cuda.empty_cache()
        row["eager_ms"] = timed(step, 9)
        row["peak_gb"] = peak(step)
    return rows


def velocity_row(rates: dict) -> list[dict]:
    """The library's step of ``flow="velocity"`` on 2048 × 601 trajectories."""
    wrong = wrong_by("velocity")
    row = {"op": "training step, velocity flow", "pairs": 2048, "wavelengths": WAVELENGTHS, "error": wrong}
    row["norms_and_errors"] = compared("velocity")  # which gradient it is, where one is off
    if wrong <= 1e-4:
        step = Step("velocity", 2048)
        row["peak_gb"] = peak(step)
        row["ms"] = timed(step, 15)
        row["trajectories_per_s"] = 2048 * WAVELENGTHS / row["ms"] * 1e3
        # two special functions a tanh, 16 results a cycle and multiprocessor; the network is asked on its table alone
        row["tanh_per_s"] = 2048 * WAVELENGTHS * 16 * HIDDEN / row["ms"] * 1e3
    return [row]


def peers() -> list[dict]:
    """The same integration in torchdiffeq and JAX, a process a library: what it measured, and what it did not."""
    rows, asked = [], [(mode, n) for mode in ("forward", "both") for n in (SMALL, LARGE)]
    for library in ("torchdiffeq", "jax"):
        command = [sys.executable, str(ROOT / "benchmarks" / "kernels_peers.py"), library]
        command += [str(word) for problem in asked for word in problem]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        rows += found
        for mode, n in asked[len(found) :]:
            rows.append({"library": library, "mode": mode, "n": n, "failed": done.stderr[-300:]})
    return rows


def ratios(rows: list[dict], others: list[dict]) -> None:
    """Write into our geodesic rows how many times faster they are than each peer."""
    for row in rows:
        if row["op"] != "geodesic_rk4" or row["precision"] != "fp32" or "ms" not in row:
            continue
        mode = "forward" if row["direction"] == "forward" else "both"
        for other in others:
            if other["mode"] == mode and other["n"] == row["n"] and "ms" in other:
                row[f"times_{other['library']}"] = other["ms"] / row["ms"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commit", help="commit of the code measured; default: this checkout's")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--skip-peers", action="store_true")
    arguments = parser.parse_args()
    rates = ceilings()
    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True
    ).stdout.strip()
    rows: list[dict] = []
    for part in (geodesic_rows, training_rows, velocity_row, op_rows):
        rows += part(rates)
        torch.cuda.empty_cache()
    others = [] if arguments.skip_peers else peers()
    ratios(rows, others)
    card = torch.cuda.get_device_name()
    result = {
        "card": card,
        "driver": driver,
        "torch": torch.__version__,
        "triton": triton.__version__,
        "cuda": torch.version.cuda,
        "commit": arguments.commit or commit(),
        "blocks": TABLE,
        "ceilings": rates,
        "rows": rows,
        "peers": others,
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / f"kernels-{card.replace(' ', '-')}.json"
    path.write_text(json.dumps(result, indent=1), encoding="utf-8")
    for row in (rates, *rows, *others):
        print({k: round(v, 7) if isinstance(v, float) else v for k, v in row.items()})
    print(path)


if __name__ == "__main__":
    main()
