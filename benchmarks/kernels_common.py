"""Timing, memory, errors and ceilings that the kernels' benchmarks share."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "kernels")]

from kernels_peers import HIDDEN, problem  # noqa: E402

import geonode_kernels as gk  # noqa: E402

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
