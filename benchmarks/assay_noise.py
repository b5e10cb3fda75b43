"""The simulated assay: error against noiseless truth at concentrations nobody measured, by noise level.

Six standards (0 10 20 30 40 60 ppb, one spectrum each, 601 wavelengths) are simulated with normal noise of 1 %, 0.3 %
and 0.1 % of an absorbance of one. Every method is fitted to them and asked for all whole concentrations between; the
error is the RMSE over those concentrations and all wavelengths against the noiseless truth. geonode is `GeodesicGP`
with its defaults: the mean that the neural flow is trained on and that `predict_spectra` gives with predictor="gp".
The best simple method is chosen per noise level and seed with hindsight. `--node` adds the neural flow (slow).

    python benchmarks/assay_noise.py
    python benchmarks/assay_noise.py --varied     # also assays whose constants are drawn at random

The default seeds (100 …) took no part in choosing the process's grid; seeds below 100 did. Results go to
benchmarks/results/assay_noise.{json,md}.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "kernels")]

from geonode.calibration.gp.geodesic_gp import GeodesicGP  # noqa: E402
from geonode.config import GeodesicConfig  # noqa: E402
from geonode.data import simulate_assay  # noqa: E402
from geonode.data.simulate import AssayParameters  # noqa: E402
from geonode.training.ensemble import fit_node_folds  # noqa: E402
from geonode.validation import baseline  # noqa: E402
from geonode_runtime.files import write_text  # noqa: E402

NOISE = (0.01, 0.003, 0.001)
SIMPLE = ("linear", "pchip", "cubic", "quadratic", "line", "isotherm")
# Constants that move where and how sharply the assay responds; each is multiplied by exp(0.3 normal).
VARIED = (
    "release_midpoint",
    "release_exponent",
    "uptake_midpoint",
    "uptake_exponent",
    "aggregation_midpoint",
    "aggregation_exponent",
)


def parameters_of(seed: int, varied: bool) -> AssayParameters:
    """The assay's constants, or the same with the equilibria of another assay."""
    if not varied:
        return AssayParameters()
    draws = np.exp(0.3 * np.random.default_rng(seed).normal(size=len(VARIED)))
    base = AssayParameters()
    changed: dict[str, Any] = {name: getattr(base, name) * draw for name, draw in zip(VARIED, draws, strict=True)}
    return dataclasses.replace(base, **changed)


def errors(noise: float, seed: int, varied: bool, node: bool) -> dict[str, float]:
    """RMSE against truth per method, in absorbance."""
    data = simulate_assay(noise=noise, seed=seed, parameters=parameters_of(seed, varied))
    levels, means = np.array(data.levels), np.array(data.level_means())
    between = np.setdiff1d(np.arange(levels[0], levels[-1] + 1), levels)
    truth = data.truth(between).numpy()
    gp = GeodesicGP().fit_levels(levels, means)
    predicted = {name: baseline(name).fit(levels, means).predict(between) for name in SIMPLE}
    predicted["geonode"] = gp.predict_mean(between)
    if node:
        predicted["node"] = fit_node_folds(
            [gp], [between], np.array(data.wavelengths), GeodesicConfig(flow="path_independent"), seed=seed
        )[0]
    return {name: float(np.sqrt(((spectra - truth) ** 2).mean())) for name, spectra in predicted.items()}


def summary(rows: list[dict[str, float]]) -> dict[str, Any]:
    """Mean errors, and geonode's divided by the best simple method's of the same seed."""
    ratio = {
        name: np.array([row[name] / min(row[simple] for simple in SIMPLE) for row in rows])
        for name in rows[0]
        if name not in SIMPLE
    }
    best = [min(SIMPLE, key=lambda name: row[name]) for row in rows]
    return {
        "rmse": {name: float(np.mean([row[name] for row in rows])) for name in rows[0]},
        "ratio": {name: float(np.exp(np.log(value).mean())) for name, value in ratio.items()},
        "ratio_worst_seed": {name: float(value.max()) for name, value in ratio.items()},
        "best_simple": {name: best.count(name) for name in SIMPLE if name in best},
    }


def markdown(result: dict[str, Any]) -> str:
    """The tables as text."""
    lines = [
        "# Simulated assay: error against noiseless truth between the standards",
        "",
        f"RMSE in 10⁻³ absorbance, mean over {result['seeds']} seeds from {result['first_seed']}; the ratio is the "
        "geometric mean over seeds of geonode ÷ the best simple method *of that seed*, chosen with hindsight.",
    ]
    for title, table in result["assays"].items():
        names = list(next(iter(table.values()))["rmse"])
        judged = [name for name in names if name not in SIMPLE]
        heads = [*names, *(f"{name} ÷ best" for name in judged), *(f"worst seed, {name}" for name in judged)]
        lines += ["", f"## {title}", "", "| noise | " + " | ".join(heads) + " | best simple method (seeds) |"]
        lines.append("|---|" + "---|" * (len(heads) + 1))
        for noise, entry in table.items():
            cells = [f"{1e3 * entry['rmse'][name]:.2f}" for name in names]
            cells += [f"**{entry['ratio'][name]:.3f}**" for name in judged]
            cells += [f"{entry['ratio_worst_seed'][name]:.3f}" for name in judged]
            counts = ", ".join(f"{name} {count}" for name, count in entry["best_simple"].items())
            lines.append(f"| {100 * float(noise):g} % | " + " | ".join(cells) + f" | {counts} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--varied", action="store_true", help="also assays whose constants are drawn at random")
    parser.add_argument("--node", action="store_true", help="the neural flow as well")
    parser.add_argument("--out", default=str(ROOT / "benchmarks" / "results" / "assay_noise"), help="without suffix")
    args = parser.parse_args()
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    assays = {
        "The assay as it is": False,
        **({"Other assays: constants × exp(0.3 normal)": True} if args.varied else {}),
    }
    result: dict[str, Any] = {"seeds": args.seeds, "first_seed": args.first_seed, "assays": {}}
    for title, varied in assays.items():
        result["assays"][title] = {
            str(noise): summary([errors(noise, seed, varied, args.node) for seed in seeds]) for noise in NOISE
        }
    out = Path(args.out)
    write_text(out.with_suffix(".json"), json.dumps(result, indent=1, allow_nan=False) + "\n")
    write_text(out.with_suffix(".md"), markdown(result))
    print(markdown(result))


if __name__ == "__main__":
    main()
