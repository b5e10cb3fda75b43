"""The parent's side of the peers: each library in a process of its own, one after the other, beside our case."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from geonode.bench import host, problem
from geonode.bench.peers.measuring import MARK
from geonode.registry import Registry

CASE = "geodesic-ivp"  # the case they stand beside


@dataclass(frozen=True)
class Peer:
    """A library that solves the same problem: the module of this package that drives it, and what that imports.

    Attributes:
        module: run in a process of its own as ``python -m``; it is never imported here.
        needs: modules that must be installed for it.
    """

    module: str
    needs: tuple[str, ...]


PEERS: Registry[Peer] = Registry("peer")
PEERS.register("torchdiffeq")(Peer("geonode.bench.peers.with_torchdiffeq", ("torchdiffeq",)))
PEERS.register("torchode")(Peer("geonode.bench.peers.with_torchode", ("torchode",)))
PEERS.register("diffrax")(Peer("geonode.bench.peers.with_diffrax", ("jax", "diffrax")))
PEERS.register("compile")(Peer("geonode.bench.peers.with_compile", ("torch",)))


def run(name: str, counts: Sequence[int], device: str, budget: float, timeout: float = 150.0) -> list[dict[str, Any]]:
    """One peer at so many trajectories each: its results, or one answer ``skipped`` or ``failed`` with the reason.

    Work–precision curves are measured at the first count alone.
    """
    peer = PEERS[name]
    missing = [module for module in peer.needs if find_spec(module) is None]
    if missing:
        reason = f"{missing[0]} is not installed (pip install 'geodesic-node[bench]')"
        return [{"library": name, "status": "skipped", "reason": reason}]
    with tempfile.TemporaryDirectory() as folder:
        reference = Path(folder) / "reference.npy"
        np.save(reference, problem.reference())
        spec = {"device": device, "counts": list(counts), "budget": budget, "reference": str(reference)}
        try:
            done = subprocess.run(
                [sys.executable, "-m", peer.module, json.dumps(spec)], capture_output=True, text=True, timeout=timeout,
                env=host.of_process(device),
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
