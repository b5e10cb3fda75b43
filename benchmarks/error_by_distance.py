"""Does distance mean information? Error of the pre-trained flow against geodesic and against plain distance, drawn.

    python benchmarks/error_by_distance.py                # docs/images/error_by_distance.png; two minutes of one core

Left: fresh simulated assays (`geonode.corpus`), all places asked for. They are sorted by their distance to the nearest
standard and cut into tenths; the error of a tenth is a geometric mean, in units of the assay's signal. The band that
the network states stands beside it: half the width of 80 %, by geodesic distance. Right: the 24 real series, every
level left out, at responding wavelengths. Tenths are of the distances of each series, errors are relative to the
series' own (geometric mean), since series differ by more than levels do; series whose levels are all equally far apart
have no order by plain distance and are left out of that line.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "benchmarks"))

from prior import correlation, leave_out, one_batch  # noqa: E402
from real_series import GROUPS, require_series  # noqa: E402

from geonode.calibration.assessment.coverage import responding_wavelengths  # noqa: E402
from geonode.data import load_standards  # noqa: E402
from geonode.prior.feed import make, sized  # noqa: E402
from geonode.prior.network import Network  # noqa: E402
from geonode.prior.settings import PretrainSettings  # noqa: E402
from geonode.prior.stored import load_network  # noqa: E402
from geonode.report.style import new_figure, save_figure  # noqa: E402

TENTHS = 10
KINDS = ("geodesic", "plain")
COLOURS = {"geodesic": "tab:orange", "plain": "tab:blue"}
_SEED = 20_260_102


@torch.inference_mode()
def simulated(network: Network, batches: int) -> dict[str, np.ndarray]:
    """``error``, ``stated`` half width of 80 %, and both distances of every place asked for, one value each."""
    settings = PretrainSettings(tokens=13 * 48 * 24, warmup=0, decay=0)
    parts = []
    for number in range(batches):
        levels = sorted(settings.levels)[number % len(settings.levels)]
        parts.append(one_batch(network, make(sized(settings, levels), seed=_SEED, step=number, device="cpu")))
    rows = {name: np.concatenate([part[name].ravel() for part in parts]) for name in parts[0]}
    distances = {kind: rows[f"{kind} distance"] for kind in KINDS}
    return {"error": np.exp(rows["place error"]), "stated": np.exp(rows["place band"]), **distances}


def real(folder: Path, network: Network) -> dict[str, dict[str, np.ndarray]]:
    """By series: errors relative to the series' geometric mean, and both distances; levels × responding wavelengths."""
    rows = {}
    for name in GROUPS["all 24"]:
        dataset = load_standards(folder / "series" / f"{name}.csv")
        levels, means = np.asarray(dataset.levels), np.asarray(dataset.level_means())
        order = np.argsort(levels)
        levels, means = levels[order], means[order]
        usable = np.isfinite(means).all(axis=0)
        means = means[:, usable]
        found, responding = leave_out(dataset, levels, means, network, smooth=True), responding_wavelengths(means)
        if not responding.any():
            continue
        error = np.abs(found["mean"] - means)[:, responding] + 1e-12
        away = np.abs(levels[:, None] - levels)
        np.fill_diagonal(away, np.inf)
        rows[name] = {
            "error": (error / np.exp(np.log(error).mean())).ravel(),
            "geodesic": found["distance"][:, responding].ravel(),
            "plain": np.broadcast_to(away.min(1)[:, None], error.shape).ravel(),
        }
    return rows


def tenth(distance: np.ndarray) -> np.ndarray:
    """Which tenth of the distances each one lies in, 0 nearest; equal distances lie in one."""
    below = np.searchsorted(np.sort(distance), distance, side="left")
    return np.minimum(below * TENTHS // len(distance), TENTHS - 1)


def curve(part: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Geometric mean of ``values`` in each tenth ``part``; NaN where there are none."""
    chosen = [np.log(np.maximum(values[part == k], 1e-12)) for k in range(TENTHS)]
    return np.array([np.exp(one.mean()) if len(one) else np.nan for one in chosen])


def draw(path: Path, made: dict[str, np.ndarray], series: dict[str, dict[str, np.ndarray]]) -> None:
    """The figure; rank correlations stand in its legends."""
    figure, axes = new_figure(9.2, 3.8, 1, 2)
    (left, right), places = axes.ravel(), np.arange(TENTHS) + 1
    for kind in KINDS:
        ranks = correlation(made["error"], made[kind])
        label = f"by {kind} distance (rank correlation {ranks:.2f})"
        left.plot(places, curve(tenth(made[kind]), made["error"]), "o-", color=COLOURS[kind], label=label)
        found = {name: one for name, one in series.items() if np.ptp(one[kind]) > 1e-9 * one[kind].max()}
        ranks = np.mean([correlation(one["error"], one[kind]) for one in found.values()])
        parts = np.concatenate([tenth(one[kind]) for one in found.values()])
        errors = np.concatenate([one["error"] for one in found.values()])
        label = f"by {kind} distance (mean rank correlation {ranks:.2f}, {len(found)} series)"
        right.plot(places, curve(parts, errors), "o-", color=COLOURS[kind], label=label)
        stated = curve(tenth(made["geodesic"]), made["stated"])
    left.plot(places, stated, "--", color="0.4", label="half width of the stated 80 % band")
    left.set(title="Simulated assays", ylabel="error ÷ the signal's scale", yscale="log")
    right.set(title="Real series", ylabel="error ÷ the series' own", yscale="log")
    for axis in (left, right):
        axis.set(xlabel="tenth of the distances, nearest first", xticks=places)
        axis.set_ylim(top=2.5 * axis.get_ylim()[1])  # room for the words
        axis.legend(fontsize=7, frameon=False, loc="upper left")
    save_figure(figure, path)


def main() -> None:
    """See the top of the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder that holds series/")
    parser.add_argument("--batches", type=int, default=80, help="batches of simulated assays")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images" / "error_by_distance.png")
    args = parser.parse_args()
    network = load_network()
    draw(args.out, simulated(network, args.batches), real(require_series(args.data), network))


if __name__ == "__main__":
    main()
