"""Accuracy on the real concentration series, leave one concentration out.

For every series and each of four statistics of the per-level RMSE (median interior level, worst interior level,
lowest level, highest level), a method's value is divided by the best of the simple methods *for that series and that
statistic*, chosen with hindsight; the table gives geometric means over the series. Once with linear, PCHIP, natural
cubic, quadratic and straight-line fit as the simple methods, once with the binding isotherm among them.

    python benchmarks/accuracy.py                 # everything, the neural flow included
    python benchmarks/accuracy.py --no-node       # seconds
    python benchmarks/accuracy.py --ablation      # the neural flow without its metric network as well

The data are read from --data, else $GEONODE_SHARED/data, else ../shared/data beside the checkout. Results go to
benchmarks/results/accuracy.json and accuracy.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from geonode.config import GeodesicConfig  # noqa: E402
from geonode.data import load_standards  # noqa: E402
from geonode.validation import METHODS, evaluate  # noqa: E402
from geonode.validation.result import SUMMARIES, EvaluationReport  # noqa: E402
from geonode_runtime.files import write_text  # noqa: E402

SERIES = (
    "aunp_dmsa_nacl",
    "flu_quinine",
    "h148g_cl_ph74",
    "nttA04_cl_em",
    "clariostar_dye",
    "nanodrop_anisaldehyde",
    "rhodamine6g_meoh",
)
SIMPLE = ("linear", "pchip", "cubic", "quadratic", "line")
TARGETS = {"gp": (1.10, 1.05, 0.90, 0.85), "node": (1.25, 1.10, 1.00, 1.00)}


def data_folder(argument: str | None) -> Path:
    """The folder that holds ``series/``."""
    shared = Path(os.environ.get("GEONODE_SHARED", ROOT.parent / "shared"))
    return Path(argument) if argument else shared / "data"


def statistics(rmse: np.ndarray) -> np.ndarray:
    """``[n]`` → median interior, worst interior, lowest, highest."""
    return np.array([np.median(rmse[1:-1]), rmse[1:-1].max(), rmse[0], rmse[-1]])


def ratios(rmse: dict[str, np.ndarray], simple: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Per method its statistics divided by the best simple method's, statistic by statistic."""
    values = {name: statistics(row) for name, row in rmse.items()}
    best = np.min([values[name] for name in simple], axis=0)
    return {name: value / best for name, value in values.items()}


def run_series(path: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Evaluate one series; RMSEs are in units of the standard deviation of its level means."""
    methods = [name for name in METHODS if args.node or name != "node"]
    dataset = load_standards(path)
    started = time.perf_counter()
    report = evaluate(dataset, methods=methods, inner=args.inner, seed=args.seed)
    seconds = time.perf_counter() - started
    rmse = {name: result.rmse for name, result in report.results.items()}
    if args.inner:
        rmse["chosen inside"] = chosen_rmse(report)
    if args.node and args.ablation:
        config = dataclasses.replace(GeodesicConfig(), metric_network=False)
        plain = evaluate(dataset, config, methods=["node"], inner=False, seed=args.seed)
        rmse["node without metric network"] = plain.results["node"].rmse
    scale = float(report.level_means.std())
    return {
        "levels": report.levels.tolist(),
        "wavelengths": len(report.wavelengths),
        "scale": scale,
        "rmse": {name: (row / scale).tolist() for name, row in rmse.items()},
        "winner": report.winner,
        "fold_winners": report.fold_winners,
        "gp_coverage_80": report.results["gp"].coverage,
        "seconds": round(seconds, 2),
    }


def chosen_rmse(report: EvaluationReport) -> np.ndarray:
    """RMSE per level of whatever the inner validation of that fold chose."""
    chosen = report.selected()
    if chosen is None:
        raise SystemExit("a series has too few levels for inner validation")
    return np.array([entry["rmse"] for entry in chosen])


def summarise(series: dict[str, dict[str, Any]], simple: tuple[str, ...]) -> dict[str, list[float]]:
    """Geometric means over the series of every method's ratios."""
    logs: dict[str, list[np.ndarray]] = {}
    for entry in series.values():
        rmse = {name: np.array(row) for name, row in entry["rmse"].items()}
        for name, ratio in ratios(rmse, simple).items():
            logs.setdefault(name, []).append(np.log(ratio))
    return {name: np.exp(np.mean(rows, axis=0)).round(4).tolist() for name, rows in logs.items()}


def markdown(result: dict[str, Any]) -> str:
    """The tables as text."""
    lines = ["# Accuracy on the real series, leave one concentration out", ""]
    lines += [
        "RMSE on the held-out level's mean spectrum (all wavelengths) ÷ the best simple method for that series *and "
        f"that statistic*, chosen with hindsight; geometric mean over {len(result['series'])} series. Below 1 beats "
        "the best of them. `chosen inside` is the honest score of picking a method by inner validation in every fold.",
        "",
    ]
    for key, title in (
        ("summary", "Simple methods: linear, PCHIP, cubic, quadratic, line"),
        ("summary_with_isotherm", "The same with the binding isotherm among the simple methods"),
    ):
        lines += [f"## {title}", "", "| method | " + " | ".join(name.replace("_", " ") for name in SUMMARIES) + " |"]
        lines.append("|---|" + "---|" * len(SUMMARIES))
        for name, row in result[key].items():
            lines.append(f"| {name} | " + " | ".join(f"{value:.3f}" for value in row) + " |")
        if key == "summary":
            for name, row in TARGETS.items():
                lines.append(f"| *target for {name}* | " + " | ".join(f"*{value:.2f}*" for value in row) + " |")
        lines.append("")
    lines += ["## Per series: RMSE ÷ standard deviation of the level means", ""]
    lines += ["| series | method | " + " | ".join(name.replace("_", " ") for name in SUMMARIES) + " |"]
    lines.append("|---|---|" + "---|" * len(SUMMARIES))
    for series, entry in result["series"].items():
        for name, row in entry["rmse"].items():
            mark = " (winner)" if name == entry["winner"] else ""
            cells = " | ".join(f"{value:.4f}" for value in statistics(np.array(row)))
            lines.append(f"| {series} | {name}{mark} | {cells} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder that holds series/")
    parser.add_argument("--series", action="append", help="only this series (may be repeated)")
    parser.add_argument("--no-node", dest="node", action="store_false", help="without the neural flow")
    parser.add_argument("--no-inner", dest="inner", action="store_false", help="without inner validation")
    parser.add_argument("--ablation", action="store_true", help="also the neural flow without its metric network")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default=str(ROOT / "benchmarks" / "results" / "accuracy"), help="path without suffix")
    args = parser.parse_args()
    folder = data_folder(args.data) / "series"
    if not folder.is_dir():
        raise SystemExit(f"{folder} is not there; name the data folder with --data.")
    series = {}
    for name in args.series or SERIES:
        series[name] = run_series(folder / f"{name}.csv", args)
        print(f"{name}: winner {series[name]['winner']}, {series[name]['seconds']} s", flush=True)
    result = {
        "statistics": list(SUMMARIES),
        "simple_methods": list(SIMPLE),
        "targets": TARGETS,
        "summary": summarise(series, SIMPLE),
        "summary_with_isotherm": summarise(series, (*SIMPLE, "isotherm")),
        "seed": args.seed,
        "series": series,
    }
    out = Path(args.out)
    write_text(out.with_suffix(".json"), json.dumps(result, indent=1, allow_nan=False) + "\n")
    write_text(out.with_suffix(".md"), markdown(result))
    print(markdown(result).split("## Per series")[0])


if __name__ == "__main__":
    main()
