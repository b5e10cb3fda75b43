"""Bands of the neural ensemble at concentrations it never saw: coverage of nominal 80 % on the real series.

Every level is left out in turn; what remains is the whole calibration: seeds on all remaining levels and on those
without each of them (so folds within folds), trained as one stack per series, and bands from the held-out errors
of the inner folds alone. The same for the Gaussian process beside it.

    python benchmarks/node_bands.py

The data are read from --data, else $GEONODE_SHARED/data, else ../shared/data beside the checkout. Results go to
benchmarks/results/node_bands.{json,md}.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import combinations
from typing import Any

import numpy as np
import torch
from real_series import ROOT, SEVEN, data_folder

from geonode.calibration import GeodesicGP
from geonode.calibration.assessment.coverage import responding_wavelengths
from geonode.calibration.gp.node_process import HeldOutResidual, NodeProcess, expected_square
from geonode.config import GeodesicConfig
from geonode.data import load_standards
from geonode.training.chunks import select, select_model
from geonode.training.ensemble import predict, train
from geonode.training.problem import build_problem
from geonode_runtime.files import write_text


def nested(dataset: Any, config: GeodesicConfig) -> tuple[dict[tuple[int, ...], tuple[GeodesicGP, np.ndarray]], int]:
    """Without one or two levels (their positions): teacher, and the seeds' spectra at all levels [members, n, W]."""
    levels, means = dataset.levels, dataset.level_means()
    n = len(levels)
    without = [(i,) for i in range(n)] + list(combinations(range(n), 2))
    folds = [np.delete(np.arange(n), list(gone)) for gone in without]
    gps = GeodesicGP().fit_folds(levels, means, folds, dataset.replicate_deviations(), dataset.level_index)
    stack = [gp for gp in gps for _ in range(config.members)]
    problem = build_problem(stack, dataset.wavelengths, config, [levels] * len(stack)).to("cpu", torch.float32)
    ode = train(problem, config, config.seed)
    found = {}
    for k, (gone, gp) in enumerate(zip(without, gps, strict=True)):
        part = select(problem, k * config.members, config.members)
        own = select_model(ode, part, k * config.members)
        asked = torch.from_numpy(np.tile(levels, (config.members, 1)))
        found[gone] = gp, predict(own, part, asked).double().numpy()
    return found, len(stack)


def series(dataset: Any, config: GeodesicConfig) -> dict[str, Any]:
    started = time.perf_counter()
    levels, means = dataset.levels, dataset.level_means()
    found, models = nested(dataset, config)
    n, responding = len(levels), responding_wavelengths(means)
    rows = []
    for i in range(n):
        gp, spectra = found[(i,)]
        errors = []
        for j in (j for j in range(n) if j != i):
            inner, own = found[(min(i, j), max(i, j))]
            q = expected_square(inner, inner.predict_weights(levels[[j]]))[0]
            errors.append(HeldOutResidual(j, means[j] - own.mean(axis=0)[j], float(q)))
        process = NodeProcess(gp, lambda c, at=spectra[:, [i]]: at, errors)
        row: dict[str, Any] = {"level": float(levels[i]), "edge": i in (0, n - 1)}
        for name, band in (("node", process.predict(levels[[i]])), ("gp", gp.predict(levels[[i]]))):
            low, high = band.interval(0.8)
            inside = (low[0] <= means[i]) & (means[i] <= high[0])
            row[f"{name}_responding"] = float(inside[responding].mean())
            row[f"{name}_silent"] = float(inside[~responding].mean()) if (~responding).any() else None
            row[f"{name}_half_width"] = float(np.median((high - low)[0][responding])) / 2.0
        rows.append(row)
    return {"levels": rows, "models": models, "seconds": round(time.perf_counter() - started, 1)}


def pooled(rows: list[dict[str, Any]], key: str) -> float | None:
    values = [row[key] for row in rows if row[key] is not None]
    return float(np.mean(values)) if values else None


KEYS = ("node_responding", "node_silent", "gp_responding", "gp_silent")


def markdown(result: dict[str, Any]) -> str:
    heads = ("series", "models", "node, responding", "node, silent", "gp, responding", "gp, silent", "width node ÷ gp")
    lines = [
        "# Bands of the neural ensemble at held-out levels, nominal 80 %",
        "",
        (__doc__ or "").split("\n\n    p")[0],
    ]
    lines += ["", "| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    groups = {name: entry["levels"] for name, entry in result.items()}
    everything = [row for rows in groups.values() for row in rows]
    groups |= {
        "**all levels**": everything,
        "interior levels": [r for r in everything if not r["edge"]],
        "lowest and highest": [r for r in everything if r["edge"]],
    }
    for name, rows in groups.items():
        shares = [pooled(rows, key) for key in KEYS]
        cells = ["–" if share is None else f"{100 * share:.1f} %" for share in shares]
        wider = float(np.exp(np.mean([np.log(r["node_half_width"] / r["gp_half_width"]) for r in rows])))
        models = str(result[name]["models"]) if name in result else ""
        lines.append("| " + " | ".join([name, models, *cells, f"{wider:.2f}"]) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder that holds series/")
    parser.add_argument("--epochs", type=int, default=GeodesicConfig().epochs)
    args = parser.parse_args()
    config, result = GeodesicConfig(flow="path_independent", epochs=args.epochs), {}
    for name in SEVEN:
        dataset = load_standards(data_folder(args.data) / "series" / f"{name}.csv").without_masked()
        result[name] = series(dataset, config)
        print(name, {key: pooled(result[name]["levels"], key) for key in KEYS}, result[name]["seconds"], flush=True)
    out = ROOT / "benchmarks" / "results" / "node_bands"
    write_text(out.with_suffix(".json"), json.dumps(result, indent=1) + "\n")
    write_text(out.with_suffix(".md"), markdown(result))
    print(markdown(result))


if __name__ == "__main__":
    main()
