"""Does `quantify` cover when it rests on the neural ensemble? Leave one concentration out of the whole fit.

Every level is left out in turn; `geonode.fit` with folds sees only what remains (its own folds are of that), and each
spectrum of the level is then quantified as an unknown. The Gaussian process alone beside it, in the same way. A level
counts as the share of its spectra covered; an interval is given at levels of up to n/(n + 1), n the levels that remain.

    python benchmarks/node_sets.py                          # the series of six levels
    python benchmarks/node_sets.py --series nttA04_cl_em

The data are read from --data, else $GEONODE_SHARED/data, else ../shared/data beside the checkout. Results go to
benchmarks/results/node_sets.{json,md}.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
from real_series import ROOT, data_folder

from geonode.calibration import Calibration
from geonode.config import GeodesicConfig
from geonode.data import load_standards
from geonode.model import fit
from geonode_runtime.files import write_text

SERIES = ("flu_quinine", "aunp_dmsa_nacl", "nanodrop_anisaldehyde")
METHODS = ("node", "gp")


def answers(calibration: Calibration, spectra: np.ndarray, truth: float) -> dict[str, Any]:
    """What is said of ``spectra [k, W]`` of one held-out level."""
    low, high = calibration.range
    rows = []
    for answer in calibration.quantify_many(spectra, level=0.8):
        one, at_95 = answer.components, answer.verdict_components
        only = at_95[0]
        beyond = not (only.low - only.width <= truth <= only.high + only.width)
        rows.append(
            {
                "verdict": answer.verdict,
                "covered_80": any(part.contains(truth) for part in one),
                "covered_95": any(part.contains(truth) for part in at_95),
                "error_percent": 100.0 * (answer.nearest - truth) / (high - low),
                "width_percent": 100.0 * sum(part.width for part in one) / (high - low),
                "confidently_wrong": answer.verdict == "quantified" and len(at_95) == 1 and beyond,
            }
        )
    return {
        "verdicts": sorted({row["verdict"] for row in rows}),
        **{
            key: float(np.mean([row[key] for row in rows]))
            for key in rows[0]
            if key not in ("verdict", "error_percent")
        },
        "rmse_percent": float(np.sqrt(np.mean([row["error_percent"] ** 2 for row in rows]))),
    }


def series(dataset: Any, config: GeodesicConfig) -> dict[str, Any]:
    started, rows = time.perf_counter(), []
    for i, level in enumerate(dataset.levels):
        rest, unknown = dataset.without_level(i), dataset.only_level(i)
        model = fit(rest, config, device="cpu")
        row: dict[str, Any] = {"level": float(level), "edge": i in (0, len(dataset.levels) - 1)}
        for name, calibration in (("node", model.calibration), ("gp", Calibration.from_dataset(rest))):
            row[name] = answers(calibration, unknown.spectra, float(level))
        rows.append(row)
        print(json.dumps(row), flush=True)
    return {"levels": rows, "seconds": round(time.perf_counter() - started, 1)}


def summary(rows: list[dict[str, Any]], method: str) -> list[str]:
    def mean(key: str) -> float:
        return 100.0 * float(np.mean([row[method][key] for row in rows]))

    error = np.sqrt(np.mean([row[method]["rmse_percent"] ** 2 for row in rows if not row["edge"]] or [np.nan]))
    width = np.median([row[method]["width_percent"] for row in rows])
    refused = np.mean(["does not match" in row[method]["verdicts"] for row in rows])
    figures = [f"{mean('covered_80'):.0f} %", f"{mean('covered_95'):.0f} %", f"{mean('confidently_wrong'):.0f} %"]
    return [*figures, f"{100 * refused:.0f} %", "–" if np.isnan(error) else f"{error:.2f} %", f"{width:.2f} %"]


def markdown(result: dict[str, Any]) -> str:
    heads = ("series", "rests on", "covered at 80 %", "at 95 %", "confidently wrong", "does not match")
    heads += ("RMSEP, interior, of range", "median width of the 80 % set")
    lines = ["# Sets of `quantify` on the neural ensemble, held-out levels", "", (__doc__ or "").split("\n\n    p")[0]]
    lines += ["", "| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    groups = {name: entry["levels"] for name, entry in result.items()}
    everything = [row for rows in groups.values() for row in rows]
    groups |= {"**all levels**": everything, "interior levels": [row for row in everything if not row["edge"]]}
    for name, rows in groups.items():
        for method in METHODS:
            lines.append("| " + " | ".join([name, method, *summary(rows, method)]) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder that holds series/")
    parser.add_argument("--series", nargs="+", default=SERIES)
    parser.add_argument("--epochs", type=int, default=GeodesicConfig().epochs)
    args = parser.parse_args()
    config, result = GeodesicConfig(flow="path_independent", epochs=args.epochs, folds=True), {}
    for name in args.series:
        dataset = load_standards(data_folder(args.data) / "series" / f"{name}.csv").without_masked()
        result[name] = series(dataset, config)
        print(name, result[name]["seconds"], "s", flush=True)
        out = ROOT / "benchmarks" / "results" / "node_sets"
        write_text(out.with_suffix(".json"), json.dumps(result, indent=1) + "\n")
        write_text(out.with_suffix(".md"), markdown(result))
    print(markdown(result))


if __name__ == "__main__":
    main()
