"""The Nsight Compute rung: each kernel of one call measured alone, weighted by its duration.

For cards without GPM and machines without DCGM. Kernels are replayed one by one, so the idle time between them is not
seen; it comes from the case's own time: activity = Σ activityₖ tₖ / time of a call (at most 100 %).
"""

from __future__ import annotations

import csv
import subprocess
import sys
from typing import Any

METRICS = {
    "gpu__time_duration.sum": "ns",
    "sm__cycles_active.avg.pct_of_peak_sustained_elapsed": "sm_activity",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "sm_occupancy",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": "tensor_activity",
    "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed": "fp32_activity",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "dram_activity",
}


def measure(
    plan: str, call_ms: float, environment: dict[str, str], limit: int = 400, timeout: float = 120.0
) -> dict[str, Any]:
    """Activity of one call of the case in ``plan`` (a worker's plan with ``once`` set), as percentages.

    ``environment`` is that of a worker.

    Raises:
        RuntimeError: ncu failed or reported no kernel; the text is its last line.
    """
    command = [
        "ncu", "--clock-control", "none", "--profile-from-start", "off", "--launch-count", str(limit), "--csv",
        "--page", "raw", "--metrics", ",".join(METRICS), sys.executable, "-m", "geonode.bench.worker", plan,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)
    kernels = parse(done.stdout)
    if not kernels:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise RuntimeError(f"ncu: {lines[-1] if lines else 'no output'}")
    return combine(kernels, call_ms)


def parse(text: str) -> list[dict[str, float]]:
    """Rows of ncu's CSV page, one per kernel, by our names; times in ns."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    if len(lines) < 3:
        return []
    table = list(csv.reader(lines))
    header, units = table[0], table[1]
    scale = {"us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9}
    rows = []
    for line in table[2:]:
        row = {}
        for name, unit, value in zip(header, units, line, strict=True):
            if name in METRICS and value:
                try:
                    number = float(value.replace(",", ""))
                except ValueError:
                    continue
                row[METRICS[name]] = number * (scale.get(unit, 1.0) if METRICS[name] == "ns" else 1.0)
        if "ns" in row:
            rows.append(row)
    return rows


def combine(kernels: list[dict[str, float]], call_ms: float) -> dict[str, Any]:
    """Kernels' activities weighted by time, relative to the whole call's."""
    busy = sum(k["ns"] for k in kernels)
    share = min(1.0, 1e-6 * busy / call_ms) if call_ms > 0 else 1.0
    result: dict[str, Any] = {"rung": "ncu", "kernels": len(kernels), "kernel_ms": 1e-6 * busy}
    for name in METRICS.values():
        if name != "ns":
            result[name] = share * sum(k.get(name, 0.0) * k["ns"] for k in kernels) / busy
    return result
