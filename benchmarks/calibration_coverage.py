"""Do the sets of concentrations cover what they say? Simulated calibrations with a known truth.

Two assays at 601 wavelengths and six standards (0 10 20 30 40 60 ppb): *monotone* (binding, saturating) and *folding*
(a blue band that rises and falls again, so that almost every spectrum occurs at two concentrations); besides, the
gray-blue-gray assay of `geonode.simulate_assay`. Every calibration has fresh standards (with a preparation error of the
stated relative size; *told*: the calibrator is given that size as the standards' uncertainty) and fresh noise; 20
unknowns are uniform over the range.

* coverage: share of unknowns whose 80 % set contains the truth, mean and spread over the calibrations;
* two found: where the true spectrum has a second concentration within one standard deviation (Mahalanobis distance of
  the true curve under the true noise of the measurement) with a ridge of at least four between them, the share of sets
  with at least two components of probability ≥ 10 %, at 80 % and at 95 %;
* confidently wrong: verdict `quantified`, one component, and the truth outside the 95 % set by more than its width.

    python benchmarks/calibration_coverage.py                  # 100 calibrations per row
    python benchmarks/calibration_coverage.py --calibrations 20

Results go to benchmarks/results/calibration_coverage.{json,md}.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "kernels")]

from geonode.calibration.calibration import Calibration  # noqa: E402
from geonode.data import simulate_assay  # noqa: E402
from geonode_runtime.files import write_text  # noqa: E402

LEVELS = np.array([0.0, 10.0, 20.0, 30.0, 40.0, 60.0])
WAVELENGTHS = np.arange(200.0, 801.0)
UNKNOWNS = 20
RIDGE = 4.0
# (assay, replicates per level, relative preparation error, whether the calibrator is told of it, noise)
ROWS = (
    ("monotone", 1, 0.0, False, 0.003),
    ("folding", 1, 0.0, False, 0.003),
    ("monotone", 1, 0.01, True, 0.003),
    ("folding", 1, 0.01, True, 0.003),
    ("monotone", 3, 0.01, True, 0.003),
    ("folding", 3, 0.01, True, 0.003),
    ("monotone", 1, 0.02, True, 0.01),
    ("folding", 1, 0.02, True, 0.01),
    ("monotone", 1, 0.01, False, 0.003),
    ("folding", 1, 0.01, False, 0.003),
    ("gray-blue-gray", 1, 0.01, True, 0.003),
    ("gray-blue-gray", 3, 0.01, True, 0.003),
)


def band(centre: float, width: float) -> np.ndarray:
    return np.exp(-0.5 * ((WAVELENGTHS - centre) / width) ** 2)


BASE = 0.15 + 0.3 * np.exp(-(WAVELENGTHS - 200.0) / 60.0)


def monotone(c: np.ndarray) -> np.ndarray:
    """Binding with K = 25: one band grows, another goes, a third (two bound) grows with the square."""
    x = c[:, None] / (c[:, None] + 25.0)
    return BASE + 0.9 * x * band(620, 40) + 0.35 * (1 - x) * band(480, 60) + 0.1 * x**2 * band(700, 50)


def folding(c: np.ndarray) -> np.ndarray:
    """Released and taken up again: everything depends on one quantity that rises and falls with concentration."""
    c = c[:, None]
    x = (c / 12) ** 1.8 / (1 + (c / 12) ** 1.8) / (1 + (c / 38) ** 4)
    return BASE + 0.8 * x * band(650, 35) - 0.15 * x * band(520, 50)


_assay = simulate_assay()
TRUTH: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "monotone": monotone,
    "folding": folding,
    "gray-blue-gray": lambda c: _assay.truth(np.asarray(c).tolist()).numpy(),
}


def second_concentration(curve: np.ndarray, grid: np.ndarray, at: np.ndarray, c: float) -> bool:
    """Whether ``curve [G, W]`` (in standard deviations) comes back within one of ``at [W]`` across a ridge."""
    distance = np.sqrt(((curve - at) ** 2).sum(1))
    here = int(np.abs(grid - c).argmin())
    for other in np.flatnonzero(distance <= 1.0):
        low, high = sorted((here, int(other)))
        if distance[low : high + 1].max() >= RIDGE:
            return True
    return False


def confidently_wrong(answer: Any, truth: float) -> bool:
    if answer.verdict != "quantified" or len(answer.verdict_components) != 1:
        return False
    (only,) = answer.verdict_components
    return truth < only.low - only.width or truth > only.high + only.width


def run_row(
    assay: str, replicates: int, preparation: float, told: bool, noise: float, count: int, seed: int
) -> dict[str, Any]:
    truth = TRUTH[assay]
    grid = np.linspace(0.0, 60.0, 601)
    curve = truth(grid) / noise
    coverage, at_95, ambiguous, wrong, width, error, verdicts = [], [], [], [], [], [], {}
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        nominal = np.repeat(LEVELS, replicates)
        actual = np.repeat(LEVELS * (1.0 + preparation * rng.standard_normal(len(LEVELS))), replicates)
        measured = truth(actual) + noise * rng.standard_normal((len(actual), len(WAVELENGTHS)))
        std = preparation * LEVELS if told and preparation else None
        calibration = Calibration(nominal, measured, WAVELENGTHS, concentration_std=std)
        c = rng.uniform(0.0, 60.0, UNKNOWNS)
        exact = truth(c)
        answers = calibration.quantify_many(exact + noise * rng.standard_normal(exact.shape), level=0.8)
        inside, inside_95 = [], []
        for value, spectrum, answer in zip(c, exact, answers, strict=True):
            inside.append(any(k.contains(value) for k in answer.components))
            inside_95.append(any(k.contains(value) for k in answer.verdict_components))
            wrong.append(confidently_wrong(answer, value))
            width.append(sum(k.width for k in answer.components))
            error.append(abs(answer.nearest - value))
            verdicts[answer.verdict] = verdicts.get(answer.verdict, 0) + 1
            if second_concentration(curve, grid, spectrum / noise, value):
                found = [
                    sum(k.probability >= 0.1 for k in p) >= 2 for p in (answer.components, answer.verdict_components)
                ]
                ambiguous.append(found)
        coverage.append(np.mean(inside))
        at_95.append(np.mean(inside_95))
    return {
        "assay": assay,
        "replicates": replicates,
        "preparation_error": preparation,
        "told": told,
        "noise": noise,
        "calibrations": count,
        "coverage_80": float(np.mean(coverage)),
        "coverage_80_spread": float(np.std(coverage, ddof=1)),
        "coverage_95": float(np.mean(at_95)),
        "ambiguous_cases": len(ambiguous),
        "two_found_80": float(np.mean([a for a, _ in ambiguous])) if ambiguous else None,
        "two_found_95": float(np.mean([b for _, b in ambiguous])) if ambiguous else None,
        "confidently_wrong": float(np.mean(wrong)),
        "median_width": float(np.median(width)),
        "median_error": float(np.median(error)),
        "verdicts": verdicts,
    }


def markdown(rows: list[dict[str, Any]]) -> str:
    lines = [
        "# Coverage of sets of concentrations, simulated",
        "",
        (__doc__ or "").split("\n\n    python")[0].strip(),
        "",
    ]
    heads = ("assay", "replicates", "preparation error", "told", "noise", "coverage at 80 % (spread)", "at 95 %")
    heads += ("ambiguous cases", "two found at 80 %", "at 95 %", "confidently wrong", "median width of the 80 % set")
    heads += ("median error",)
    lines += ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for row in rows:
        found = ["–" if row[k] is None else f"{100 * row[k]:.0f} %" for k in ("two_found_80", "two_found_95")]
        cells = [row["assay"], str(row["replicates"]), f"{100 * row['preparation_error']:g} %"]
        cells += ["yes" if row["told"] else "no", f"{row['noise']:g}"]
        cells += [f"{100 * row['coverage_80']:.1f} % ({100 * row['coverage_80_spread']:.1f})"]
        cells += [f"{100 * row['coverage_95']:.1f} %", str(row["ambiguous_cases"]), *found]
        cells += [f"{100 * row['confidently_wrong']:.1f} %", f"{row['median_width']:.2f}", f"{row['median_error']:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calibrations", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=len(ROWS), help="only the first rows")
    parser.add_argument("--out", default=str(ROOT / "benchmarks" / "results" / "calibration_coverage"))
    args = parser.parse_args()
    rows = []
    for row in ROWS[: args.rows]:
        started = time.perf_counter()
        rows.append(run_row(*row, args.calibrations, args.seed))
        print(json.dumps(rows[-1]), f"{time.perf_counter() - started:.0f} s", flush=True)
    out = Path(args.out)
    write_text(out.with_suffix(".json"), json.dumps(rows, indent=1) + "\n")
    write_text(out.with_suffix(".md"), markdown(rows))


if __name__ == "__main__":
    main()
