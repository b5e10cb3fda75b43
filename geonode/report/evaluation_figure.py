"""The figure of an evaluation: errors of every method, and the winner's predictions over what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from geonode.report.style import OKABE_ITO, level_colours, new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from geonode.validation.result import EvaluationReport

_SPREAD = 0.6
"""Of the distance between two levels, what the methods take up: the rest is a gap, so that no mark seems to be of the
next level."""
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*", "h", "d")


def plot_evaluation(report: EvaluationReport, path: str | Path) -> Path:
    """Left: every method's error at every held-out level. Right: the winner's predictions over the measured spectra."""
    figure, axes = new_figure(11.0, 4.4, 1, 2)
    _plot_errors(axes[0, 0], report)
    _plot_held_out(axes[0, 1], report)
    return save_figure(figure, path)


def _plot_errors(axis: Axes, report: EvaluationReport) -> None:
    scale = float(report.level_means.std()) or 1.0
    position, count = np.arange(len(report.levels)), len(report.results)
    for number, (name, result) in enumerate(report.results.items()):
        chosen = name == report.winner
        # Side by side, each with a mark of its own: methods that agree would hide one another on one spot.
        beside = position + _SPREAD * ((number + 0.5) / count - 0.5)
        colour, marker = OKABE_ITO[number % len(OKABE_ITO)], _MARKERS[number % len(_MARKERS)]
        axis.plot(beside, result.rmse / scale, color=colour, linewidth=1.6 if chosen else 0.5, alpha=0.7, zorder=2)
        axis.plot(
            beside,
            result.rmse / scale,
            marker,
            color=colour,
            markersize=7.0 if chosen else 5.0,
            markerfacecolor=colour if chosen else "white",
            label=f"{name} (winner)" if chosen else name,
            zorder=3,
        )
    for k in position[::2]:  # every other level on a ground of its own
        axis.axvspan(k - 0.5, k + 0.5, color="0.95", linewidth=0, zorder=0)
    axis.grid(axis="y", which="major", color="0.82", linewidth=0.7, zorder=0.5)
    axis.grid(axis="y", which="minor", color="0.9", linewidth=0.5, zorder=0.5)
    axis.set_axisbelow(True)
    axis.set_xlim(-0.5, len(position) - 0.5)
    chosen_inside = report.selected()
    if chosen_inside is not None:  # the winner's own line knows all levels: this is what choosing comes to
        honest = np.array([entry["rmse"] for entry in chosen_inside]) / scale
        marks: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 11, "markerfacecolor": "none"}
        axis.plot(position, honest, color="black", zorder=5, label="chosen in each fold", **marks)
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
