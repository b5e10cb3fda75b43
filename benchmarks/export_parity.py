"""An exported model against the library: 1 000 random concentrations and 200 unknowns.

    python benchmarks/export_parity.py [--series FILE.csv …] [--int8] [--distill] [--out FILE.json]

Without ``--series`` the standards are those of `geonode simulate`. Prints, for both predictors, the largest difference
of spectra as a fraction of the spectral range, of concentrations as a fraction of the calibrated range, how many
verdicts differ, size, cold start of the runtime's command and the time of one unknown.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "kernels"), str(ROOT / "runtime")]

import numpy as np  # noqa: E402

import geonode  # noqa: E402
from geonode.config import GeodesicConfig  # noqa: E402
from geonode.data import simulate_assay  # noqa: E402
from geonode.export.export import export_onnx  # noqa: E402
from geonode.export.node import spectral_range  # noqa: E402
from geonode_runtime import load  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", nargs="*", type=Path, default=[])
    parser.add_argument("--int8", action="store_true")
    parser.add_argument("--distill", action="store_true")
    parser.add_argument("--epochs", type=int, default=GeodesicConfig().epochs)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    sources = {path.stem: geonode.load_standards(path) for path in options.series} or {"simulated": simulate_assay()}
    rows = []
    for name, standards in sources.items():
        fitted = geonode.fit(standards, GeodesicConfig(flow="path_independent", epochs=options.epochs))
        for predictor in ("gp", "node"):
            if options.int8 and not options.distill and predictor == "node":
                continue  # refused: nothing to quantise
            rows.append(compare(name, fitted, predictor, options))
            print(json.dumps(rows[-1]))
    if options.out is not None:
        options.out.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


def compare(name: str, model, predictor: str, options) -> dict:
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        report = export_onnx(model, path, predictor=predictor, int8=options.int8, distill=options.distill)
        runtime = load(path)
        low, high = runtime.served_range or model.served_range
        c = rng.uniform(low, high, 1000)
        mean, std = runtime.predict(c)
        expected, band = model.predict_spectra(c, predictor)
        unit = spectral_range(model)
        # Unknowns: spectra of the library at concentrations inside and beyond, with the noise of the standards.
        at = rng.uniform(low, high, 200)
        noise = np.sqrt(model.gp.noise_variance) * rng.standard_normal((200, len(model.gp.noise_variance)))
        unknowns = model.gp.predict_mean(at) + noise
        mine, theirs = runtime.quantify_many(unknowns), model.calibration.quantify_many(unknowns)
        span = model.calibrated_range[1] - model.calibrated_range[0]
        runtime.quantify(unknowns[0])
        started, processor = time.perf_counter(), time.process_time()
        for row in unknowns[:50]:
            runtime.quantify(row)
        single, own = (time.perf_counter() - started) / 50, (time.process_time() - processor) / 50
        np.savetxt(Path(folder) / "u.csv", np.stack([runtime.wavelengths, unknowns[0]], 1), delimiter=",")
        cold, cold_own = cold_start(path, Path(folder) / "u.csv")
        return {
            "series": name,
            "predictor": predictor,
            "form": report.form + ("+int8" if report.int8 else ""),
            "wavelengths": len(runtime.wavelengths),
            "spectra_max_difference_of_range": float(np.abs(mean - expected.values).max() / unit),
            "std_max_difference_of_range": float(np.abs(std - band.values).max() / unit),
            "concentration_max_difference_of_range": max(
                abs(a.nearest - b.nearest) / span for a, b in zip(mine, theirs, strict=True)
            ),
            "verdicts_that_differ": sum(a.verdict != b.verdict for a, b in zip(mine, theirs, strict=True)),
            "verdicts": dict(Counter(a.verdict for a in theirs)),
            "bytes": report.bytes,
            "milliseconds_per_concentration": report.milliseconds,
            "milliseconds_per_unknown": 1e3 * single,
            "processor_milliseconds_per_unknown": 1e3 * own,
            "cold_start_seconds": cold,
            "cold_start_processor_seconds": cold_own,
        }


def cold_start(path: Path, unknown: Path) -> tuple[float, float]:
    """Best of three of the whole command, from process start to exit, by the clock and of the processor."""
    times, processor = [], []
    for _ in range(3):
        started, before = time.perf_counter(), sum(os.times()[2:4])
        subprocess.run(
            [sys.executable, "-m", "geonode_runtime", "quantify", str(path), str(unknown)], check=True,
            capture_output=True, cwd=ROOT / "runtime", env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        times.append(time.perf_counter() - started)
        processor.append(sum(os.times()[2:4]) - before)
    return min(times), min(processor)


if __name__ == "__main__":
    main()
