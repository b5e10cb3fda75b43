"""How often a response that rises and falls is given one concentration, and the wrong one, with and without its twins.

An aggregate forms and falls apart again; its limbs retrace each other, but for a share of a band that grows all the
way. Six, eight and ten standards from 0 to 100, noise 0.002 at 301 wavelengths.

    python benchmarks/retracing_folds.py --first 20 --assays 6
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "kernels"), str(ROOT / "runtime")]

import geonode_runtime.posterior.answers as answers  # noqa: E402
from geonode import Calibration  # noqa: E402

WAVE = np.linspace(400.0, 700.0, 301)
DIFFERING = (0.0, 0.003, 0.01, 0.03, 0.3)
FIRM = ("quantified", "below detection limit", "outside calibrated range")
NOISE = 0.002


def band(middle: float, width: float) -> np.ndarray:
    return np.exp(-0.5 * ((WAVE - middle) / width) ** 2)


def assay(seed: int, differing: float, count: int) -> tuple[np.ndarray, ...]:
    """Levels, their spectra, unknowns' concentrations and their spectra."""
    draw = np.random.default_rng([77, seed])
    start, middle, width = draw.uniform(3, 12), draw.uniform(18, 45), draw.uniform(0.4, 0.8)
    one = 0.3 + 0.1 * band(draw.uniform(480, 560), 60)
    other = band(draw.uniform(560, 640), 28) + 0.4 * band(draw.uniform(540, 600), 22)
    grown = 0.75 * differing * band(draw.uniform(450, 650), 35)

    def truth(c: np.ndarray) -> np.ndarray:
        share = np.exp(-0.5 * ((np.log1p(c / start) - np.log1p(middle / start)) / width) ** 2)[:, None]
        return (1.0 - 0.55 * share) * one + 0.75 * share * other + (c / (c + 25.0))[:, None] * grown

    draw = np.random.default_rng([78, seed, count])
    levels = 100.0 * (np.arange(1, count) / (count - 1)) ** draw.uniform(1, 1.8)
    levels = np.concatenate([[0.0], levels]).round(1)
    standards = truth(levels) + NOISE * draw.standard_normal((count, len(WAVE)))
    inside = draw.uniform(0.5, 100, 14), draw.uniform(15, 45, 4)
    asked = np.concatenate([*inside, np.zeros(2), [105.0, 120.0, 150.0, 250.0]])
    return levels, standards, asked, truth(asked) + NOISE * draw.standard_normal((len(asked), len(WAVE)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=20)
    parser.add_argument("--assays", type=int, default=6)
    args = parser.parse_args()
    rules = {"without": lambda known, one, cells, row: one, "with": answers.with_twins}
    found = defaultdict(list)
    for differing in DIFFERING:
        for count in (6, 8, 10):
            for seed in range(args.first, args.first + args.assays):
                levels, standards, asked, unknowns = assay(seed, differing, count)
                for name, rule in rules.items():
                    answers.with_twins = rule
                    one = Calibration(levels, standards, WAVE)
                    for c, answer in zip(asked, one.quantify_many(unknowns), strict=True):
                        where = "a blank" if c == 0.0 else "above" if c > 100.0 else "inside"
                        firm = answer.verdict in FIRM
                        right = any(piece.contains(c) for piece in answer.verdict_components)
                        found[differing, where, name].append((firm, firm and not right))
    for (differing, where, name), rows in found.items():
        firm, wrong = np.sum(rows, axis=0)
        print(f"limbs differ by {differing:g}, {where}, {name}: {len(rows)} spectra, {firm} firm, {wrong} wrong")


if __name__ == "__main__":
    main()
