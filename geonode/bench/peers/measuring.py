"""What every peer's process shares: the spec it is given, timing, and the line it prints.

A spec is JSON: device, ``counts`` of trajectories, ``budget`` seconds per timing, ``reference`` (path of an .npy file
[2, CHECKED] with the float64 solution). Work–precision curves are measured at the first count alone.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from geonode.bench import problem

MARK = "@geonode.peer "


@dataclass
class Spec:
    """One measurement: where, how many trajectories, seconds for a timing, the float64 solution, curves wanted."""

    device: str
    n: int
    budget: float
    exact: np.ndarray
    curve: bool


def main(
    library: str, version: str, measure: Callable[[Spec], tuple[list[dict[str, Any]], list[dict[str, Any]]]]
) -> None:
    """``measure`` (rows and curve) at every count of the command line's spec, each printed as soon as it is there."""
    values = json.loads(sys.argv[1])
    exact = np.load(values["reference"])
    for k, n in enumerate(values["counts"]):
        rows, curve = measure(Spec(values["device"], n, values["budget"], exact, k == 0))
        answer = {"library": library, "version": version, "n": n, "rows": rows, "curve": curve}
        print(f"{MARK}{json.dumps(answer)}", flush=True)


def milliseconds(run: Callable[[], Any], budget: float, most: int = 50) -> list[float]:
    """Wall-clock samples of ``run``, which waits for its result; two calls to warm up."""
    run()
    begin = time.perf_counter()
    run()
    once = time.perf_counter() - begin
    samples = []
    for _ in range(max(3, min(most, int(budget / max(once, 1e-6))))):
        begin = time.perf_counter()
        run()
        samples.append(1e3 * (time.perf_counter() - begin))
    return samples


def row(
    mode: str, n: int, samples: list[float], error: float | None, evaluations: int | None, note: str
) -> dict[str, Any]:
    """One measurement in the form the report reads."""
    return {
        "mode": mode, "n": n, "samples_ms": samples, "ms": statistics.median(samples), "error": error,
        "evaluations": evaluations, "precision": "float32", "note": note,
    }  # fmt: skip


def point(
    solver: str, label: str, error: float, samples: list[float], evaluations: int | None = None
) -> dict[str, Any]:
    """One point of a work–precision curve."""
    ms = statistics.median(samples)
    return {
        "problem": "initial value",
        "solver": solver,
        "label": label,
        "error": error,
        "ms": ms,
        "evaluations": evaluations,
    }


def torch_problem(n: int, device: str) -> tuple[Any, ...]:
    """(c, v, λ) and the six weights as torch tensors, TF32 off."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    arrays = [*problem.points(n), *problem.weights()]
    return tuple(torch.from_numpy(a).to(device) for a in arrays)


def torch_gamma(c: Any, wavelength: Any, weights: Any) -> Any:
    """Γ [n] by the same formula as `problem.christoffel`: value and derivative carried together."""
    import torch

    w1, b1, w2, b2, w3, b3 = weights
    h = torch.tanh(torch.outer(c, w1[:, 0]) + (torch.outer(wavelength, w1[:, 1]) + b1))
    d = (1 - h * h) * w1[:, 0]
    h2 = torch.tanh(torch.addmm(b2, h, w2.T))
    d2 = (1 - h2 * h2) * (d @ w2.T)
    y, dy = h2 @ w3[0] + b3, d2 @ w3[0]
    return 0.5 * torch.sigmoid(y) * dy / (torch.nn.functional.softplus(y) + problem.FLOOR)


def torch_wait(device: str) -> None:
    """Wait for the device."""
    import torch

    if device == "cuda":
        torch.cuda.synchronize()
