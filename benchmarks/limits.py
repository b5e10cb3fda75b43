"""Limits of detection and quantification and resolution beside the posterior's own widths and ISO 11843-2.

Simulated assays with a known truth: a straight line (one band) and a saturating response, 7 levels from 0 to 60, one to
five replicates, white noise. For each: LOD and LOQ by the posterior's widths and by the profile's information, the same
by ISO 11843-2 with a known standard deviation (straight line: spectra along its slope; saturating: the tangent at
zero), the LOD also with one estimated from the residuals of the line (factor δ in place of 3.29); the share of spectra
at the LOD, and of blanks, that are told from a blank; and at 10, 30 and 50 the median width of the 80 % sets of 60
simulated unknowns ÷ 2.563, beside u(c), by which differences are called resolvable.

    python benchmarks/limits.py

Results go to benchmarks/results/limits.{json,md}, the figure to docs/images/limits.png.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "kernels")]

from geonode.calibration import Calibration, detection_limits, resolution  # noqa: E402
from geonode.calibration.baselines.univariate import noncentrality  # noqa: E402
from geonode_runtime.files import write_text  # noqa: E402

WAVE = np.arange(300.0, 701.0, 4.0)
LEVELS = np.linspace(0.0, 60.0, 7)
PLACES = (10.0, 30.0, 50.0)
UNKNOWNS = 60


def straight(c: Any) -> np.ndarray:
    return 0.2 + 0.01 * np.atleast_1d(c)[:, None] * np.exp(-0.5 * ((WAVE - 600.0) / 40.0) ** 2)


def saturating(c: Any) -> np.ndarray:
    c = np.atleast_1d(c)[:, None]
    return 0.2 + 0.01 * c / (1.0 + 0.02 * c) * np.exp(-0.5 * ((WAVE - 600.0) / 40.0) ** 2)


TRUTHS = {"straight": straight, "saturating": saturating}


def iso(replicates: int, noise: float, at: float) -> float:
    """Standard uncertainty of one result by ISO 11843-2 with a known σ, straight line."""
    x = np.repeat(LEVELS, replicates)
    along = noise / float(np.linalg.norm(straight(1.0) - straight(0.0)))
    return along * float(np.sqrt(1.0 + 1.0 / len(x) + (at - x.mean()) ** 2 / ((x - x.mean()) ** 2).sum()))


def noisy(truth: Any, c: Any, seed: int, noise: float) -> np.ndarray:
    exact = truth(c)
    return exact + noise * np.random.default_rng(seed).standard_normal(exact.shape)


def one(name: str, replicates: int, noise: float, seed: int) -> dict[str, Any]:
    truth, c = TRUTHS[name], np.repeat(LEVELS, replicates)
    calibration = Calibration(c, noisy(truth, c, seed, noise), WAVE)
    limits = {method: detection_limits(calibration, method=method) for method in ("posterior", "profile")}
    found: dict[str, Any] = {"response": name, "replicates": replicates, "noise": noise}
    for method, own in limits.items():
        found[f"lod_{method}"], found[f"loq_{method}"] = own.detection, own.quantification
    least = iso(replicates, noise, 0.0)
    found["lod_iso"], found["loq_iso"] = 3.29 * least, 10.0 * least
    found["lod_iso_estimated"] = noncentrality(len(LEVELS) * replicates - 2) * least
    lod = limits["posterior"].detection
    for key, at in (("blanks_told", 0.0), ("told_at_lod", lod)):
        if at is not None:
            answers = calibration.quantify_many(noisy(truth, np.full(UNKNOWNS, at), seed + 500, noise))
            found[key] = float(np.mean([a.verdict != "below detection limit" for a in answers]))
    stated = resolution(calibration, PLACES)
    for place, u in zip(PLACES, stated.standard_deviation, strict=True):
        answers = calibration.quantify_many(noisy(truth, np.full(UNKNOWNS, place), seed + 900, noise))
        width = float(np.median([sum(k.width for k in a.components) for a in answers])) / 2.563
        found[f"width_to_u_at_{place:g}"] = width / float(u)
    return found


def markdown(rows: list[dict[str, Any]]) -> str:
    lines = ["# Limits and resolution beside the posterior's widths and ISO 11843-2", ""]
    lines += [f"Levels {LEVELS[0]:g} to {LEVELS[-1]:g}, {len(LEVELS)} of them; ISO 11843-2 with a known σ.", ""]
    keys = [key for key in rows[0] if key != "response"]
    lines.append("| response | " + " | ".join(key.replace("_", " ") for key in keys) + " |")
    lines.append("|---|" + "---|" * len(keys))
    for row in rows:
        cells = ["–" if row.get(key) is None else f"{row[key]:.3g}" for key in keys]
        lines.append(f"| {row['response']} | " + " | ".join(cells) + " |")
    line = [row for row in rows if row["response"] == "straight" and row["lod_posterior"]]
    for key in ("lod", "loq"):
        for method in ("posterior", "profile"):
            for other, said in ((f"{key}_iso", "a known σ"), (f"{key}_iso_estimated", "an estimated σ")):
                if other not in line[0]:
                    continue
                ratio = [row[f"{key}_{method}"] / row[other] for row in line if row[f"{key}_{method}"]]
                middle = float(np.exp(np.mean(np.log(ratio))))
                lines += ["", f"{key.upper()} by the {method} ÷ ISO 11843-2 with {said} on the straight lines: "
                          f"{middle:.2f} ({min(ratio):.2f} to {max(ratio):.2f})."]  # fmt: skip
    return "\n".join([*lines, ""])


def figure(path: Path, seed: int) -> None:
    """u(c) that is reported, widths of simulated unknowns and ISO 11843-2, one straight line."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    replicates, noise = 3, 0.005
    c = np.repeat(LEVELS, replicates)
    calibration = Calibration(c, noisy(straight, c, seed, noise), WAVE, unit="µM")
    limits, places = detection_limits(calibration), np.linspace(1.0, 59.0, 30)
    stated = resolution(calibration, np.linspace(0.5, 60.0, 41))
    spectra = noisy(straight, np.repeat(places, 12), seed + 1, noise)
    widths = np.array([sum(k.width for k in a.components) for a in calibration.quantify_many(spectra)]) / 2.563
    shown, axes = pyplot.subplots(figsize=(6.4, 3.8), layout="constrained")
    axes.plot(np.repeat(places, 12), widths, ".", color="0.75", label="80 % sets of unknowns ÷ 2.563")
    axes.plot(places, np.median(widths.reshape(-1, 12), axis=1), "o", color="0.35", label="their median")
    axes.plot(stated.concentrations, stated.standard_deviation, color="C0", label="u(c) as reported")
    axes.plot(places, [iso(replicates, noise, at) for at in places], "--", color="C1", label="ISO 11843-2, known σ")
    for name, at, high in (("LOD", limits.detection, 0.98), ("LOQ", limits.quantification, 0.92)):
        if at is not None:
            axes.axvline(at, color="0.5", lw=0.8)
            axes.text(at, axes.get_ylim()[1] * high, f" {name} {at:.2g}", va="top", fontsize=8)
    axes.set(xlabel="concentration / µM", ylabel="standard uncertainty / µM", ylim=(0.0, None), xlim=(0.0, 60.0))
    axes.legend(fontsize=8, frameon=False)
    shown.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", default=str(ROOT / "benchmarks" / "results" / "limits"), help="path without suffix")
    args = parser.parse_args()
    rows = [
        one(name, replicates, noise, args.seed)
        for name in TRUTHS
        for replicates in (1, 2, 5)
        for noise in (0.002, 0.005, 0.02)
    ]
    out = Path(args.out)
    write_text(out.with_suffix(".json"), json.dumps(rows, indent=1) + "\n")
    write_text(out.with_suffix(".md"), markdown(rows))
    figure(ROOT / "docs" / "images" / "limits.png", args.seed)
    print(out.with_suffix(".md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
