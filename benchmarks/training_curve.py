"""The curves of the trainings that the shipped weights went through, drawn one after another.

    python benchmarks/training_curve.py     # docs/images/pretraining.png

The numbers are those of the model cards (`benchmarks/results/training_curves.json`; the cards of weights that
are no longer shipped are kept there alone): log error of the network less the Gaussian process's, on the assays that it
trains on, means of windows of 50 steps. A training on other assays begins at another height.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from geonode.report.style import new_figure, save_figure  # noqa: E402

RECORD = ROOT / "benchmarks" / "results" / "training_curves.json"
COLOURS = {"level left out": "tab:blue", "truth": "tab:orange"}


def main() -> None:
    """See the top of the file."""
    figure, grid = new_figure(7.0, 3.2)
    axes = grid[0, 0]
    before = 0.0
    for name, training in json.loads(RECORD.read_text()).items():
        seen = [(before + line["assays"]) / 1e6 for line in training["curve"]]
        for kind, colour in COLOURS.items():
            ratios = [math.exp(line[kind]) for line in training["curve"]]
            axes.plot(seen, ratios, color=colour, label=kind if before == 0.0 else None)
        axes.axvline(before / 1e6, color="0.7", linewidth=0.8)
        axes.text(before / 1e6 + 0.1, 0.97, name, fontsize="small", va="top")
        before += training["assays"]
    axes.set(xlabel="assays seen, millions", ylabel="error ÷ gp, families trained on", ylim=(0.66, 0.98))
    axes.legend(frameon=False, loc="center right", bbox_to_anchor=(1.0, 0.7))
    save_figure(figure, ROOT / "docs" / "images" / "pretraining.png")


if __name__ == "__main__":
    main()
