"""The learned posterior and the profile method on simulated assays of families that were kept out of its training.

    python benchmarks/posterior.py --assays 240

For every assay one level is left out (its replicates are unknowns too); both methods get the same standards and the
same unknowns. Figures: root mean square error of unknowns inside the range (percent of it; geometric mean over assays),
coverage of 80 and 95 % sets, width of 80 % sets, confidently wrong, genuine spectra refused, foreign ones refused;
ranks of the truth (simulation-based calibration) by family, levels and noise, with Kolmogorov–Smirnov tests
(posterior_ranks.py); the same of three and of four standards; spectra of kinds that training did not have
(posterior_strangers.py); and a folding assay whose standards were prepared with an undeclared error of 1 %. Results go
to benchmarks/results/posterior.{json,md}. It can be run in pieces: --keep FOLDER --minutes 4, again and again.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "kernels")]

from calibration_coverage import run_row  # noqa: E402
from posterior_ranks import is_blank, rank_groups, rank_of, rank_table, ranks_by_family  # noqa: E402
from posterior_strangers import strangers  # noqa: E402

from geonode.calibration.calibration import Calibration  # noqa: E402
from geonode.calibration.posterior.examples import unknowns_of  # noqa: E402
from geonode.calibration.posterior.training import HELD_OUT_FAMILIES  # noqa: E402
from geonode.corpus import FAMILIES, UNKNOWNS, common_levels, draw  # noqa: E402
from geonode_runtime.answers import answer  # noqa: E402
from geonode_runtime.files import write_text  # noqa: E402
from geonode_runtime.unknowns import Unknown  # noqa: E402

NAMES = (*UNKNOWNS, "left-out level")
GENUINE = ("sample", "left-out level")
OUTSIDE = 0.03  # of the range: so far outside the 95 % set a truth makes `quantified` confidently wrong


@dataclass(frozen=True)
class Plan:
    """Simulated assays under a name: how many, of which families (None: all), of how many standards (None: as common),
    one level of which is left out besides."""

    name: str
    assays: int
    seed: int
    families: tuple[str, ...] | None
    standards: int | None


def calibration_of(assays: Any, row: int, left_out: int | None) -> Calibration:
    levels, count = assays.concentration[row].numpy(), assays.count[row].numpy()
    keep = [i for i in range(len(levels)) if i != left_out]
    spectra = np.concatenate([assays.replicates[row, i, : count[i]].numpy() for i in keep])
    return Calibration(np.repeat(levels[keep], count[keep]), spectra)


def judged(said: Any, truth: float, kind: str, levels: np.ndarray, rank: float | None) -> dict[str, Any]:
    """What one answer came to."""
    span = float(levels[-1] - levels[0])
    only = said.verdict_components[0]
    far = max(only.low - truth, truth - only.high, 0.0) if np.isfinite(truth) else np.inf
    open_there = (only.open_low and truth < only.low) or (only.open_high and truth > only.high)
    wrong = said.verdict == "quantified" and not open_there and far > OUTSIDE * span
    low, high = said.enclosing
    return {
        "kind": kind,
        "inside": bool(levels[0] <= truth <= levels[-1]),
        "blank": bool(levels[0] == 0.0 == truth),
        "error": float((said.nearest - truth) / span),
        "covered": [any(c.contains(truth) for c in part) for part in (said.components, said.verdict_components)],
        "width": None if low is None or high is None else sum(c.width for c in said.components) / span,
        "verdict": said.verdict,
        "flagged": any("holds something" in note for note in said.notes),
        "wrong": wrong,
        "rank": rank,
    }


def one_assay(assays: Any, row: int, left_out: int | None, rng: np.random.Generator) -> dict[str, Any]:
    calibration = calibration_of(assays, row, left_out)
    facts, learned = calibration.facts, calibration.posterior
    spectra, count, truth, kind = unknowns_of(assays, row, left_out)
    names = [NAMES[k] for k in kind]
    odd, disturbed, repeats = strangers(assays, row, rng)
    found: dict[str, Any] = {
        "family": FAMILIES[int(assays.family[row])],
        "levels": len(calibration.levels),
        "noise": float(assays.noise[row]),
        "profile": [],
        "posterior": [],
    }
    for x, k, c, name in zip(spectra, count, truth, names, strict=True):
        unknown = Unknown(x[None], np.ones(len(x), dtype=bool), ())
        said = answer(calibration.inverse, facts, unknown, float(k), 0.8)
        found["profile"].append(judged(said, float(c), name, calibration.levels, None))
        said = learned.answer(calibration.inverse, facts, unknown, float(k), 0.8)
        (one,), _, _ = learned.posteriors(x[None], np.array([float(k)]))
        rank = rank_of(one, float(c), rng) if np.isfinite(c) and not is_blank(one, float(c)) else None
        found["posterior"].append(judged(said, float(c), name, calibration.levels, rank))
    for x, k, name in zip(disturbed, repeats, odd, strict=True):
        unknown = Unknown(x[None], np.ones(len(x), dtype=bool), ())
        said = learned.answer(calibration.inverse, facts, unknown, float(k), 0.8)
        found["posterior"].append(judged(said, float("nan"), name, calibration.levels, None))
    return found


def figures(assays: list[dict[str, Any]], method: str) -> dict[str, float]:
    rows = [row for one in assays for row in one[method] if row["kind"] in NAMES]

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
    blanks = [r for r in rows if r["kind"] == "sample" and r["blank"]]
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
        "blanks_told_from_a_blank": share([r["verdict"] in ("quantified", "ambiguous") for r in blanks]),
        "foreign_refused": share([r["verdict"] == "does not match" for r in foreign]),
        "foreign_quantified": share([r["verdict"] == "quantified" for r in foreign]),
        "interferent_refused_or_flagged": share(
            [r["verdict"] == "does not match" or r["flagged"] for r in rows if r["kind"] == "interferent"]
        ),
    }
    return {k: round(v, 4) for k, v in result.items()}


def run(plan: Plan, keep: Path | None, until: float) -> list[dict[str, Any]] | None:
    """Every assay of the plan; None where the time was over first."""
    found: list[dict[str, Any]] = []
    for step in range(plan.assays // 8):
        path = None if keep is None else keep / f"{plan.name.replace(' ', '_')}-{step}.json"
        if path is not None and path.is_file():
            found += json.loads(path.read_text(encoding="utf-8"))
            continue
        if time.monotonic() > until:
            return None
        rng = np.random.default_rng([plan.seed, step])
        levels = (common_levels(plan.seed, step) if plan.standards is None else plan.standards) + 1
        width = int(rng.choice((64, 128, 256)))
        assays = draw(
            8, levels, width, queries=0, unknowns=8, seed=plan.seed, step=step, families=plan.families,
            dtype=torch.float64,
        )  # fmt: skip
        part = [one_assay(assays, row, int(rng.integers(1, levels - 1)), rng) for row in range(8)]
        if path is not None:
            write_text(path, json.dumps(part))
        found += part
    return found


def strange_kinds(assays: list[dict[str, Any]]) -> dict[str, Any]:
    """By kind of spectrum: how many, and the shares that are refused, and refused or flagged."""
    rows = [r for one in assays for r in one["posterior"]]
    kinds = [name for name in dict.fromkeys(r["kind"] for r in rows) if name not in NAMES]
    groups = {"genuine": [r for r in rows if r["kind"] in GENUINE and r["inside"]]}
    groups |= {name: [r for r in rows if r["kind"] == name] for name in sorted(kinds)}
    return {
        name: {
            "spectra": len(group),
            "refused": round(float(np.mean([r["verdict"] == "does not match" for r in group])), 4),
            "refused_or_flagged": round(
                float(np.mean([r["verdict"] == "does not match" or r["flagged"] for r in group])), 4
            ),
            "quantified_unflagged": round(
                float(np.mean([r["verdict"] == "quantified" and not r["flagged"] for r in group])), 4
            ),
        }
        for name, group in groups.items()
        if group
    }


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
        lines += rank_table(part["ranks"])
        lines += ["", "Kinds of spectra that training did not have:", ""]
        lines += [
            "| kind | spectra | refused | refused or flagged | quantified without a flag |",
            "|---|---|---|---|---|",
        ]
        for kind, c in part["strangers"].items():
            shares = [f"{100 * c[k]:.1f} %" for k in ("refused", "refused_or_flagged", "quantified_unflagged")]
            lines.append(f"| {kind} | {c['spectra']} | {' | '.join(shares)} |")
        lines.append("")
    lines += [
        "## Ranks by family",
        "",
        "As many assays of every family; those left out of training are among them.",
        "",
    ]
    lines += [*rank_table(result["families"]), ""]
    row = result["undeclared"]
    lines += ["## Undeclared 1 % error of preparation, folding assay", ""]
    lines += [
        f"{row['calibrations']} calibrations of six standards: 80 % sets cover {100 * row['coverage']:.1f} %.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--assays", type=int, default=240, help="of the families left out, and of all; of few standards half"
    )
    parser.add_argument("--each", type=int, default=48, help="assays of every family for the ranks by family")
    parser.add_argument("--seed", type=int, default=31_000)
    parser.add_argument("--keep", type=Path, help="folder that keeps what is done, from which a later run goes on")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so many, with --keep")
    parser.add_argument("--out", default=str(ROOT / "benchmarks" / "results" / "posterior"), help="path without suffix")
    args = parser.parse_args()
    torch.set_num_threads(1)
    until = time.monotonic() + 60.0 * args.minutes
    if args.keep is not None:
        args.keep.mkdir(parents=True, exist_ok=True)
    plans = (
        Plan("families left out of training", args.assays, args.seed, HELD_OUT_FAMILIES, None),
        Plan("all families", args.assays, args.seed, None, None),
        Plan("three standards", args.assays // 2, args.seed + 1, None, 3),
        Plan("four standards", args.assays // 2, args.seed + 2, None, 4),
    )
    result: dict[str, Any] = {"sets": {}}
    for plan in plans:
        found = run(plan, args.keep, until)
        if found is None:
            sys.exit(f"time is over: run it again with --keep {args.keep}")
        result["sets"][plan.name] = {
            "assays": len(found),
            "figures": {m: figures(found, m) for m in ("profile", "posterior")},
            "ranks": rank_groups(found),
            "strangers": strange_kinds(found),
        }
        print(plan.name, json.dumps(result["sets"][plan.name]["figures"], indent=1), flush=True)
    result["families"] = ranks_by_family(args.each, args.seed + 3, args.keep, until)
    row = run_row("folding", 1, 0.01, False, 0.002, 48, args.seed)
    result["undeclared"] = {"calibrations": 48, "coverage": row["coverage_80"], "row": row}
    out = Path(args.out)
    write_text(out.with_suffix(".json"), json.dumps(result, indent=1) + "\n")
    write_text(out.with_suffix(".md"), markdown(result))


if __name__ == "__main__":
    main()
