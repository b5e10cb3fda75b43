"""Two analytes: fit, geodesics, curvature and spectra over the plane of concentrations, with figures.

    python examples/two_analytes/run.py                          # the simulated pH × chloride sensor
    python examples/two_analytes/run.py plate.csv --concentrations note.csv --column pH --column Cl --select H148G

Writes geometry.png, spectra.png and predictions.csv to --out (default: the folder ``two_analytes``).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "kernels")]

from geonode.analytes import SurfaceGP, all_pairs, fit_surface_nodes, gauss_curvature  # noqa: E402
from geonode.data import SpectralDataset, load_standards  # noqa: E402
from geonode.data.sensor import simulate_sensor  # noqa: E402
from geonode.geodesic.solution import GeodesicSolution, Status  # noqa: E402
from geonode.plotting import new_figure, save_figure  # noqa: E402
from geonode_runtime.files import write_text  # noqa: E402

BLUE, ORANGE = "#0072B2", "#D55E00"


def ellipses(gp: SurfaceGP, points: torch.Tensor, radius: float) -> np.ndarray:
    """Curves ``[n, 65, 2]`` around ``points [n, 2]``: all steps of length ``radius`` in the metric there."""
    angle = torch.linspace(0.0, 2.0 * torch.pi, 65, dtype=torch.float64)
    circle = torch.stack([angle.cos(), angle.sin()], -1)
    root = torch.linalg.cholesky(torch.linalg.inv(gp.metric()(points)))
    return (points[:, None] + radius * circle @ root.mT).numpy()


def draw_geometry(
    gp: SurfaceGP, data: SpectralDataset, pairs: torch.Tensor, solution: GeodesicSolution, path: Path
) -> None:
    """Left: metric ellipses and geodesics from one corner. Right: Gaussian curvature. Axes are warp coordinates."""
    figure, axes = new_figure(11.5, 4.8, 1, 2)
    points = gp.coordinates(gp.levels)
    for curve in ellipses(gp, points, 0.12):
        axes[0, 0].plot(*curve.T, color="0.6", linewidth=0.8)
    corner = int(np.lexsort(gp.levels.T)[-1])  # highest of the last analyte
    chosen = (pairs == corner).any(1) & solution.converged
    paths = solution.at(torch.linspace(0.0, 1.0, 41, dtype=torch.float64))[:, chosen]
    axes[0, 0].plot(paths[..., 0].numpy(), paths[..., 1].numpy(), color=BLUE, linewidth=0.7)
    axes[0, 0].plot(*points.numpy().T, ".", color="black", markersize=4)
    axes[0, 0].set_title("Geodesics from one standard, and steps of length 0.12", loc="left", fontsize=10)
    unit = torch.linspace(-1.0, 1.0, 61, dtype=torch.float64)
    curvature = gauss_curvature(gp.metric(), torch.cartesian_prod(unit, unit)).reshape(61, 61).numpy()
    limit = float(np.quantile(np.abs(curvature), 0.98)) or 1.0
    image = axes[0, 1].pcolormesh(unit, unit, curvature.T, cmap="RdBu_r", vmin=-limit, vmax=limit, shading="gouraud")
    figure.colorbar(image, ax=axes[0, 1], label="Gaussian curvature / (correlation length)⁻²")
    axes[0, 1].plot(*points.numpy().T, ".", color="black", markersize=3)
    axes[0, 1].set_title("Curvature: where one analyte changes the other's scale", loc="left", fontsize=10)
    for axis in axes[0]:
        _ticks(axis, gp, data)
    save_figure(figure, path)


def draw_spectra(gp: SurfaceGP, data: SpectralDataset, path: Path) -> None:
    """Left: the strongest wavelength over the plane. Right: spectra between the standards, with 80 % bands."""
    figure, axes = new_figure(11.5, 4.6, 1, 2)
    place = int(np.ptp(gp.level_means, axis=0).argmax())
    unit = torch.linspace(-1.0, 1.0, 61, dtype=torch.float64)
    rows, _ = gp.rows_at(torch.cartesian_prod(unit, unit))
    height = (gp.column_mean[place] + rows.mean(0).numpy() @ gp.residual[:, place]).reshape(61, 61)
    image = axes[0, 0].contourf(unit, unit, height.T, 16, cmap="viridis")
    figure.colorbar(
        image, ax=axes[0, 0], label=f"{data.signal} at {data.wavelengths[place]:.0f} {data.wavelength_unit}"
    )
    axes[0, 0].plot(*gp.coordinates(gp.levels).numpy().T, ".", color="white", markersize=4)
    _ticks(axes[0, 0], gp, data)
    axes[0, 0].set_title("Response between the standards (dots)", loc="left", fontsize=10)
    at = between(gp)
    prediction = gp.predict(at)
    print(prediction.sentence())
    low, high = prediction.interval(0.8)
    colours = (BLUE, ORANGE, "#009E73")
    for c, mean, bottom, top, colour in zip(at, prediction.mean, low, high, colours, strict=True):
        label = ", ".join(f"{name} {value:.3g}" for name, value in zip(data.analytes, c, strict=True))
        axes[0, 1].fill_between(data.wavelengths, bottom, top, color=colour, alpha=0.25, linewidth=0)
        axes[0, 1].plot(data.wavelengths, mean, color=colour, linewidth=1.3, label=label)
    axes[0, 1].set_xlabel(f"wavelength / {data.wavelength_unit}")
    axes[0, 1].set_ylabel(data.signal)
    axes[0, 1].legend(frameon=False, fontsize=8)
    axes[0, 1].set_title("Spectra nobody measured, with 80 % bands", loc="left", fontsize=10)
    save_figure(figure, path)


def between(gp: SurfaceGP) -> np.ndarray:
    """Three concentrations ``[3, 2]`` in the middle of the first analyte's upper gap, along the second."""
    first, second = (np.unique(column) for column in gp.levels.T)
    middle = 0.5 * (first[len(first) // 2] + first[len(first) // 2 + 1])
    places = [second[0], *(0.5 * (second[i] + second[i + 1]) for i in (len(second) // 3, 2 * len(second) // 3))]
    return np.array([[middle, place] for place in places])


def _ticks(axis: Any, gp: SurfaceGP, data: SpectralDataset) -> None:
    """Warp coordinates labelled by concentration; labels that would touch are left out."""
    for d, (side, name) in enumerate(zip((axis.xaxis, axis.yaxis), data.analytes, strict=True)):
        values = np.unique(gp.levels[:, d])
        places = gp.warps()[d].scaled(torch.tensor(values)).numpy()
        shown = [i for i, p in enumerate(places) if i == 0 or p - max(places[:i]) > 0.14]
        side.set_ticks(places[shown], [f"{values[i]:g}" for i in shown])
        side.set_label_text(f"{name} (spaced by its warp)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", help="standards; without, a simulated sensor")
    parser.add_argument("--concentrations", help="table of concentrations, where the file has none")
    parser.add_argument("--column", action="append", help="column of that table, once per analyte")
    parser.add_argument("--select", help="keep the samples whose name contains this")
    parser.add_argument("--out", default="two_analytes", help="folder to write to")
    args = parser.parse_args()
    if args.file:
        options = {"concentrations": args.concentrations, "column": args.column, "select": args.select}
        data = load_standards(args.file, **options)
    else:
        data = simulate_sensor()
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    levels, means = np.array(data.levels), np.array(data.level_means())
    gp = SurfaceGP().fit(levels, means)
    pairs, solution = all_pairs(gp.metric(), gp.coordinates(levels))
    counts = torch.bincount(solution.status, minlength=len(Status))
    print(f"{len(levels)} standards of {', '.join(data.analytes)}; {len(solution.status)} pairs by shooting:")
    print("  " + ", ".join(f"{status.name} {int(counts[status])}" for status in Status))
    node = fit_surface_nodes([gp], np.array(data.wavelengths), [between(gp)])[0]
    at = between(gp)
    difference = np.abs(node.predict(at) - gp.predict_mean(at)).max() / means.std()
    print(f"neural flow and process differ by at most {difference:.3f} standard deviations of the spectra there")
    header = [*data.analytes, *(f"{w:g}" for w in data.wavelengths)]
    rows = [[*c, *spectrum] for c, spectrum in zip(at, node.predict(at), strict=True)]
    text = "\n".join([",".join(header), *(",".join(f"{value:.8g}" for value in row) for row in rows)]) + "\n"
    write_text(out / "predictions.csv", text)
    draw_geometry(gp, data, pairs, solution, out / "geometry.png")
    draw_spectra(gp, data, out / "spectra.png")
    print(f"wrote geometry.png, spectra.png and predictions.csv to {out}")


if __name__ == "__main__":
    main()
