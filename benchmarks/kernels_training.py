"""geonode's own training, step by step and by captured steps: 500 epochs on a simulated assay of 6 levels × 601.

python benchmarks/kernels_training.py --out benchmarks/results
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "kernels")]

from geonode.bench.host import commit  # noqa: E402
from geonode.calibration import GeodesicGP  # noqa: E402
from geonode.config import GeodesicConfig  # noqa: E402
from geonode.data import simulate_assay  # noqa: E402
from geonode.training import build_problem, predict, train  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commit", help="commit of the code measured; default: this checkout's")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    arguments = parser.parse_args()
    assay = simulate_assay(wavelengths=np.linspace(300.0, 700.0, 601).tolist())
    gp = GeodesicGP().fit_levels(assay.levels, assay.level_means())
    rows = []
    for members in (1, 6):
        config = GeodesicConfig(flow="path_independent", epochs=500)
        problem = build_problem([gp] * members, assay.wavelengths, config).to("cuda", torch.float32)
        row = {"epochs": 500, "levels": len(assay.levels), "wavelengths": 601, "members": members}
        spectra = {}
        for backend in ("torch", "triton"):
            seconds = []
            for _ in range(4):
                torch.cuda.synchronize()
                begin = time.perf_counter()
                ode = train(problem, config, seed=0, backend=backend)
                torch.cuda.synchronize()
                seconds.append(time.perf_counter() - begin)
            spectra[backend] = predict(ode, problem, problem.levels.cpu())
            row[f"{backend}_s"] = statistics.median(seconds[1:])  # the first also compiles
        difference = (spectra["torch"] - spectra["triton"]).abs().max() / assay.level_means().std()
        row["largest_difference_of_spectra"] = difference.item()
        rows.append(row)
        print(row)
    card = torch.cuda.get_device_name()
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = subprocess.run(query, capture_output=True, text=True).stdout.strip()
    result = {
        "card": card,
        "driver": driver,
        "torch": torch.__version__,
        "commit": arguments.commit or commit(),
        "rows": rows,
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / f"kernels-training-{card.replace(' ', '-')}.json"
    path.write_text(json.dumps(result, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
