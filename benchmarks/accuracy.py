"""Accuracy on the real concentration series, leave one concentration out.

For every series and each of four statistics of the per-level RMSE (median interior level, worst interior level,
lowest level, highest level), a method's value is divided by the best of the simple methods *for that series and that
statistic*, chosen with hindsight; the tables give geometric means over all series, over the seven on which the first
rules were tuned, and over the seventeen others, with the factor that is one standard error, and paired with the
Gaussian process series by series. Once with linear, PCHIP, natural cubic, quadratic and straight-line fit as the
simple methods, once with the binding isotherm among them.

    python benchmarks/accuracy.py                 # everything, the neural flow included
    python benchmarks/accuracy.py --no-node       # seconds
    python benchmarks/accuracy.py --ablation      # the neural flow without its metric network as well

The data are read from --data, else $GEONODE_SHARED/data, else ../shared/data beside the checkout. Results go to
benchmarks/results/accuracy.json and accuracy.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from real_series import GROUPS, geometric_means, require_series  # noqa: E402

from geonode.config import GeodesicConfig  # noqa: E402
from geonode.data import load_standards  # noqa: E402
from geonode.validation import METHODS, evaluate  # noqa: E402
from geonode.validation.result import SUMMARIES, EvaluationReport  # noqa: E402
from geonode_runtime.files import write_text  # noqa: E402

SIMPLE = ("linear", "pchip", "cubic", "quadratic", "line")
TARGETS = {"gp": (1.10, 1.05, 0.90, 0.85), "node": (1.25, 1.10, 1.00, 1.00)}


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
        config = GeodesicConfig(metric_network=False)
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


def summarise(series: dict[str, dict[str, Any]], simple: tuple[str, ...], against: str = "gp") -> dict[str, Any]:
    """By group of series and by method: geometric means of the ratios, one standard error as a factor, and the same
    of the ratio to ``against`` series by series."""
    by_method: dict[str, dict[str, np.ndarray]] = {}
    for name, entry in series.items():
        rmse = {method: np.array(row) for method, row in entry["rmse"].items()}
        for method, ratio in ratios(rmse, simple).items():
            by_method.setdefault(method, {})[name] = ratio
    found: dict[str, Any] = {}
    for group, names in GROUPS.items():
        if not any(name in series for name in names):
            continue
        rows = {}
        for method, values in by_method.items():
            mean, error = geometric_means(values, names)
            paired = {name: value / by_method[against][name] for name, value in values.items()}
            paired_mean, paired_error = geometric_means(paired, names)
            rows[method] = {
                "mean": numbers(mean),
                "standard_error": numbers(error),
                f"to_{against}": numbers(paired_mean),
                f"to_{against}_standard_error": numbers(paired_error),
            }
        found[group] = rows
    return found


def numbers(values: np.ndarray) -> list[float | None]:
    """Rounded, with what is no number as null."""
    return [round(float(value), 4) if np.isfinite(value) else None for value in values]


def markdown(result: dict[str, Any]) -> str:
    """The tables as text."""
    lines = ["# Accuracy on the real series, leave one concentration out", ""]
    lines += [
        "RMSE on the held-out level's mean spectrum (all wavelengths) ÷ the best simple method for that series *and "
        "that statistic*, chosen with hindsight; geometric means. Below 1 beats the best of them. Behind ×/÷ stands "
        "one standard error over the series, as a factor; the last columns are the ratio to `gp` series by series, "
        "in which what is common to both falls out. `chosen inside` is the honest score of picking a method by inner "
        "validation in every fold.",
        "",
    ]
    for key, title in (
        ("summary", "Simple methods: linear, PCHIP, cubic, quadratic, line"),
        ("summary_with_isotherm", "The same with the binding isotherm among the simple methods"),
    ):
        lines += [f"## {title}", ""]
        for group, rows in result[key].items():
            lines += [f"### {group[0].upper()}{group[1:]}", "", *table(rows)]
            if key == "summary" and group == "all 24":
                for name, row in TARGETS.items():
                    lines.append(f"| *target for {name}* | " + " | ".join(f"*{v:.2f}*" for v in row) + " |" * 5)
            lines.append("")
    return "\n".join(lines + per_series(result)) + "\n"


def table(rows: dict[str, dict[str, list[float | None]]]) -> list[str]:
    """One group's table, a method a row."""
    names = [name.replace("_", " ") for name in SUMMARIES]
    lines = ["| method | " + " | ".join(names) + " | " + " | ".join(f"{name} ÷ gp" for name in names) + " |"]
    lines.append("|---|" + "---|" * (2 * len(SUMMARIES)))
    for method, row in rows.items():
        cells = [cell(*pair) for pair in zip(row["mean"], row["standard_error"], strict=True)]
        cells += [cell(*pair) for pair in zip(row["to_gp"], row["to_gp_standard_error"], strict=True)]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return lines


def cell(mean: float | None, error: float | None) -> str:
    """1.13 ×/÷ 1.08."""
    if mean is None:
        return "–"
    return f"{mean:.3f}" if error is None else f"{mean:.3f} ×/÷ {error:.2f}"


def per_series(result: dict[str, Any]) -> list[str]:
    """Every method's statistics in each series."""
    lines = ["## Per series: RMSE ÷ standard deviation of the level means", ""]
    lines += ["| series | method | " + " | ".join(name.replace("_", " ") for name in SUMMARIES) + " |"]
    lines.append("|---|---|" + "---|" * len(SUMMARIES))
    for series, entry in result["series"].items():
        for name, row in entry["rmse"].items():
            mark = " (winner)" if name == entry["winner"] else ""
            cells = " | ".join(f"{value:.4f}" for value in statistics(np.array(row)))
            lines.append(f"| {series} | {name}{mark} | {cells} |")
    return lines


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
    folder = require_series(args.data) / "series"
    series = {}
    for name in args.series or GROUPS["all 24"]:
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
