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
_ROOT = Path(__file__).resolve().parents[2]
_SOURCES = ("geonode", "kernels", "runtime", "pyproject.toml")


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


def commit() -> str:
    """Of the code that is running: GEONODE_COMMIT where it is set, else the commit of geonode's own checkout.

    ``+changes`` follows where its sources differ from that commit, files that were never added included. "unknown" for
    an installed geonode, whatever repository may surround it or the working directory.
    """
    told = os.environ.get("GEONODE_COMMIT")
    if told:
        return told
    top = _git("rev-parse", "--show-toplevel")
    own = Path(__file__).relative_to(_ROOT).as_posix()
    # another repository may hold this folder (an environment inside somebody's project): is this file one of its?
    if top is None or Path(top).resolve() != _ROOT or _git("ls-files", "--error-unmatch", own) is None:
        return "unknown"
    head, changes = _git("rev-parse", "HEAD"), _git("status", "--porcelain", "--untracked-files=all", "--", *_SOURCES)
    if head is None or changes is None:  # a repository without a commit
        return "unknown"
    return head + ("+changes" if changes else "")


def _git(*arguments: str) -> str | None:
    """What git says of the folder that this package lies in; None where it says nothing, or there is no git."""
    # GIT_DIR and its like name the repository of whoever called us, from a hook of theirs for example
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(_ROOT), *arguments], capture_output=True, text=True, env=environment, timeout=30.0
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
