"""Concentration from spectrum on the real series, leave one concentration out: geonode against PLS and others.

For every series the RMSEP over interior levels (percent of the calibrated range), the median relative error, the
coverage of nominal 80 % intervals, geonode's verdicts, and coverage of the 80 % bands of predicted spectra on
responding wavelengths; over all series, the seven on which the first rules were tuned and the seventeen others apart,
for what answers by default ("geonode", the learned posterior) and for the profile the RMSEP by that of the best rival
chosen with hindsight and by that of PLS. Besides: sample C of the rhodamine series (three replicates of an unknown),
what is said of `nir_gasoline`, and the processor time of fitting and quantifying.

    python benchmarks/inverse.py
    python benchmarks/inverse.py --speed  # the times alone, printed
    python benchmarks/inverse.py --again geonode  # where that alone has changed: all else is taken from the record

The data are read from --data, else $GEONODE_SHARED/data, else ../shared/data beside the checkout. Results go to
benchmarks/results/inverse.{json,md}.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "kernels"), str(ROOT / "runtime")]

from real_series import GROUPS, geometric_means, require_series  # noqa: E402

import geonode  # noqa: E402
import geonode_runtime  # noqa: E402
from geonode.calibration.calibration import Calibration  # noqa: E402
from geonode.calibration.gp.geodesic_gp import GeodesicGP  # noqa: E402
from geonode.data import load_standards, simulate_assay  # noqa: E402
from geonode.export.export import export_onnx  # noqa: E402
from geonode.validation.evaluation import responding_wavelengths  # noqa: E402
from geonode.validation.inverse_comparison import OWN, evaluate_inverse  # noqa: E402
from geonode_runtime.files import write_text  # noqa: E402


def band_coverage(dataset: Any) -> dict[str, Any]:
    """Share of (held-out level, wavelength) inside the 80 % band of the GP, apart by response."""
    levels, means, index = dataset.levels, dataset.level_means(), dataset.level_index
    folds = [np.delete(np.arange(len(levels)), i) for i in range(len(levels))]
    gps = GeodesicGP().fit_folds(levels, means, folds, dataset.replicate_deviations(), index)
    responding = responding_wavelengths(means)
    inside = []
    for gp, level, mean in zip(gps, levels, means, strict=True):
        low, high = gp.predict([level]).interval(0.8)
        inside.append((low[0] <= mean) & (mean <= high[0]))
    covered = np.stack(inside)
    return {
        "responding": float(covered[:, responding].mean()),
        "silent": float(covered[:, ~responding].mean()) if (~responding).any() else None,
        "interior_responding": float(covered[1:-1][:, responding].mean()),
        "levels": len(levels),
    }


def rhodamine_sample_c(data: Path) -> dict[str, Any]:
    """The three spectra of sample C, whose concentration the series does not give."""
    calibration = Calibration.from_dataset(load_standards(data / "series" / "rhodamine6g_meoh.csv"))
    spectra, grid = [], None
    for path in sorted((data / "raw" / "rhodamine6g_meoh").glob("*C*.csv")):
        rows = []
        for line in path.read_text(encoding="latin-1").splitlines():
            cells = line.split(",")
            try:
                rows.append((float(cells[0]), float(cells[1])))
            except (ValueError, IndexError):
                continue
        table = np.array(rows)
        grid = table[:, 0]
        spectra.append(table[:, 1])
    answer = calibration.quantify(np.stack(spectra), grid, replicates=True, name="sample C")
    return {"replicates": len(spectra), "sentence": answer.sentence(calibration.unit), **answer.to_dict()}


def gasoline(data: Path) -> dict[str, Any]:
    started = time.perf_counter()
    calibration = Calibration.from_dataset(load_standards(data / "series" / "nir_gasoline.csv"))
    answer = calibration.quantify(calibration.spectra[20])
    return {
        "is_curve": calibration.curve_check.is_curve,
        "pls_rmsecv": calibration.curve_check.pls_rmsecv[0],
        "pls_components": calibration.curve_check.pls_rmsecv[1],
        "own_rmsecv": calibration.curve_check.rmsecv,
        "notes": list(calibration.notes),
        "verdict": answer.verdict,
        "verdict_notes": list(answer.notes),
        "seconds": round(time.perf_counter() - started, 2),
    }


def speed(rounds: int = 7) -> dict[str, float]:
    """Processor seconds at 601 wavelengths, medians: fit, one unknown, 100 and 1 000; one in geonode_runtime."""
    assay = simulate_assay(replicates=3)
    spectra = assay.truth(np.linspace(1.0, 59.0, 1000).tolist()).numpy()
    spectra = spectra + 0.003 * np.random.default_rng(0).standard_normal(spectra.shape)
    calibration = Calibration.from_dataset(assay)
    calibration.quantify(spectra[0])  # what is worked out once for all unknowns
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "assay.onnx"
        export_onnx(geonode.fit(assay), path)
        runtime = geonode_runtime.load(path)
        runtime.quantify(spectra[0])
        steps: dict[str, Callable[[], object]] = {
            "fit": lambda: Calibration.from_dataset(assay).posterior,
            "quantify_1": lambda: calibration.quantify(spectra[1]),
            "quantify_100": lambda: calibration.quantify_many(spectra[:100]),
            "quantify_1000": lambda: calibration.quantify_many(spectra),
            "runtime_1": lambda: runtime.quantify(spectra[1]),
        }
        return {name: float(np.median([timed(step) for _ in range(rounds)])) for name, step in steps.items()}


def timed(step: Callable[[], object]) -> float:
    started = time.process_time()
    step()
    return time.process_time() - started


def markdown(result: dict[str, Any]) -> str:
    methods = list(next(iter(result["series"].values()))["inverse"])
    lines = ["# Concentration from spectrum, leave one concentration out", ""]
    for key, title in (
        ("rmsep_percent_interior", "RMSEP over interior levels, percent of the calibrated range"),
        ("median_relative_error_percent", "Median relative error over interior levels, percent"),
        ("coverage", "Coverage of nominal 80 % intervals, all levels"),
    ):
        lines += [f"## {title}", "", "| series | " + " | ".join(methods) + " |", "|" + "---|" * (len(methods) + 1)]
        for name, entry in result["series"].items():
            cells = [entry["inverse"][m][key] for m in methods]
            scale = 100.0 if key == "coverage" else 1.0
            lines.append(f"| {name} | " + " | ".join("–" if v is None else f"{scale * v:.2f}" for v in cells) + " |")
        lines.append("")
    for method in OWN:
        lines += [
            f"## {method}",
            "",
            "| series | refused levels | confidently wrong | verdicts by level | bands: responding |",
        ]
        lines.append("|---|---|---|---|---|")
        for name, entry in result["series"].items():
            own = entry["inverse"][method]
            said = "; ".join(f"{row['level']:g}: {', '.join(sorted(set(row['verdicts'])))}" for row in own["per_level"])
            band = f"{100 * entry['bands']['responding']:.0f} %"
            lines.append(f"| {name} | {100 * own['refused']:.0f} % | {own['confidently_wrong']} | {said} | {band} |")
        groups = result["groups"][method]
        lines += ["", f"## {method} by group", "", "| figure | " + " | ".join(groups) + " |"]
        lines.append("|---|" + "---|" * len(groups))
        for key in next(iter(groups.values())):
            lines.append(f"| {key.replace('_', ' ')} | " + " | ".join(f"{g[key]:.3f}" for g in groups.values()) + " |")
        lines.append("")
    lines += ["", f"Rhodamine sample C: {result['rhodamine_sample_c']['sentence']}.", ""]
    lines += [f"`nir_gasoline`: {'; '.join(result['nir_gasoline']['notes'])}.", ""]
    seconds = result["seconds"]
    lines += [
        f"Processor time at 601 wavelengths, medians: fit with the posterior's own levels {seconds['fit']:.2f} s; one "
        f"unknown {1000 * seconds['quantify_1']:.1f} ms, 100 {seconds['quantify_100']:.2f} s, 1 000 "
        f"{seconds['quantify_1000']:.2f} s; one in geonode_runtime {1000 * seconds['runtime_1']:.1f} ms.",
        "",
    ]
    return "\n".join(lines)


def group_figures(series: dict[str, Any], method: str) -> dict[str, dict[str, float]]:
    """By group: geometric means of the interior RMSEP of one of `OWN` ÷ a rival's, and what its sets and verdicts came
    to."""
    own = {name: entry["inverse"][method] for name, entry in series.items()}
    error = {
        name: {method: found["rmsep_percent_interior"] for method, found in entry["inverse"].items()}
        for name, entry in series.items()
    }
    to_best = {n: np.array([e[method] / min(v for k, v in e.items() if k not in OWN)]) for n, e in error.items()}
    to_pls = {n: np.array([e[method] / e["pls"]]) for n, e in error.items()}
    found = {}
    for group, names in GROUPS.items():
        there = [name for name in names if name in series]
        best, best_error = geometric_means(to_best, there)
        pls, pls_error = geometric_means(to_pls, there)
        found[group] = {
            "rmsep_to_best_rival": float(best[0]),
            "rmsep_to_best_rival_standard_error": float(best_error[0]),
            "rmsep_to_pls": float(pls[0]),
            "rmsep_to_pls_standard_error": float(pls_error[0]),
            **pooled_figures([own[name] for name in there], [series[name]["bands"] for name in there]),
            **mean_widths(series, method, there),
            "worst_coverage_of_8_levels": min(
                float(np.mean([np.mean(row["covered"]) for row in own[name]["per_level"]]))
                for name in there
                if len(own[name]["per_level"]) >= 8
            ),
        }
    return found


RIVALS = ("pls", "pls_warped", "pcr", "gp_pca")
"""Those that have intervals."""


def mean_widths(series: dict[str, Any], method: str, there: list[str]) -> dict[str, Any]:
    """Mean width of the 80 % sets (percent of the range, levels equal) beside that of the rivals' intervals, all of
    whose widths are multiplied by what makes them cover the same share of these levels."""
    rows = [row for name in there for row in series[name]["inverse"][method]["per_level"]]
    covered = float(np.mean([np.mean(row["covered"]) for row in rows]))
    own = float(np.mean([np.mean(row["widths"]) for row in rows]))
    found: dict[str, Any] = {"mean_width_percent": own}
    for rival in RIVALS:
        levels = [row for name in there for row in series[name]["inverse"][rival]["per_level"]]
        ends = [np.array(row["intervals"]) for row in levels]
        factor = same_coverage(ends, covered)
        widths = [scaled_width(e, factor, row["searched"]) for e, row in zip(ends, levels, strict=True)]
        found[f"mean_width_percent_{rival}"] = float(np.mean(widths))
    found["mean_width_to_best_rival"] = own / min(found[f"mean_width_percent_{rival}"] for rival in RIVALS)
    return found


def scaled_width(ends: np.ndarray, factor: float, searched: list[float]) -> float:
    """Mean width of intervals ``[U, 2]``, a factor as wide about their middles, as far as they lie in what is searched,
    as sets do."""
    middle, half = ends.mean(1), 0.5 * factor * (ends[:, 1] - ends[:, 0])
    return float(
        np.maximum(np.minimum(middle + half, searched[1]) - np.maximum(middle - half, searched[0]), 0.0).mean()
    )


def same_coverage(ends: list[np.ndarray], covered: float) -> float:
    """The factor by which intervals ``[U, 2]`` of levels, ends less the truth, cover the share ``covered`` of them."""
    asked, weights = [], []
    for e in ends:
        middle, half = e.mean(1), 0.5 * np.maximum(e[:, 1] - e[:, 0], 1e-12)
        asked.append(np.abs(middle) / half)  # the factor from which on an interval holds the truth
        weights.append(np.full(len(e), 1.0 / len(e)))
    factors, share = np.concatenate(asked), np.concatenate(weights) / len(ends)
    order = np.argsort(factors)
    return float(np.interp(covered, np.cumsum(share[order]), factors[order]))


def pooled_figures(own: list[dict[str, Any]], bands: list[dict[str, Any]]) -> dict[str, float]:
    """Sets, verdicts and bands of several series together."""
    rows = [row for one in own for row in one["per_level"]]
    verdicts = [verdict for row in rows for verdict in row["verdicts"]]
    return {
        "coverage_by_spectrum": float(np.mean(np.concatenate([row["covered"] for row in rows]))),
        "coverage_by_level": float(np.mean([np.mean(row["covered"]) for row in rows])),
        "coverage_95_by_level": float(np.mean([np.mean(np.array(row["beyond_95"]) == 0.0) for row in rows])),
        "refused_levels": float(np.mean([np.mean([v == "does not match" for v in row["verdicts"]]) for row in rows])),
        "quantified_spectra": float(np.mean([v == "quantified" for v in verdicts])),
        "quantified_3_percent_outside_95": float(
            np.mean(
                [
                    v == "quantified" and d > 3.0
                    for row in rows
                    for v, d in zip(row["verdicts"], row["beyond_95"], strict=True)
                ]
            )
        ),
        "confidently_wrong_spectra": float(np.sum([one["confidently_wrong"] for one in own]) / len(verdicts)),
        "bands_responding_by_level": float(
            np.average([b["responding"] for b in bands], weights=[b["levels"] for b in bands])
        ),
        "bands_responding_by_series": float(np.mean([b["responding"] for b in bands])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder that holds series/")
    parser.add_argument("--out", default=str(ROOT / "benchmarks" / "results" / "inverse"), help="path without suffix")
    parser.add_argument("--speed", action="store_true", help="print the times and nothing else")
    parser.add_argument("--again", help="the only method that is run; all else is taken from the record")
    args = parser.parse_args()
    if args.speed:
        print(json.dumps(speed(), indent=1))
        return
    data, out = require_series(args.data), Path(args.out)
    series: dict[str, Any] = {}
    recorded = {} if args.again is None else json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))["series"]
    for name in GROUPS["all 24"]:
        dataset = load_standards(data / "series" / f"{name}.csv")
        if args.again is None:
            series[name] = {"inverse": evaluate_inverse(dataset), "bands": band_coverage(dataset)}
        else:
            series[name] = recorded[name]
            series[name]["inverse"] |= evaluate_inverse(dataset, [args.again])
        for method in OWN:
            own = series[name]["inverse"][method]
            print(name, method, {k: v for k, v in own.items() if k != "per_level"}, flush=True)
    result = {
        "series": series,
        "groups": {method: group_figures(series, method) for method in OWN},
        "rhodamine_sample_c": rhodamine_sample_c(data),
        "nir_gasoline": gasoline(data),
        "seconds": speed(),
    }
    write_text(out.with_suffix(".json"), json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    write_text(out.with_suffix(".md"), markdown(result))
    print(
        result["groups"], result["rhodamine_sample_c"]["sentence"], result["nir_gasoline"], result["seconds"], sep="\n"
    )


if __name__ == "__main__":
    main()
