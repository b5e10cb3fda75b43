"""Device activity over a window, by the best counter there is; the rung that was used is named in every result.

GPM (Hopper and newer) → DCGM profiling fields → Nsight Compute per kernel → NVML's coarse counter, which is the share
of time in which any kernel ran at all and is never called SM activity. On a CPU: the busy share from /proc/stat.

One monitor thread in the parent samples ten times a second; workers only tell when their windows began and ended (the
monotonic clock is one for all processes of a host), so measuring costs the measured process nothing.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from geonode.bench import nvml

INTERVAL = 0.1
DCGM_PATIENCE = 3.0
"""Seconds that ``dcgmi`` has for its first sample."""
RUNGS = ("gpm", "dcgm", "ncu", "nvml")
TITLES = {
    "gpm": "SM activity by NVML GPM",
    "dcgm": "SM activity by DCGM fields 1002–1005 and 1007",
    "ncu": "SM activity by Nsight Compute, per kernel, weighted by time",
    "nvml": "coarse: share of time with any kernel resident (NVML); not SM activity",
    "cpu": "busy share of all cores (/proc/stat)",
    "none": "no activity counter",
}
_DCGM = {
    "1002": "sm_activity",
    "1003": "sm_occupancy",
    "1004": "tensor_activity",
    "1005": "dram_activity",
    "1007": "fp32_activity",
}


class Monitor:
    """Samples one device in the background until `stop`.

    Args:
        device: cpu or cuda.
        rung: a rung of the ladder asked for by name; None takes the first that works.

    Raises:
        RuntimeError: the rung asked for does not work here; the text says why.
    """

    def __init__(self, device: str, rung: str | None = None) -> None:
        self.rows: list[dict[str, Any]] = []
        self.reasons: dict[str, str] = {}
        self._gpm: list[tuple[float, Any]] = []
        self._dcgm_rows: list[tuple[float, dict[str, float]]] = []
        self._gpu: nvml.Device | None = None
        self._process: subprocess.Popen[str] | None = None
        self._lock, self._ended = threading.Lock(), threading.Event()
        self.rung = self._choose(device, rung)
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------ ladder

    def _choose(self, device: str, asked: str | None) -> str:
        if device != "cuda":
            if asked is not None:
                raise RuntimeError(f"--activity {asked}: a counter of GPUs, and this run is on a CPU; leave it out.")
            return "cpu" if Path("/proc/stat").is_file() else "none"
        try:
            self._gpu = nvml.Device()
        except RuntimeError as error:
            self.reasons["gpm"] = self.reasons["nvml"] = str(error)
        tests: dict[str, Callable[[], str | None]] = {
            "gpm": self._test_gpm,
            "dcgm": self._test_dcgm,
            "ncu": _test_ncu,
            "nvml": lambda: self.reasons.get("nvml"),
        }
        for rung in RUNGS if asked is None else (asked,):
            reason = tests[rung]()
            if reason is None:
                return rung
            self.reasons[rung] = reason
        if asked is not None:
            raise RuntimeError(f"--activity {asked}: {self.reasons[asked]}.")
        return "none"

    def _test_gpm(self) -> str | None:
        if self._gpu is None:
            return self.reasons["gpm"]
        try:
            if not self._gpu.has_gpm():
                return "this device has no GPM (Hopper and newer do)"
            first = self._gpu.gpm_sample()
            time.sleep(0.15)
            second = self._gpu.gpm_sample()
            values = self._gpu.gpm_between(first, second)
            self._gpu.free(first)
            self._gpu.free(second)
            return None if "sm_activity" in values else "GPM answers without SM activity"
        except Exception as error:  # whatever the driver objects to: the next rung is tried, and this is reported
            return f"GPM: {error}"

    def _test_dcgm(self) -> str | None:
        if shutil.which("dcgmi") is None:
            return "dcgmi is not installed"
        command = ["dcgmi", "dmon", "-e", ",".join(_DCGM), "-d", str(int(1e3 * INTERVAL))]
        index = None if self._gpu is None else self._gpu.ask("nvmlDeviceGetIndex")
        if index is not None:
            command += ["-i", str(index)]  # this device alone, or the rows of all would be averaged
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._process = process
        threading.Thread(target=self._read_dcgm, args=(process,), daemon=True).start()
        deadline = time.monotonic() + DCGM_PATIENCE
        while time.monotonic() < deadline and process.poll() is None and not self._dcgm_rows:
            time.sleep(0.02)
        if self._dcgm_rows:
            return None
        process.terminate()
        self._process = None
        return "dcgmi dmon gives no profiling fields here (they need a running nv-hostengine and its permission)"

    def _read_dcgm(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            values = parse_dcgm(line)
            if values:
                with self._lock:
                    self._dcgm_rows.append((time.monotonic(), values))

    # ------------------------------------------------------------------ sampling

    def _loop(self) -> None:
        before = _cpu_times() if self.rung == "cpu" else None
        while not self._ended.wait(INTERVAL):
            now = time.monotonic()
            row: dict[str, Any] = {"t": now}
            if self._gpu is not None:
                row.update(self._gpu.reading())
                if self.rung == "gpm":
                    row.update(self._take_gpm(now))
            elif before is not None:
                after = _cpu_times()
                total = after[1] - before[1]
                row["cpu_busy"] = 100.0 * (after[0] - before[0]) / total if total else 0.0
                before = after
            with self._lock:
                self.rows.append(row)

    def _take_gpm(self, now: float) -> dict[str, float]:
        assert self._gpu is not None
        sample = self._gpu.gpm_sample()
        with self._lock:
            self._gpm.append((now, sample))
            last = self._gpm[-2:]
            if len(self._gpm) > 1200:  # two minutes: longer than any window
                self._gpu.free(self._gpm.pop(0)[1])
        return self._gpu.gpm_between(last[0][1], last[1][1]) if len(last) == 2 else {}

    def stop(self) -> None:
        """End sampling."""
        self._ended.set()
        self._thread.join(timeout=2.0)
        if self._process is not None:
            self._process.terminate()
        if self._gpu is not None:
            for _, sample in self._gpm:
                self._gpu.free(sample)
            self._gpm.clear()

    # ------------------------------------------------------------------ windows

    def window(self, begin: float, end: float) -> dict[str, Any]:
        """Averages over a window on the monotonic clock, its first 0.15 s left out (the queue fills)."""
        time.sleep(max(0.0, end + 2.5 * INTERVAL - time.monotonic()))  # the last sample is still to come
        begin += min(0.15, 0.1 * (end - begin))
        with self._lock:
            rows = [r for r in self.rows if begin <= r["t"] <= end]
            samples = [(t, s) for t, s in self._gpm if begin <= t <= end]
            dcgm = [values for t, values in self._dcgm_rows if begin <= t <= end]
        result: dict[str, Any] = {"rung": self.rung, "seconds": end - begin, "samples": len(rows), **summarise(rows)}
        if self.rung == "gpm" and len(samples) > 1 and self._gpu is not None:
            result.update(self._gpu.gpm_between(samples[0][1], samples[-1][1]))
            result["seconds"] = samples[-1][0] - samples[0][0]
        elif self.rung == "dcgm" and dcgm:
            for name in dcgm[0]:
                result[name] = sum(row[name] for row in dcgm) / len(dcgm)
        return result

    def describe(self) -> dict[str, Any]:
        """The device by NVML; empty where there is none."""
        return {} if self._gpu is None else self._gpu.describe()

    def timeline(self) -> list[dict[str, Any]]:
        """All samples so far."""
        with self._lock:
            return list(self.rows)


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Power, energy by counter and by integrated power, clocks, temperature and throttling over consecutive samples."""
    result: dict[str, Any] = {}
    for name in ("power_w", "sm_clock_mhz", "memory_clock_mhz", "coarse_busy", "cpu_busy"):
        values = [r[name] for r in rows if r.get(name) is not None]
        if values:
            result[name] = sum(values) / len(values)
    temperatures = [r["temperature_c"] for r in rows if r.get("temperature_c") is not None]
    if temperatures:
        result["temperature_c"] = max(temperatures)
    bits = 0
    for r in rows:
        bits |= r.get("throttle") or 0
    if any(r.get("throttle") is not None for r in rows):
        result["throttle_reasons"] = [name for bit, name in nvml.THROTTLE.items() if bits & bit]
    told = [r for r in rows if r.get("energy_j") is not None and r.get("power_w") is not None]
    if len(told) > 1:
        result["energy_seconds"] = told[-1]["t"] - told[0]["t"]
        result["energy_counter_j"] = told[-1]["energy_j"] - told[0]["energy_j"]
        result["energy_integrated_j"] = sum(
            0.5 * (a["power_w"] + b["power_w"]) * (b["t"] - a["t"]) for a, b in pairwise(told)
        )
    return result


def parse_dcgm(line: str) -> dict[str, float]:
    """The five fields of one line of ``dcgmi dmon`` as percent; empty for headers and lines without values."""
    parts = line.split()
    if len(parts) < 2 + len(_DCGM) or parts[0] != "GPU":
        return {}
    try:
        numbers = [100.0 * float(x) for x in parts[2 : 2 + len(_DCGM)]]
    except ValueError:
        return {}
    return dict(zip(_DCGM.values(), numbers, strict=True))


def _test_ncu() -> str | None:
    return None if shutil.which("ncu") else "ncu is not installed"


def _cpu_times() -> tuple[float, float]:
    """(busy, total) jiffies of all cores since boot."""
    numbers = [float(x) for x in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(numbers) - numbers[3] - numbers[4], sum(numbers)
