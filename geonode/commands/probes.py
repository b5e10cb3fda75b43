"""What of this machine geonode can use: each part tried rather than looked up, with the reason where it cannot."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

KERNEL_CAPABILITY = (8, 0)
"""Compute capability from which Triton compiles for a card (Ampere and newer)."""
_CGROUP = Path("/sys/fs/cgroup")
_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")  # version 2, version 1
_USED = ("memory.current", "memory/memory.usage_in_bytes")


class Unusable(Exception):
    """Why a part cannot be used, with the remedy where there is one."""


def say(probe: Callable[[], str]) -> str:
    """ "usable: …" with what was found, or "not usable: …" with the reason."""
    try:
        return f"usable: {probe()}"
    except Unusable as reason:
        return f"not usable: {reason}"
    except Exception as error:  # whatever a driver or a package objects to is the answer that is asked for
        return f"not usable: {type(error).__name__}: {' '.join(str(error).split())[:200]}"


def parts() -> list[tuple[str, str]]:
    """(part, whether it is usable) for everything beyond plain torch on the CPU."""
    probes = (
        ("kernels", kernels), ("nvml", nvml), ("torch.compile", compiling), ("onnx export", onnx),
        ("ray", ray), ("deepspeed", lambda: installed("deepspeed", "deepspeed")),
        ("opus and wdf files", lambda: installed("brukeropus", "readers") + ", " + installed("wdf", "readers")),
    )  # fmt: skip
    return [(name, say(probe)) for name, probe in probes]


def kernels() -> str:
    """The fused kernels, one launched on every CUDA device and its result compared.

    Raises:
        Unusable: no Triton, no CUDA device, a card that is too old, or a launch that fails.
    """
    import torch

    triton = _module("triton", "gpu")
    if not torch.cuda.is_available():
        raise Unusable(f"{no_cuda()}; geonode computes the same in plain torch")
    ready, refused = [], []
    for number in range(torch.cuda.device_count()):
        name, capability = torch.cuda.get_device_name(number), torch.cuda.get_device_capability(number)
        if capability < KERNEL_CAPABILITY:
            least = ".".join(map(str, KERNEL_CAPABILITY))
            refused.append(f"cuda:{number} {name} has compute capability {capability[0]}.{capability[1]} < {least}")
            continue
        try:
            _launch(torch.device("cuda", number))
            ready.append(f"cuda:{number}")
        except Exception as error:  # a compiler that is missing, a driver that does not fit
            refused.append(f"cuda:{number} {name}: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
    if not ready:
        raise Unusable("; ".join(refused))
    return "; ".join([f"Triton {triton.__version__} on {', '.join(ready)}", *refused])


def _launch(device: Any) -> None:
    """One kernel, compiled and run, against plain torch."""
    import torch

    import geonode_kernels

    hidden, generator = 16, torch.Generator().manual_seed(0)
    shapes = ((1, 64), (1, 64), (1, hidden, 2), (1, hidden), (1, hidden, hidden), (1, hidden), (1, 1, hidden), (1, 1))
    arguments = [torch.rand(shape, generator=generator).to(device) for shape in shapes]
    by_kernel = geonode_kernels.metric_value(*arguments, backend="triton")
    by_torch = geonode_kernels.metric_value(*arguments, backend="torch")
    error = ((by_kernel - by_torch).abs().max() / by_torch.abs().max()).item()
    if not error < 1e-4:
        raise Unusable(f"a kernel's result differs from plain torch by {error:.1e}")


def no_cuda() -> str:
    """Why torch sees no CUDA device."""
    import torch

    if torch.version.cuda is None:
        return f"torch {torch.__version__} was built without CUDA"
    if os.environ.get("CUDA_VISIBLE_DEVICES", None) in ("", "-1"):
        return "CUDA_VISIBLE_DEVICES hides every device"
    return "no CUDA device (no card, or no driver that this torch takes)"


def nvml() -> str:
    """What a GPU's monitor gives.

    Raises:
        Unusable: no library, no driver or no card.
    """
    from geonode.bench.nvml import Device

    try:
        device = Device()
    except RuntimeError as error:
        raise Unusable(str(error)) from None
    what = "SM activity (GPM)" if device.has_gpm() else "no SM activity (GPM came with Hopper)"
    return f"driver {device.describe()['driver']}, power, memory, temperature, {what}"


def compiling() -> str:
    """torch.compile on a CPU, which calls a C++ compiler with Python's headers.

    Raises:
        Unusable: there is none, or it cannot compile.
    """
    import subprocess
    import sysconfig

    from geonode.training.compiling import cpp_compiler

    compiler = cpp_compiler()
    if shutil.which(compiler.split()[0]) is None:
        raise Unusable(f"it needs a C++ compiler on a CPU, and {compiler!r} does not run here; install one or set CXX")
    command = [*compiler.split(), "-fsyntax-only", "-x", "c++", "-I", sysconfig.get_path("include"), "-"]
    program = "#include <Python.h>\n#include <cmath>\nint main() { return 0; }\n"
    done = subprocess.run(command, input=program, capture_output=True, text=True, timeout=60.0)
    if done.returncode != 0:
        wrong = [line for line in done.stderr.splitlines() if "error" in line] or ["it fails"]
        raise Unusable(f"{compiler!r} does not compile a program with Python's headers ({wrong[0].strip()})")
    return compiler


def onnx() -> str:
    """Export to ONNX, and what its results are compared with, on a CPU.

    Raises:
        Unusable: a package of the extra ``export`` is missing or cannot be imported.
    """
    return ", ".join(installed(name, "export") for name in ("onnx", "onnxscript", "onnxruntime"))


def ray() -> str:
    """Sweeps on several processes or machines.

    Raises:
        Unusable: Ray is not installed or cannot be imported.
    """
    try:
        return f"ray {_module('ray', 'cluster').__version__}, started when a sweep asks for it"
    except Unusable as reason:
        raise Unusable(f"{reason}; geonode sweep --shard needs none") from None


def installed(module: str, extra: str) -> str:
    """A package by its import name, imported.

    Raises:
        Unusable: it is not installed, or cannot be imported.
    """
    found = _module(module, extra)
    version = getattr(found, "__version__", None)
    return module if version is None else f"{module} {version}"


def _module(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            raise Unusable(f"{name} is not installed (pip install 'geodesic-node[{extra}]')") from None
        raise Unusable(f"{name} is installed, but what it imports is not: {error}") from None


def memory() -> tuple[int, int] | None:
    """(free, total) bytes that this process may use: the machine's, or a container's limit where that is less.

    None where the system does not tell.
    """
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        free, total = os.sysconf("SC_AVPHYS_PAGES") * page, os.sysconf("SC_PHYS_PAGES") * page
    except (ValueError, OSError, AttributeError):
        return None
    for line in _lines("/proc/meminfo"):  # what caches hold is given up when it is asked for
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) * 1024
    limit, used = _first(_LIMITS), _first(_USED)
    if limit is not None and limit < total:
        free, total = min(free, limit - (used or 0)), limit
    return max(free, 0), total


def _first(names: tuple[str, ...]) -> int | None:
    for name in names:
        for line in _lines(_CGROUP / name):
            with suppress(ValueError):  # "max": no limit
                return int(line)
    return None


def _lines(path: str | Path) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
