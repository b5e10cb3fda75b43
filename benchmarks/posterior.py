"""The learned posterior and the profile method on simulated assays of families that were kept out of its training.

    python benchmarks/posterior.py --assays 240

For every assay one level is left out (its replicates are unknowns too); both methods get the same standards and the
same unknowns. Figures: root mean square error of unknowns inside the range (percent of it; geometric mean over assays),
coverage of 80 and 95 % sets, width of 80 % sets, confidently wrong, genuine spectra refused, foreign ones refused;
ranks of the truth (simulation-based calibration) by family, levels and noise, with Kolmogorov–Smirnov tests; coverage
by the number of standards; spectra of kinds that training did not have (posterior_strangers.py); and a folding assay
whose standards were prepared with an undeclared error of 1 %. Results go to benchmarks/results/posterior.{json,md}.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import kstest

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "kernels")]

from calibration_coverage import run_row  # noqa: E402
from posterior_strangers import caught  # noqa: E402

from geonode.calibration.calibration import Calibration  # noqa: E402
from geonode.calibration.posterior.examples import unknowns_of  # noqa: E402
from geonode.calibration.posterior.training import HELD_OUT_FAMILIES  # noqa: E402
from geonode.corpus import FAMILIES, UNKNOWNS, common_levels, draw  # noqa: E402
from geonode_runtime.answers import answer  # noqa: E402
from geonode_runtime.files import write_text  # noqa: E402
from geonode_runtime.unknowns import Unknown  # noqa: E402

NAMES = (*UNKNOWNS, "left-out level")
OUTSIDE = 0.03  # of the range: so far outside the 95 % set a truth makes `quantified` confidently wrong


def calibration_of(assays: Any, row: int, left_out: int | None) -> Calibration:
    levels, count = assays.concentration[row].numpy(), assays.count[row].numpy()
    keep = [i for i in range(len(levels)) if i != left_out]
    spectra = np.concatenate([assays.replicates[row, i, : count[i]].numpy() for i in keep])
    return Calibration(np.repeat(levels[keep], count[keep]), spectra)


def judged(said: Any, truth: float, kind: int, levels: np.ndarray, rank: float | None) -> dict[str, Any]:
    """What one answer came to."""
    span = float(levels[-1] - levels[0])
    only = said.verdict_components[0]
    far = max(only.low - truth, truth - only.high, 0.0) if np.isfinite(truth) else np.inf
    open_there = (only.open_low and truth < only.low) or (only.open_high and truth > only.high)
    wrong = said.verdict == "quantified" and not open_there and far > OUTSIDE * span
    low, high = said.enclosing
    return {
        "kind": NAMES[kind],
        "inside": bool(levels[0] <= truth <= levels[-1]),
        "error": float((said.nearest - truth) / span),
        "covered": [any(c.contains(truth) for c in part) for part in (said.components, said.verdict_components)],
        "width": None if low is None or high is None else sum(c.width for c in said.components) / span,
        "verdict": said.verdict,
        "flagged": any("holds something" in note for note in said.notes),
        "wrong": wrong,
        "rank": rank,
    }


def one_assay(assays: Any, row: int, left_out: int | None, methods: list[str]) -> dict[str, Any]:
    calibration = calibration_of(assays, row, left_out)
    facts = calibration.facts
    spectra, count, truth, kind = unknowns_of(assays, row, left_out)
    found: dict[str, Any] = {
        "family": FAMILIES[int(assays.family[row])],
        "levels": len(calibration.levels),
        "noise": float(assays.noise[row]),
    }
    for method in methods:
        rows = []
        for x, k, c, what in zip(spectra, count, truth, kind, strict=True):
            unknown = Unknown(x[None], np.ones(len(x), dtype=bool), ())
            rank = None
            if method == "profile":
                said = answer(calibration.inverse, facts, unknown, float(k), 0.8)
            else:
                said = calibration.posterior.answer(calibration.inverse, facts, unknown, float(k), 0.8)
                if np.isfinite(c):
                    (one,), _, _ = calibration.posterior.posteriors(x[None], np.array([float(k)]))
                    # zero, where the range ends, is an atom: its rank lies anywhere within it
                    reach = (1e-5 if c <= one.edges[0] + 1e-9 * one.span else 1e-9) * one.span
                    here = np.array([c - reach, c + reach])
                    low, high = one.below_of(here) if one.edges[0] <= c <= one.edges[-1] else (0.0, 0.0)
                    if c > one.edges[-1]:
                        low, high = 1.0 - one.above, 1.0
                    if c < one.edges[0]:
                        low, high = 0.0, one.below
                    rank = float(low + (high - low) * np.random.default_rng([row, int(1e6 * x[0]) % 9973]).random())
            rows.append(judged(said, float(c), int(what), calibration.levels, rank))
        found[method] = rows
    return found


def figures(assays: list[dict[str, Any]], method: str) -> dict[str, float]:
    rows = [row for one in assays for row in one[method]]

    def share(values: list[bool]) -> float:
        return float(np.mean(values)) if values else float("nan")

    genuine = [r for r in rows if r["kind"] in ("sample", "left-out level") and r["inside"]]
    rmse = []
    for one in assays:
        errors = [r["error"] for r in one[method] if r["kind"] in ("sample", "left-out level") and r["inside"]]
        if errors:
            rmse.append(max(float(np.sqrt(np.mean(np.square(errors)))), 1e-5))
    quantified = [r for r in rows if r["verdict"] == "quantified"]
    foreign = [r for r in rows if r["kind"] in ("foreign", "nothing")]
    result = {
        "rmsep_percent": 100.0 * float(np.exp(np.mean(np.log(rmse)))),
        "coverage_80": share([r["covered"][0] for r in genuine]),
        "coverage_95": share([r["covered"][1] for r in genuine]),
        "coverage_80_left_out": share([r["covered"][0] for r in genuine if r["kind"] == "left-out level"]),
        "median_width_percent": 100.0
        * float(np.median([r["width"] if r["width"] is not None else 2.0 for r in genuine])),
        "mean_width_percent": 100.0
        * float(np.mean([min(r["width"], 2.0) if r["width"] is not None else 2.0 for r in genuine])),
        "quantified": share([r["verdict"] == "quantified" for r in genuine]),
        "ambiguous": share([r["verdict"] == "ambiguous" for r in genuine]),
        "falsely_outside": share([r["verdict"] == "outside calibrated range" for r in genuine]),
        "falsely_refused": share([r["verdict"] == "does not match" for r in genuine]),
        "confidently_wrong_of_quantified": share([r["wrong"] for r in quantified]),
        "confidently_wrong_genuine": share([r["wrong"] for r in genuine]),
        "foreign_refused": share([r["verdict"] == "does not match" for r in foreign]),
        "foreign_quantified": share([r["verdict"] == "quantified" for r in foreign]),
        "interferent_refused_or_flagged": share(
            [r["verdict"] == "does not match" or r["flagged"] for r in rows if r["kind"] == "interferent"]
        ),
    }
    return {k: round(v, 4) for k, v in result.items()}


def ranks(assays: list[dict[str, Any]]) -> dict[str, Any]:
    """Rank histograms and Kolmogorov–Smirnov p of the posterior, by family, levels and noise."""

    def of(chosen: list[dict[str, Any]]) -> dict[str, Any]:
        # one unknown an assay, so that those of one assay do not count as independent
        values = []
        for number, one in enumerate(chosen):
            own = [r["rank"] for r in one["posterior"] if r["rank"] is not None and r["kind"] in ("sample", "rough")]
            if own:
                values.append(own[number % len(own)])
        every = [
            r["rank"]
            for one in chosen
            for r in one["posterior"]
            if r["rank"] is not None and r["kind"] in ("sample", "rough")
        ]
        counts = np.histogram(every, np.linspace(0.0, 1.0, 11))[0]
        return {
            "assays": len(chosen),
            "deciles": (counts / max(counts.sum(), 1)).round(3).tolist(),
            "p": round(float(kstest(values, "uniform").pvalue), 4) if len(values) > 4 else None,
        }

    groups = {f"family {name}": [a for a in assays if a["family"] == name] for name in FAMILIES}
    groups |= {
        f"{low} to {high} levels": [a for a in assays if low <= a["levels"] <= high]
        for low, high in ((3, 4), (5, 6), (7, 9), (10, 24))
    }
    edges = (0.0, 0.003, 0.01, 0.03, np.inf)
    groups |= {
        f"noise {low:g} to {high:g}": [a for a in assays if low <= a["noise"] < high] for low, high in pairwise(edges)
    }
    return {"all": of(assays), **{name: of(chosen) for name, chosen in groups.items() if chosen}}


def run(count: int, seed: int, families: tuple[str, ...] | None, methods: list[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for step in range(count // 8):
        rng = np.random.default_rng([seed, step])
        levels = common_levels(seed, step) + 1
        assays = draw(
            8, levels, int(rng.choice((64, 128, 256))), queries=0, unknowns=8, seed=seed, step=step, families=families,
            dtype=torch.float64,
        )  # fmt: skip
        for row in range(8):
            left_out = int(rng.integers(1, levels - 1))
            found.append(one_assay(assays, row, left_out, methods))
    return found


def markdown(result: dict[str, Any]) -> str:
    lines = ["# The learned posterior on simulated assays", ""]
    for name, part in result["sets"].items():
        methods = list(part["figures"])
        lines += [f"## {name}", "", f"{part['assays']} assays.", "", "| figure | " + " | ".join(methods) + " |"]
        lines.append("|---|" + "---|" * len(methods))
        for key in part["figures"][methods[0]]:
            lines.append(
                f"| {key.replace('_', ' ')} | " + " | ".join(f"{part['figures'][m][key]:.3f}" for m in methods) + " |"
            )
        lines += ["", "Ranks of the truth (share in each decile; p of Kolmogorov–Smirnov, one unknown an assay):", ""]
        lines += ["| assays | number | deciles | p |", "|---|---|---|---|"]
        for group, r in part["ranks"].items():
            deciles = " ".join(f"{100 * d:.0f}" for d in r["deciles"])
            lines.append(f"| {group} | {r['assays']} | {deciles} | {'–' if r['p'] is None else r['p']} |")
        lines += ["", "80 % sets by the number of standards, genuine unknowns inside the range:", ""]
        lines += ["| standards | unknowns | covered |", "|---|---|---|"]
        lines += [f"| {n} | {c['unknowns']} | {100 * c['covered']:.1f} % |" for n, c in part["by_levels"].items()]
        lines += ["", "Kinds of spectra that training did not have:", ""]
        lines += ["| kind | spectra | refused | refused or flagged |", "|---|---|---|---|"]
        for kind, c in part["strangers"].items():
            shares = f"{100 * c['refused']:.1f} % | {100 * c['refused_or_flagged']:.1f} %"
            lines.append(f"| {kind} | {c['spectra']} | {shares} |")
        lines.append("")
    row = result["undeclared"]
    lines += ["## Undeclared 1 % error of preparation, folding assay", ""]
    lines += [
        f"{row['calibrations']} calibrations of six standards: 80 % sets cover {100 * row['coverage']:.1f} %.",
        "",
    ]
    return "\n".join(lines)


def by_levels(assays: list[dict[str, Any]]) -> dict[str, Any]:
    """Coverage of 80 % sets of genuine unknowns inside the range, for few standards and for all others."""
    found: dict[str, Any] = {}
    for name, low, high in (("3", 3, 3), ("4", 4, 4), ("5 and more", 5, 48)):
        rows = [r for one in assays if low <= one["levels"] <= high for r in one["posterior"]]
        hits = [r["covered"][0] for r in rows if r["kind"] in ("sample", "left-out level") and r["inside"]]
        if hits:
            found[name] = {"unknowns": len(hits), "covered": round(float(np.mean(hits)), 4)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assays", type=int, default=240, help="of each set")
    parser.add_argument("--seed", type=int, default=31_000)
    parser.add_argument("--out", default=str(ROOT / "benchmarks" / "results" / "posterior"), help="path without suffix")
    args = parser.parse_args()
    torch.set_num_threads(1)
    result: dict[str, Any] = {"sets": {}}
    for name, families in (("families left out of training", HELD_OUT_FAMILIES), ("all families", None)):
        started = time.perf_counter()
        methods = ["profile", "posterior"]
        found = run(args.assays, args.seed, families, methods)
        result["sets"][name] = {
            "assays": len(found),
            "figures": {m: figures(found, m) for m in methods},
            "ranks": ranks(found),
            "by_levels": by_levels(found),
            "strangers": caught(args.assays, args.seed + 1, families),
            "seconds": round(time.perf_counter() - started),
        }
        print(name, json.dumps(result["sets"][name]["figures"], indent=1), flush=True)
    row = run_row("folding", 1, 0.01, False, 0.002, 48, args.seed)
    result["undeclared"] = {"calibrations": 48, "coverage": row["coverage_80"], "row": row}
    out = Path(args.out)
    write_text(out.with_suffix(".json"), json.dumps(result, indent=1) + "\n")
    write_text(out.with_suffix(".md"), markdown(result))


if __name__ == "__main__":
    main()
