"""Concentration from spectrum on simulated assays, judged as the real series are: RMSEP ÷ the best rival by hindsight.

    python benchmarks/inverse_simulated.py --assays 90

Every level of each assay is left out once (`geonode.validation.evaluate_inverse`); every second assay is of a family
that training did not see. A ratio above one on real series says little by itself: the best of five rivals is chosen
with hindsight among few levels. Here the same figure is taken of assays like those of training.
Results go to benchmarks/results/inverse_simulated.{json,md}.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "kernels"), str(ROOT / "runtime")]

from geonode.calibration.posterior.training import HELD_OUT_FAMILIES  # noqa: E402
from geonode.corpus import FAMILIES, common_levels, draw  # noqa: E402
from geonode.data import SpectralDataset  # noqa: E402
from geonode.validation.inverse_comparison import OWN, evaluate_inverse  # noqa: E402
from geonode_runtime.files import write_text  # noqa: E402

SEED, WAVELENGTHS = 991, 48


def judged(number: int) -> dict[str, Any]:
    """Assay ``number``: interior RMSEP and coverage of every method."""
    levels, unseen = min(max(6, common_levels(SEED, number)), 12), number % 2 == 1
    families = HELD_OUT_FAMILIES if unseen else None
    assay = draw(1, levels, WAVELENGTHS, 0, 1, seed=SEED, step=number, families=families)
    counts = assay.count[0].numpy()
    spectra = np.concatenate([assay.replicates[0, i, : counts[i]].numpy() for i in range(levels)])
    concentrations = np.repeat(assay.concentration[0].numpy(), counts)
    found = evaluate_inverse(SpectralDataset(spectra, concentrations, np.arange(400.0, 400.0 + WAVELENGTHS)))
    return {
        "family": str(FAMILIES[int(assay.family[0])]),
        "unseen": unseen,
        "rmsep": {name: value["rmsep_percent_interior"] for name, value in found.items()},
        "coverage": found["geonode"]["coverage"],
    }


def ratios(assays: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Geometric means of the RMSEP ÷ the best rival's (and ÷ PLS), with the factor of one standard error."""
    errors = {name: np.log([a["rmsep"][name] for a in assays]) for name in assays[0]["rmsep"]}
    best = np.min([value for name, value in errors.items() if name not in OWN], 0)
    row: dict[str, Any] = {name: _mean(value - best) for name, value in errors.items()}
    return {
        "assays": len(assays),
        "to the best rival": row,
        "to pls": _mean(errors["geonode"] - errors["pls"]),
        "coverage": float(np.mean([a["coverage"] for a in assays])),
    }


def _mean(logs: np.ndarray) -> tuple[float, float]:
    return float(np.exp(logs.mean())), float(np.exp(logs.std(ddof=1) / np.sqrt(len(logs))))


def markdown(result: dict[str, Any]) -> str:
    names = list(result["groups"]["all"]["to the best rival"])
    lines = [
        "# Concentration from spectrum on simulated assays, leave one concentration out",
        "",
        f"Interior RMSEP ÷ the best of five rivals with hindsight, geometric means (× one standard error); "
        f"{result['left out']} assays on which some method failed or erred by nothing are not counted.",
        "",
        "| assays | number | " + " | ".join(names) + " | geonode ÷ pls | 80 % sets cover |",
        "|" + "---|" * (len(names) + 4),
    ]
    for group, row in result["groups"].items():
        cells = [f"{mean:.2f} (× {error:.2f})" for mean, error in (*row["to the best rival"].values(), row["to pls"])]
        lines.append(f"| {group} | {row['assays']} | " + " | ".join(cells) + f" | {row['coverage']:.1%} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """See the top of the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assays", type=int, default=90)
    parser.add_argument("--out", default=str(ROOT / "benchmarks" / "results" / "inverse_simulated"), help="no suffix")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    every = [judged(number) for number in range(args.assays)]
    good = [a for a in every if all(a["rmsep"].values())]
    groups = {
        "all": good,
        "families left out of training": [a for a in good if a["unseen"]],
        "of any family": [a for a in good if not a["unseen"]],
        "straight lines": [a for a in good if a["family"] == "beer_lambert"],
    }
    result = {
        "left out": len(every) - len(good),
        "groups": {name: ratios(group) for name, group in groups.items() if len(group) > 1},
        "assays": every,
    }
    out = Path(args.out)
    write_text(out.with_suffix(".json"), json.dumps(result, indent=1) + "\n")
    write_text(out.with_suffix(".md"), markdown(result))


if __name__ == "__main__":
    main()
