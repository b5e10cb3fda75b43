"""The demo beside its known truth over several seeds, and what reading an assay of its size costs.

    OMP_NUM_THREADS=2 python benchmarks/demo.py             # writes benchmarks/results/demo.json and demo.md

*Error* is the root mean square against the noiseless truth at the demo's five concentrations between the standards, of
the flow with the shipped weights, of the geodesic process and of the simple methods; *band*, how often the flow's 80 %
band holds a freshly measured spectrum there. *Cost* is that of `geonode.fit` and of `geonode.evaluate` with all folds,
6 × 601, in a process of its own: time beyond imports, a second time as well, and the peak of its memory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import geonode  # noqa: E402
from geonode.calibration.baselines.method import EVALUATION_METHODS  # noqa: E402
from geonode.commands.demo import _BETWEEN, _FRESH  # noqa: E402
from geonode.data import simulate_assay  # noqa: E402
from geonode.data.labelled import half_width  # noqa: E402
from geonode_runtime.files import write_text  # noqa: E402

SIMPLE = ("linear", "pchip", "cubic", "quadratic", "line")
TARGETS = {"fit": 1.0, "evaluate": 10.0, "memory GB": 1.0}


def rmse(one: np.ndarray, other: np.ndarray) -> float:
    """Root mean square difference."""
    return float(np.sqrt(np.mean((one - other) ** 2)))


def one_seed(seed: int) -> dict[str, Any]:
    """Errors of all methods and coverage of the band for one demo."""
    assay = simulate_assay(seed=seed)
    model, between = geonode.fit(assay, seed=seed), np.array(_BETWEEN)
    mean, std = model.predict_spectra(_BETWEEN)
    truth = assay.truth(between).double().cpu().numpy()
    fresh = simulate_assay(_BETWEEN, seed=seed + _FRESH).spectra
    levels, means = np.asarray(assay.levels), np.asarray(assay.level_means())
    errors = {"node": rmse(mean.values, truth), "gp": rmse(model.gp.predict_mean(between), truth)}
    for name in SIMPLE:
        errors[name] = rmse(EVALUATION_METHODS[name]().fit(levels, means).predict(between), truth)  # type: ignore[union-attr]
    inside = float(np.mean(np.abs(mean.values - fresh) <= half_width(std)))
    return {"seed": seed, "error": errors, "in the band": inside}


def cost() -> dict[str, float]:
    """Seconds of a fit and of an evaluation, and the peak of the memory of this process."""
    assay, found = simulate_assay(seed=0), {}
    for name, work in (("fit", geonode.fit), ("evaluate", geonode.evaluate)):
        for again in ("", ", again"):
            started, busy = time.perf_counter(), time.process_time()
            work(assay)
            found[name + again] = round(time.perf_counter() - started, 3)
            found[f"{name}{again}, processor"] = round(time.process_time() - busy, 3)
    found["memory GB"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 3)
    return found


def markdown(record: dict[str, Any]) -> str:
    """The record as text."""
    names = list(record["seeds"][0]["error"])
    lines = ["# The demo beside its truth", "", "| seed | " + " | ".join(names) + " | in the 80 % band |"]
    lines += ["|---" * (len(names) + 2) + "|"]
    for row in record["seeds"]:
        cells = [f"{row['error'][name]:.4f}" for name in names]
        lines.append(f"| {row['seed']} | " + " | ".join(cells) + f" | {row['in the band']:.0%} |")
    means = [np.exp(np.mean([np.log(row["error"][name]) for row in record["seeds"]])) for name in names]
    band = np.mean([row["in the band"] for row in record["seeds"]])
    lines.append("| geometric mean | " + " | ".join(f"{value:.4f}" for value in means) + f" | {band:.0%} |")
    lines += ["", f"Cost of 6 × 601 (load of the machine {record['load'][0]:.1f}):", ""]
    lines += [
        f"- {name}: {value} (wanted {TARGETS[name]:g})" for name, value in record["cost"].items() if name in TARGETS
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """See the top of the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--cost", action="store_true", help="print the cost alone, as JSON")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "demo")
    args = parser.parse_args()
    if args.cost:
        print(json.dumps(cost()))
        return
    load = os.getloadavg()
    done = subprocess.run([sys.executable, __file__, "--cost"], check=True, stdout=subprocess.PIPE, text=True)
    record = {
        "cost": json.loads(done.stdout.splitlines()[-1]),
        "load": load,
        "threads": os.environ.get("OMP_NUM_THREADS"),
        "seeds": [one_seed(seed) for seed in range(args.seeds)],
    }
    write_text(args.out.with_suffix(".json"), json.dumps(record, indent=1) + "\n")
    write_text(args.out.with_suffix(".md"), markdown(record))
    print(markdown(record))


if __name__ == "__main__":
    main()
