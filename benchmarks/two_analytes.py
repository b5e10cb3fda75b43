"""Two analytes on real data: the pH × chloride grid of a fluorescent protein, 5 × 11 cells, 229 wavelengths.

Leave one cell out and leave one pH out: geonode's process on a learned embedding and its neural flow against bilinear
interpolation, a thin-plate spline and scikit-learn's Gaussian process, on axes as they are and (for the sharper
comparison) with chloride on a logarithmic axis. Then geodesics by shooting between every pair of cells.

    python benchmarks/two_analytes.py
    python benchmarks/two_analytes.py --no-node

The data are read from --data, else $GEONODE_SHARED/data, else ../shared/data beside the checkout. Results go to
benchmarks/results/two_analytes.{json,md}.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "kernels")]

from geonode.analytes import SurfaceGP, all_pairs, evaluate_surface, leave_cells_out, leave_rows_out  # noqa: E402
from geonode.analytes.evaluation import METHODS, HeldOut  # noqa: E402
from geonode.analytes.interpolators import INTERPOLATORS  # noqa: E402
from geonode.calibration.assessment.coverage import responding_wavelengths  # noqa: E402
from geonode.data import SpectralDataset, load_standards, simulate_sensor  # noqa: E402
from geonode.data.sensor import CHLORIDE  # noqa: E402
from geonode.geodesic.solution import Status  # noqa: E402
from geonode_runtime.files import write_text  # noqa: E402

PLAIN = tuple(INTERPOLATORS)
LOGARITHMIC = tuple(f"{name} (log)" for name in INTERPOLATORS)


def load_grid(argument: str | None) -> SpectralDataset:
    """The 55 spectra of the sensor, concentrations (pH, chloride in mM)."""
    shared = Path(os.environ.get("GEONODE_SHARED", ROOT.parent / "shared"))
    folder = (Path(argument) if argument else shared / "data") / "raw" / "fp_h148g"
    if not folder.is_dir():
        raise SystemExit(f"{folder} is not there; name the data folder with --data.")
    note = folder / "h148g-spettroC-nota.csv"
    return load_standards(folder / "h148g-spettroC.csv", concentrations=note, column=["pH", "Cl"], select="Name=H148G")


def geodesics(gp: SurfaceGP) -> dict[str, Any]:
    """Shooting between every pair of cells."""
    started = time.perf_counter()
    _, solution = all_pairs(gp.metric(), gp.coordinates(gp.levels))
    counts = torch.bincount(solution.status, minlength=len(Status))
    return {
        "pairs": len(solution.status),
        "status": {status.name: int(counts[status]) for status in Status},
        "largest_residual": float(solution.residual.max()),
        "largest_energy_drift": float(solution.energy_drift.max()),
        "most_newton_steps": int(solution.iterations.max()),
        "seconds": round(time.perf_counter() - started, 1),
    }


def table(held: HeldOut) -> dict[str, Any]:
    """Per method its errors, and for geonode's the ratios to the best of three at each cell, with hindsight."""
    entry: dict[str, Any] = {"methods": {name: held.summary(name) for name in held.rmse}, "coverage": held.coverage}
    for name in ("gp", "node"):
        if name not in held.rmse:
            continue
        for against, key in ((PLAIN, "ratio"), (LOGARITHMIC, "ratio_log")):
            ratio = held.ratio(name, against)
            entry["methods"][name][key] = float(np.exp(np.log(ratio).mean()))
            entry["methods"][name][f"{key}_won"] = float((ratio <= 1.0).mean())
    entry["rmse"] = {name: (value / held.scale).tolist() for name, value in held.rmse.items()}
    return entry


def simulated_rows(sets: int = 8) -> dict[str, Any]:
    """Coverage at pH that no standard has, on simulated sensors whose rows have an error of their own."""
    ph, between, beyond = (5.2, 6.0, 6.8, 7.6, 8.4), (5.6, 6.4, 7.2, 8.0), (4.8, 8.8)
    asked = (0.0, 15.0, 90.0, 400.0)
    sensor = simulate_sensor(wavelengths=range(270, 521, 5))
    names = ("plain", "responding", "claimed")
    found: dict[str, dict[str, list[float]]] = {key: {n: [] for n in names} for key in ("between", "beyond")}
    for seed in range(sets):
        random = np.random.default_rng(seed)

        def measured(rows: tuple[float, ...], columns: tuple[float, ...], random=random) -> tuple[np.ndarray, ...]:
            nominal = np.array([(p, c) for p in rows for c in columns])
            real = nominal + np.repeat(random.normal(0.0, 0.05, len(rows)), len(columns))[:, None] * [1.0, 0.0]
            spectra = sensor.truth(real).numpy()
            return nominal, spectra + random.normal(0.0, 0.005, spectra.shape)

        levels, spectra = measured(ph, CHLORIDE)
        gp, responding = SurfaceGP().fit(levels, spectra), responding_wavelengths(spectra)
        for key, rows in (("between", between), ("beyond", beyond)):
            at, truth = measured(rows, asked)
            bands = gp.predict(at)
            for name, band in (("plain", gp.predict_within(at)), ("responding", bands)):
                low, high = band.interval(0.8)
                found[key][name].append(float(((low <= truth) & (truth <= high))[:, responding].mean()))
            found[key]["claimed"].append(float(bands.claimed.mean()))
    means = {key: {name: float(np.mean(value)) for name, value in one.items()} for key, one in found.items()}
    return {"sets": sets, **means}


def covered(shares: dict[str, float]) -> str:
    return ", ".join(f"{k.replace('_', ' ')} {100 * v:.0f} %" for k, v in shares.items())


def markdown(result: dict[str, Any]) -> str:
    """The tables as text."""
    lines = [
        "# Two analytes: pH × chloride, cells that were left out",
        "",
        "RMSE of the held-out cell's spectrum ÷ standard deviation of all spectra. The ratio is that of a method to "
        "the best of bilinear, thin plate and 2-D GP *at the same cell*, chosen with hindsight; geometric mean. "
        "(log): the interpolators see log(1 + c/6.7 mM) instead of the chloride concentration.",
    ]
    for key, title in (("cells", "One cell left out (55 folds)"), ("rows", "One pH left out (5 folds of 11 cells)")):
        heads = ("method", "geometric mean", "rms", "worst cell", "÷ best of three", "÷ best of three (log)")
        lines += ["", f"## {title}", "", "| " + " | ".join(heads) + " |", "|---|" + "---|" * (len(heads) - 1)]
        for name, row in result[key]["methods"].items():
            cells = [f"{row[k]:.4f}" for k in ("geometric_mean", "rms", "worst")]
            cells += [f"**{row[k]:.3f}**" if k in row else "–" for k in ("ratio", "ratio_log")]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        lines += ["", f"Bands of the gp at held-out cells: {covered(result[key]['coverage'])}."]
    simulated = result["simulated"]
    lines += [
        "",
        "## Simulated sensor: rows nobody measured",
        "",
        f"{simulated['sets']} sets of 5 pH × 7 chloride, each row off by a pH of its own (0.05), asked at 4 pH between "
        f"them and at 2 beyond; nominal 80 %, plain without the rows' own error. Between: "
        f"{covered(simulated['between'])}. Beyond: {covered(simulated['beyond'])}.",
    ]
    found = result["geodesics"]
    statuses = ", ".join(f"{name} {count}" for name, count in found["status"].items())
    lines += [
        "",
        "## Geodesics between all pairs of cells",
        "",
        f"{found['pairs']} pairs by shooting with default settings: {statuses}; largest residual "
        f"{found['largest_residual']:.1e}, largest drift of g(ċ, ċ) {found['largest_energy_drift']:.1e}, at most "
        f"{found['most_newton_steps']} Newton steps; {found['seconds']} s.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder that holds raw/")
    parser.add_argument("--no-node", dest="node", action="store_false", help="without the neural flow")
    parser.add_argument("--out", default=str(ROOT / "benchmarks" / "results" / "two_analytes"), help="without suffix")
    args = parser.parse_args()
    data = load_grid(args.data)
    levels, means, wavelengths = np.array(data.levels), np.array(data.level_means()), np.array(data.wavelengths)
    methods = [name for name in METHODS if args.node or name != "node"]
    result: dict[str, Any] = {"levels": levels.tolist(), "scale": float(means.std())}
    for key, folds in (("cells", leave_cells_out(levels)), ("rows", leave_rows_out(levels))):
        started = time.perf_counter()
        result[key] = table(evaluate_surface(levels, means, wavelengths, folds, methods))
        print(f"{key}: {time.perf_counter() - started:.0f} s", flush=True)
    result["simulated"] = simulated_rows()
    result["geodesics"] = geodesics(SurfaceGP().fit(levels, means))
    out = Path(args.out)
    write_text(out.with_suffix(".json"), json.dumps(result, indent=1, allow_nan=False) + "\n")
    write_text(out.with_suffix(".md"), markdown(result))
    print(markdown(result))


if __name__ == "__main__":
    main()
