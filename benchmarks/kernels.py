"""Kernels on a GPU: correctness first, then time, share of the measured ceilings, and the same work in peers.

    python benchmarks/kernels.py --commit $(git rev-parse HEAD) --out benchmarks/results

Writes kernels-<card>.json; every row is the median of repeated runs in this one session. A row whose kernel disagrees
with the float64 reference reports no time. Peers run in processes of their own (kernels_peers.py).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import triton

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "kernels"), str(ROOT / "benchmarks")]

from kernels_peers import HIDDEN, STEPS, problem  # noqa: E402
from kernels_velocity import VelocityStep  # noqa: E402

import geonode_kernels as gk  # noqa: E402
from geonode_kernels.flow_quadrature.reference import flow_quadrature as flow_reference  # noqa: E402

SMALL, LARGE, WAVELENGTHS = 18_030, 1_230_848, 601
EVALUATION_FLOP = 2 * 2 * HIDDEN * HIDDEN  # one dot [row, 64]·[64, 64] for value, one for derivative


def timed(run: Callable[[], object], repeats: int = 15) -> float:
    """Median milliseconds by CUDA events, after 100 ms of warm-up: an idle card's clocks need that to rise."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < 0.1:
        run()
        torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def graph_timed(run: Callable[[], object]) -> float:
    """Median milliseconds of a replay of ``run`` captured once: without the host's share of a launch."""
    token = torch.zeros(1, device="cuda")
    return timed(gk.CapturedStep(lambda _: run(), [token]))


def peak(run: Callable[[], object]) -> float:
    """Peak allocated GB during one run, its arguments included, cuBLAS's workspaces of earlier rows not."""
    torch.cuda.synchronize()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.reset_peak_memory_stats()
    run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() / 1e9


def error(actual: torch.Tensor, expected: torch.Tensor) -> float:
    """‖actual − expected‖ / ‖expected‖ in float64; NaN counts as infinite."""
    value = ((actual.double() - expected.double()).norm() / expected.double().norm()).item()
    return value if value == value else float("inf")


def ceilings() -> dict[str, float]:
    """Copy bandwidth (read + written) and matrix rates of this card, measured now."""
    x = torch.randn(2**29, device="cuda")
    y = torch.empty_like(x)
    rates = {"copy_tb_s": 2 * x.numel() * 4 / timed(partial(y.copy_, x)) / 1e9}
    del x, y
    a = torch.randn(8192, 8192, device="cuda")
    flop = 2 * 8192**3
    for name, tf32 in (("fp32_tflop_s", False), ("tf32_tflop_s", True)):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        rates[name] = flop / timed(lambda: a @ a, 7) / 1e9
    torch.backends.cuda.matmul.allow_tf32 = False
    h = a.half()
    rates["fp16_tflop_s"] = flop / timed(lambda: h @ h, 7) / 1e9
    return rates


def geodesic_arguments(n: int, dtype=torch.float32) -> list[torch.Tensor]:
    """(c, v, λ, weights) with the model axis, M = 1."""
    return [torch.from_numpy(a).to("cuda", dtype)[None] for a in problem(n)]


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
                tensor = products * 4 * STEPS * n * EVALUATION_FLOP / row["ms"] / 1e9
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
        # the floor a fused backward has: two dots forward, six back, three products each, at the measured fp16 rate
        floor = 3 * 8 * 4 * STEPS * n * EVALUATION_FLOP / 2 / rates["fp16_tflop_s"] / 1e9
        row["floor_ms"], row["share_of_eight_dot_floor"] = floor, floor / row["ms"]
        row["tf32_six_dot_floor_ms"] = 3 * 6 * 4 * STEPS * n * EVALUATION_FLOP / 2 / rates["tf32_tflop_s"] / 1e9
    return row


class DefaultStep:
    """The default model (flow of 64 units, 16 nodes; m_θ 2→64→64→1 on a 64-node table) and its whole training step."""

    def __init__(self, pairs: int, wavelengths: int = WAVELENGTHS, seed: int = 0, kernel: bool = True) -> None:
        g = torch.Generator().manual_seed(seed)
        new = lambda *s, scale=1.0: torch.nn.Parameter((scale * torch.randn(1, *s, generator=g)).cuda())  # noqa: E731
        h, e, t = HIDDEN, 8, 64
        metric = [
            new(h, 2),
            new(h),
            new(h, h, scale=h**-0.5),
            new(h),
            new(1, h, scale=0.1 * h**-0.5),
            new(1, scale=0.1),
        ]
        flow = [new(h, scale=2.0), new(wavelengths, e), new(e, 2 * h + 1, scale=0.1), new(2 * h + 1)]
        self.parameters, self.metric, self.flow = [*metric, *flow], metric, flow
        nodes = torch.cos(torch.pi * (torch.arange(t) + 0.5) / t)
        grid = torch.linspace(-1, 1, wavelengths)
        self.u = nodes[:, None].expand(t, wavelengths).reshape(1, -1).contiguous().cuda()
        self.wavelength = grid[None].expand(t, wavelengths).reshape(1, -1).contiguous().cuda()
        ends = torch.rand(2 * pairs, generator=g, dtype=torch.float64) * 2 - 1
        self.phi = integration_matrix(torch.cat([ends, torch.ones(1, dtype=torch.float64)]), t).float().cuda()[None]
        self.target = torch.randn(1, pairs, wavelengths, generator=g).cuda()
        self.weight = torch.full((1, pairs), 1.0 / (pairs * wavelengths)).cuda()
        self.backend = "triton" if kernel else "torch"
        groups = [{"params": metric, "lr": 1e-3, "clip": 1.0}, {"params": flow, "lr": 1e-3, "clip": 1.0}]
        self.optimizer = gk.FlatAdamW(groups)

    def loss(self, dtype=None, phi=None, target=None, weight=None) -> torch.Tensor:
        to = lambda t: t if dtype is None else t.detach().to(dtype).requires_grad_(t.requires_grad)  # noqa: E731
        self.leaves = [to(p) for p in self.parameters]
        data = [self.phi if phi is None else phi, self.target if target is None else target]
        data.append(self.weight if weight is None else weight)
        u, wavelength, *data = (t if dtype is None else t.to(dtype) for t in (self.u, self.wavelength, *data))
        backend = self.backend if dtype is None else "torch"
        return gk.default_flow_loss(self.leaves[:6], self.leaves[6:], u, wavelength, *data, backend=backend)

    def gradients(self, dtype=None):
        loss = self.loss(dtype)
        return loss.detach(), torch.autograd.grad(loss.sum(), self.leaves)

    def __call__(self, phi=None, target=None) -> torch.Tensor:
        loss = self.loss(None, phi, target)
        self.optimizer.step(torch.autograd.grad(loss.sum(), self.leaves))
        return loss.detach()


def integration_matrix(points: torch.Tensor, t: int) -> torch.Tensor:
    """∫_{−1}^{u} of the cardinal polynomials at Chebyshev nodes, [points, t], in float64."""
    k = torch.arange(t, dtype=torch.float64)
    theta = torch.pi * (k + 0.5) / t
    series = torch.cos(k[:, None] * theta[None, :]) * (2.0 / t)
    series[0] *= 0.5
    angle = points.double().clamp(-1, 1).arccos()[:, None]
    poly = torch.cos(torch.arange(t + 1, dtype=torch.float64) * angle)
    end = (-1.0) ** torch.arange(t + 1, dtype=torch.float64)
    integral = torch.empty(len(points), t, dtype=torch.float64)
    integral[:, 0] = points + 1
    integral[:, 1] = 0.5 * (points**2 - 1)
    for n in range(2, t):
        at = poly[:, n + 1] / (2 * (n + 1)) - poly[:, n - 1] / (2 * (n - 1))
        integral[:, n] = at - (end[n + 1] / (2 * (n + 1)) - end[n - 1] / (2 * (n - 1)))
    return integral @ series


def training_rows(rates: dict) -> list[dict]:
    """The default flow's full step: 2048 pairs (throughput, memory) and 30 pairs (latency, 500 epochs)."""
    rows = []
    small = DefaultStep(61, 37)
    loss, ours = small.gradients()
    exact_loss, exact = small.gradients(torch.float64)
    # a bias added to ln g̃ scales every arc length alike: its gradient is zero but for rounding, and not compared
    wrong = max(error(a, b) for i, (a, b) in enumerate(zip(ours, exact, strict=True)) if i != 5)
    wrong = max(wrong, error(loss, exact_loss))
    for pairs in (2048, 30):
        row = {"op": "training step, default flow", "pairs": pairs, "wavelengths": WAVELENGTHS, "error": wrong}
        rows.append(row)
        if wrong > 1e-4:
            continue
        step = DefaultStep(pairs)
        inputs = [step.phi, step.target]
        captured = gk.CapturedStep(step, inputs, step.optimizer.state_tensors())
        row["ms"] = timed(captured, 50)
        row["trajectories_per_s"] = pairs * WAVELENGTHS / row["ms"] * 1e3
        # two exponentials and one reciprocal for two nodes; 16 special-function results a cycle and multiprocessor
        tanh = pairs * WAVELENGTHS * 16 * HIDDEN
        row["tanh_per_s"] = tanh / row["ms"] * 1e3
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(500):
            captured(*inputs)
        torch.cuda.synchronize()
        row["500_steps_s"] = time.perf_counter() - begin
        del captured
        torch.cuda.empty_cache()
        row["eager_ms"] = timed(step, 9)
        row["peak_gb"] = peak(step)
    return rows


def velocity_row(rates: dict) -> list[dict]:
    """The step of ``flow="velocity"`` on 2048 × 601 trajectories."""
    small = VelocityStep(61, 37)
    loss, ours = small.gradients()
    exact_loss, exact = small.gradients("torch", torch.float64)
    # neither ŝ nor u̇ sees a bias added to ln g̃: its gradient is rounding
    each = [error(a, b) for i, (a, b) in enumerate(zip(ours, exact, strict=True)) if i != 5]
    wrong = max(*each, error(loss, exact_loss))
    row = {"op": "training step, velocity flow", "pairs": 2048, "wavelengths": WAVELENGTHS, "error": wrong}
    if wrong <= 1e-4:
        step = VelocityStep(2048, WAVELENGTHS)
        row["peak_gb"] = peak(step)
        row["ms"] = timed(step, 15)
        row["trajectories_per_s"] = 2048 * WAVELENGTHS / row["ms"] * 1e3
        # the network once forward and once back at 16 nodes a path: one dot forward and three back, three products each
        products = 3 * 4 * 16 * 2048 * WAVELENGTHS * EVALUATION_FLOP / 2
        row["floor_ms"] = products / rates["fp16_tflop_s"] / 1e9
    return [row]


def op_rows(rates: dict) -> list[dict]:
    """Single ops at training sizes: time, and bytes or operations against their ceiling."""
    rows = []
    step = DefaultStep(2048)
    with torch.no_grad():
        rows.append({"op": "metric_density forward", "n": step.u.numel()})
        density = lambda: gk.metric_density(step.u, step.wavelength, *step.metric, backend="triton")  # noqa: E731
        rows[-1]["ms"], rows[-1]["graph_ms"] = timed(density), graph_timed(density)
    s = torch.rand(2, 1, 2048, WAVELENGTHS, device="cuda") * 2 - 1
    omega = step.flow[0].detach()
    beta, a = torch.randn(2, 1, WAVELENGTHS, HIDDEN, device="cuda")
    a0 = torch.randn(1, WAVELENGTHS, device="cuda")
    leaves = [t.clone().requires_grad_() for t in (s[0], s[1], omega, beta, a, a0)]
    with torch.no_grad():
        exact = flow_reference(*(t[..., :64, :].double() if t.shape[1:2] == (2048,) else t.double() for t in leaves))
        wrong = error(gk.flow_quadrature(*leaves, backend="triton")[:, :64], exact)
        ms = timed(lambda: gk.flow_quadrature(*leaves, backend="triton"))
    rows.append({"op": "flow_quadrature forward", "n": 2048 * WAVELENGTHS, "error": wrong, "ms": ms})
    out = gk.flow_quadrature(*leaves, backend="triton")
    up = torch.randn_like(out)
    ms = timed(lambda: torch.autograd.grad(out, leaves, up, retain_graph=True))
    rows.append({"op": "flow_quadrature backward", "n": 2048 * WAVELENGTHS, "ms": ms})
    weight = torch.ones(1, 2048, device="cuda")
    ms = timed(lambda: gk.flow_loss(*leaves, up, weight, backend="triton"))
    rows.append({"op": "flow_loss (value and gradients)", "n": 2048 * WAVELENGTHS, "ms": ms})
    c, _, wavelength, *weights = geodesic_arguments(LARGE)
    with torch.no_grad():
        ms = timed(lambda: gk.metric_christoffel(c, wavelength, *weights, backend="triton"))
    rows.append({"op": "metric_christoffel forward", "n": LARGE, "ms": ms})
    return rows


def peers() -> list[dict]:
    """The same integration in torchdiffeq and JAX."""
    rows = []
    for library in ("torchdiffeq", "jax"):
        for mode in ("forward", "both"):
            for n in (SMALL, LARGE):
                command = [sys.executable, str(ROOT / "benchmarks" / "kernels_peers.py"), library, mode, str(n)]
                done = subprocess.run(command, capture_output=True, text=True, timeout=300)
                try:
                    rows.append(json.loads(done.stdout.strip().splitlines()[-1]))
                except (IndexError, json.JSONDecodeError):
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
    parser.add_argument("--commit", default="unknown", help="commit of the code measured")
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
        "commit": arguments.commit,
        "blocks": gk.block_table(),
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
