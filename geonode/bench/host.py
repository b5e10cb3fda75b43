"""Host, versions and commit: what a figure needs beside it to mean something later."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "triton", "numpy", "scipy", "torchdiffeq", "torchode", "jax", "diffrax", "nvidia-ml-py")


def describe() -> dict[str, Any]:
    """Everything but the device."""
    from geonode import __version__

    return {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "geonode": __version__,
        "commit": commit(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS", "torch's default"),
        "load_at_start": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "versions": {name: version(name) for name in PACKAGES},
    }


def environment(device: str) -> dict[str, str]:
    """What a measuring process inherits; on a CPU its waiting threads sleep instead of spinning.

    On a GPU devices are numbered by PCI bus, as NVML does, so that the device watched is the one measured.

    Spinning threads and any other load on the same cores hold each other up at every parallel loop: with a load of 6
    on 2 cores the geodesic initial-value case took 3 to 13 s instead of 0.6. OMP_WAIT_POLICY, where set, is kept.
    """
    if device != "cpu":
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **os.environ}
    # and JAX would take a GPU on import
    return {"OMP_WAIT_POLICY": "PASSIVE", **os.environ, "JAX_PLATFORMS": "cpu"}


def version(package: str) -> str | None:
    """Installed version, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def commit() -> str | None:
    """GEONODE_COMMIT where it is set, else the checkout's commit, ``+changes`` where sources differ from it."""
    told = os.environ.get("GEONODE_COMMIT")
    if told:
        return told
    root = Path(__file__).resolve().parent.parent.parent
    try:
        head = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        status = ["git", "-C", str(root), "status", "--porcelain", "-uno", "--", "geonode", "kernels"]
        changed = subprocess.run(status, capture_output=True, text=True, check=True).stdout.strip()
        return head.stdout.strip() + ("+changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
