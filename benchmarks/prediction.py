"""`predict_spectra` of 50 concentrations × 601 wavelengths on a GPU: beside the CPU's values, then time a call.

    python benchmarks/prediction.py --json out.json

A call is the public one: checks, graph, copies to and from the device, labelled arrays. The first two calls (making the
predictor, recording its graph) are told apart.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

import geonode
from geonode.config import GeodesicConfig
from geonode.data import simulate_assay
from geonode_runtime.files import write_text

SHORT: dict[str, Any] = {"epochs": 3, "precision": "32-true", "seed": 0}
CONFIGS = {
    "pretrained": GeodesicConfig(),
    "path_independent": GeodesicConfig(flow="path_independent", **SHORT),
    "path_independent, solver rk4": GeodesicConfig(flow="path_independent", solver="rk4", batch_size=30, **SHORT),
    "free, solver rk4": GeodesicConfig(flow="free", solver="rk4", batch_size=30, **SHORT),
    "the blueprint": GeodesicConfig.blueprint(**SHORT, batch_size=30, micro_batch=30),
    "velocity": GeodesicConfig(flow="velocity", batch_size=30, **SHORT),
}


def measured(name: str, count: int, wavelengths: int, calls: int) -> dict[str, Any]:
    """Times of the first call and, in milliseconds, of the later ones; the largest difference to the CPU, relative to
    the largest value."""
    assay = simulate_assay(wavelengths=np.linspace(350.0, 950.0, wavelengths).tolist())
    device = "cuda" if CONFIGS[name].flow.name != "pretrained" else "cpu"
    model = geonode.fit(assay, CONFIGS[name], device=device)
    c = np.linspace(*model.calibrated_range, count)
    expected = [x.values for x in model.predict_spectra(c)]
    model.to("cuda")
    times = []
    for _ in range(calls + 1):
        begin = time.perf_counter()
        found = model.predict_spectra(c)
        times.append(1e3 * (time.perf_counter() - begin))
    off = max(float(np.abs(a.values - b).max() / np.abs(b).max()) for a, b in zip(found, expected, strict=True))
    there = model.on_device("node")
    assert there is not None
    alone = []
    for _ in range(calls):
        begin = time.perf_counter()
        there(c)
        alone.append(1e3 * (time.perf_counter() - begin))
    later = sorted(times[1:])
    if off > 1e-4 or not there._graphs:
        raise SystemExit(f"{name}: off by {off:.1e} of the CPU's values, {len(there._graphs)} graphs; not timed.")
    return {
        "first_ms": times[0],
        "median_ms": later[len(later) // 2],
        "ninth_decile_ms": later[9 * len(later) // 10],
        "without_labels_ms": sorted(alone)[len(alone) // 2],
        "off": off,
        "captured": bool(there._graphs),
    }


def main() -> None:
    """Run and print; ``--json`` also writes the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--concentrations", type=int, default=50)
    parser.add_argument("--wavelengths", type=int, default=601)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--only", nargs="*", choices=list(CONFIGS), default=list(CONFIGS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    result: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "predictions": {}}
    for name in options.only:
        found = measured(name, options.concentrations, options.wavelengths, options.calls)
        result["predictions"][name] = found
        print(name, json.dumps(found), flush=True)
    if options.json is not None:
        write_text(options.json, json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
