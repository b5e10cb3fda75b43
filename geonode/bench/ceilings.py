"""What this device can do at most, measured in the same run: copy bandwidth and matrix rates."""

from __future__ import annotations

import statistics
from typing import Any

import torch

from geonode.bench.nvml import Device
from geonode.bench.timing import event_samples, wall_samples

# special-function results a cycle and multiprocessor: CUDA C++ Programming Guide, arithmetic throughput (8.0, 9.0)
_SPECIAL_PER_CYCLE = 16


def measure(device: str, budget: float = 0.15) -> dict[str, Any]:
    """``copy`` in bytes/s (read and written), matrix products in operations/s by arithmetic, and how each was got."""
    return _cuda(budget) if device == "cuda" else _cpu(budget)


def _median_seconds(run: Any, device: str, budget: float) -> float:
    samples = event_samples(run, 1, budget) if device == "cuda" else wall_samples(run, 1, device, budget)
    return 1e-3 * statistics.median(samples)


def _cuda(budget: float) -> dict[str, Any]:
    x = torch.randn(2**28, device="cuda")
    y = torch.empty_like(x)
    rates: dict[str, Any] = {"copy": 8 * x.numel() / _median_seconds(lambda _, x=x, y=y: y.copy_(x), "cuda", budget)}
    del x, y
    size = 8192
    a = torch.randn(size, size, device="cuda")
    allowed = torch.backends.cuda.matmul.allow_tf32
    for name, tf32, dtype in (
        ("fp32", False, torch.float32),
        ("tf32", True, torch.float32),
        ("bf16", False, torch.bfloat16),
        ("fp16", False, torch.float16),
    ):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        b = a.to(dtype)
        rates[name] = 2 * size**3 / _median_seconds(lambda _, b=b: b @ b, "cuda", budget)
    torch.backends.cuda.matmul.allow_tf32 = allowed
    properties: Any = torch.cuda.get_device_properties(0)
    special, how_special = _special(properties)
    if special:
        rates["special"] = special
    rates["how"] = {
        "copy": "device-to-device copy of 1 GiB, bytes read and written",
        "fp32, tf32, bf16, fp16": f"matrix product of {size} on random data",
        "special": how_special,
    }
    return rates


def _special(properties: Any) -> tuple[float, str]:
    """Special-function results a second and how they were got; 0 and the reason where no clock is told."""
    clock = 1e3 * getattr(properties, "clock_rate", 0)  # kHz
    if not clock:
        try:
            device = Device()
        except RuntimeError as error:
            return 0.0, f"left out: the highest clock is not known ({error})"
        clock = 1e6 * (device.ask("nvmlDeviceGetMaxClockInfo", device.api.NVML_CLOCK_SM) or 0)  # MHz
    if not clock:
        return 0.0, "left out: NVML does not tell the highest clock of this device"
    rate = properties.multi_processor_count * _SPECIAL_PER_CYCLE * clock
    return rate, "derived, not measured: 16 results a cycle and multiprocessor at the highest clock"


def _cpu(budget: float) -> dict[str, Any]:
    x = torch.randn(2**25)
    y = torch.empty_like(x)
    rates: dict[str, Any] = {"copy": 8 * x.numel() / _median_seconds(lambda _: y.copy_(x), "cpu", budget)}
    size = 1024
    a = torch.randn(size, size)
    rates["fp32"] = 2 * size**3 / _median_seconds(lambda _: a @ a, "cpu", budget)
    d = a.double()
    rates["fp64"] = 2 * size**3 / _median_seconds(lambda _: d @ d, "cpu", budget)
    rates["how"] = {
        "copy": "copy of 128 MiB, bytes read and written",
        "fp32, fp64": f"matrix product of {size} on random data",
    }
    return rates


def floor(operations: dict[str, float], moved: float, rates: dict[str, Any]) -> dict[str, Any]:
    """The least time in ms for these operations and bytes at the measured ceilings, and the ceiling that sets it.

    Different units work side by side, so the largest single time is the floor. Empty where nothing was counted.
    """
    times = {name: 1e3 * count / rates[name] for name, count in operations.items() if count and name in rates}
    if moved and "copy" in rates:
        times["copy"] = 1e3 * moved / rates["copy"]
    if not times:
        return {}
    binding = max(times, key=lambda name: times[name])
    return {"ms": times[binding], "binding": binding, "by_ceiling_ms": times}
