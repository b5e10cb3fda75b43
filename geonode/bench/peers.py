"""The parent's side of the peers: each library in a process of its own, one after the other, beside our case."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from geonode.bench import host, problem

MARK = "@geonode.peer "
FOLDER = Path(__file__).resolve().parent.parent.parent / "benchmarks" / "peers"
# library → what must be installed for it
PEERS = {
    "torchdiffeq": ("torchdiffeq",),
    "torchode": ("torchode",),
    "diffrax": ("jax", "diffrax"),
    "compile": ("torch",),
}
CASE = "geodesic-ivp"  # the case they stand beside


def run(name: str, n: int, device: str, budget: float, curve: bool, timeout: float = 120.0) -> dict[str, Any]:
    """One peer at one size: its result, or ``skipped``/``failed`` with the reason."""
    missing = [module for module in PEERS[name] if find_spec(module) is None]
    if missing:
        return {"library": name, "n": n, "status": "skipped", "reason": f"{missing[0]} is not installed"}
    script = FOLDER / f"peer_{name}.py"
    if not script.is_file():
        return {
            "library": name,
            "n": n,
            "status": "skipped",
            "reason": "the adapters are in a checkout's benchmarks/peers",
        }
    with tempfile.TemporaryDirectory() as folder:
        reference = Path(folder) / "reference.npy"
        np.save(reference, problem.reference())
        spec = {"device": device, "n": n, "budget": budget, "curve": curve, "reference": str(reference)}
        try:
            done = subprocess.run(
                [sys.executable, str(script), json.dumps(spec)],
                capture_output=True,
                text=True,
                timeout=timeout,
                env=host.environment(device),
            )
        except subprocess.TimeoutExpired:
            return {"library": name, "n": n, "status": "failed", "reason": f"no answer within {timeout:.0f} s"}
    return read(name, n, done.stdout, done.stderr)


def read(name: str, n: int, output: str, errors: str) -> dict[str, Any]:
    """A peer's answer from what it printed."""
    lines = [line for line in output.splitlines() if line.startswith(MARK)]
    if not lines:
        last = [line for line in errors.strip().splitlines() if line.strip()]
        return {"library": name, "n": n, "status": "failed", "reason": last[-1][:300] if last else "no output"}
    return {"n": n, "status": "green", **json.loads(lines[-1][len(MARK) :])}
