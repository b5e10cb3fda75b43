"""Figures of reports: each writes a file and returns its path; matplotlib is imported on first use, without pyplot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from geonode.errors import InputError
from geonode_runtime.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from geonode.validation.result import EvaluationReport


_FORMATS = (".png", ".pdf", ".svg", ".jpg", ".jpeg", ".eps", ".tif", ".tiff", ".webp")


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Figure, np.ndarray]:
    """A figure outside pyplot's global state and its axes as ``[rows, columns]``; sizes in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.ravel():
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write by suffix (png where there is none) to a temporary name in the same folder, then rename."""
    path = figure_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = path.suffix[1:]  # the temporary name has another suffix
    return write_atomically(path, lambda temporary: figure.savefig(temporary, dpi=150, format=kind))


def figure_path(path: str | Path) -> Path:
    """``path``, with .png where it has no suffix.

    Raises:
        InputError: a suffix that is no format of figures.
    """
    path = Path(path)
    path = path if path.suffix else path.with_suffix(".png")
    if path.suffix.lower() not in _FORMATS:
        raise InputError(f"{path}: figures are written as {', '.join(_FORMATS)}; give such a name.")
    return path


def level_colours(count: int) -> np.ndarray:
    """RGBA ``[count, 4]`` from low to high concentration."""
    from matplotlib import colormaps

    return colormaps["viridis"](np.linspace(0.0, 0.92, max(count, 1)))


def plot_evaluation(report: EvaluationReport, path: str | Path) -> Path:
    """Left: every method's error at every held-out level. Right: the winner's predictions over the measured spectra."""
    figure, axes = new_figure(11.0, 4.4, 1, 2)
    _plot_errors(axes[0, 0], report)
    _plot_held_out(axes[0, 1], report)
    return save_figure(figure, path)


def _plot_errors(axis: Axes, report: EvaluationReport) -> None:
    scale = float(report.level_means.std()) or 1.0
    position = np.arange(len(report.levels))
    for number, (name, result) in enumerate(report.results.items()):
        chosen = name == report.winner
        style: dict[str, Any] = {"linewidth": 2.4, "zorder": 3} if chosen else {"linewidth": 1.0, "alpha": 0.8}
        if name == "node":  # it nearly always lies on its teacher
            style |= {"linestyle": (0, (3, 2)), "zorder": 4}
        label = f"{name} (winner)" if chosen else name
        axis.plot(position, result.rmse / scale, marker="o", markersize=3.5, color=f"C{number}", label=label, **style)
    axis.set_yscale("log")
    axis.set_xticks(position, [f"{level:g}" for level in report.levels], rotation=45 if len(position) > 8 else 0)
    unit = f" / {report.units['concentration']}" if report.units["concentration"] else ""
    axis.set_xlabel(f"held-out concentration{unit} (the first and last are extrapolation)")
    axis.set_ylabel("RMSE ÷ standard deviation of the level means")
    axis.legend(fontsize=7, ncols=2, frameon=False)


def _plot_held_out(axis: Axes, report: EvaluationReport) -> None:
    name = report.winner or next(iter(report.results))
    predictions = report.results[name].predictions
    colours = level_colours(len(report.levels))
    for level, measured, predicted, colour in zip(report.levels, report.level_means, predictions, colours, strict=True):
        axis.plot(report.wavelengths, measured, color=colour, linewidth=1.4, label=f"{level:g}")
        axis.plot(report.wavelengths, predicted, color=colour, linewidth=1.2, linestyle="--")
    signal = report.units["signal"]
    axis.set_xlabel(f"wavelength / {report.units['wavelength']}")
    axis.set_ylabel(f"{report.signal} / {signal}" if signal else report.signal)
    axis.set_title(f"measured (solid) and predicted without that level (dashed): {name}", fontsize=9)
    axis.legend(
        fontsize=7, ncols=2, frameon=False, title=report.units["concentration"] or "concentration", title_fontsize=7
    )
