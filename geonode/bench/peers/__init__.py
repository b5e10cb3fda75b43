"""The parent's side of the peers: each library in a process of its own, one after the other, beside our case."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
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


def run(name: str, counts: Sequence[int], device: str, budget: float, timeout: float = 150.0) -> list[dict[str, Any]]:
    """One peer at so many trajectories each: its results, or one answer ``skipped`` or ``failed`` with the reason.

    Work–precision curves are measured at the first count alone.
    """
    missing = [module for module in PEERS[name] if find_spec(module) is None]
    if missing:
        return [{"library": name, "status": "skipped", "reason": f"{missing[0]} is not installed"}]
    script = FOLDER / f"peer_{name}.py"
    if not script.is_file():
        reason = "the adapters are in a checkout's benchmarks/peers"
        return [{"library": name, "status": "skipped", "reason": reason}]
    with tempfile.TemporaryDirectory() as folder:
        reference = Path(folder) / "reference.npy"
        np.save(reference, problem.reference())
        spec = {"device": device, "counts": list(counts), "budget": budget, "reference": str(reference)}
        try:
            done = subprocess.run(
                [sys.executable, str(script), json.dumps(spec)], capture_output=True, text=True, timeout=timeout,
                env=host.environment(device),
            )  # fmt: skip
            output, errors = done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:  # what it had measured by then counts
            output = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
            errors = f"no answer within {timeout:.0f} s"
    return read(name, counts, output, errors)


def read(name: str, counts: Sequence[int], output: str, errors: str) -> list[dict[str, Any]]:
    """A peer's answer for each count, in order, from what it printed; ``failed`` for those it did not reach."""
    lines = [json.loads(line[len(MARK) :]) for line in output.splitlines() if line.startswith(MARK)]
    last = [line for line in errors.strip().splitlines() if line.strip()]
    answers: list[dict[str, Any]] = [{"status": "green", **line} for line in lines[: len(counts)]]
    for n in counts[len(answers) :]:
        reason = last[-1][:300] if last else "no output"
        answers.append({"library": name, "n": n, "status": "failed", "reason": reason})
    return answers
