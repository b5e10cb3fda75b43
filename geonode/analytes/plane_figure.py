"""The plane of two concentrations with what one spectrum says of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from geonode.report.style import figure_path, new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from geonode.analytes.answer import PlaneAnswer

ORANGE = "#D55E00"


def draw_answer(answer: PlaneAnswer, path: str | Path | None) -> Figure | Path:
    """Draw ``answer``; see `PlaneAnswer.plot`."""
    if path is not None:
        path = figure_path(Path(path))
    figure, axes = new_figure(6.4, 4.8, 1, 1)
    axis = axes[0, 0]
    x, y = answer.density.axes
    scale = [_spaced(answer.levels[:, d]) for d in range(2)]
    height = answer.density.density / answer.density.density.max()
    axis.contourf(x, y, height.T, levels=np.linspace(0.02, 1.0, 12), cmap="Blues")
    for found, style in ((answer.region, "solid"), (answer.region_95, "dashed")):
        if found.inside.any() and not found.inside.all():
            axis.contour(x, y, found.inside.T.astype(float), levels=[0.5], colors="#0072B2", linestyles=style)
    axis.plot(*answer.levels.T, ".", color="black", markersize=5, label="standards")
    axis.plot(*answer.point, "x", color=ORANGE, markersize=9, label="estimate")
    for side, name in zip(("x", "y"), scale, strict=True):
        name(getattr(axis, f"set_{side}scale"))
    labels = [f"{a} / {u}" if u not in ("", "1") else a for a, u in zip(answer.analytes, answer.units, strict=True)]
    axis.set_xlabel(labels[0])
    axis.set_ylabel(labels[1])
    axis.set_title(
        f"{answer.name}: {answer.verdict}\n{100 * answer.region.level:g} % region solid, 95 % dashed",
        loc="left",
        fontsize=9,
    )
    axis.legend(frameon=False, fontsize=8)
    return figure if path is None else save_figure(figure, path)


def _spaced(levels: np.ndarray) -> Callable[[Callable[..., None]], None]:
    """Even, or logarithmic beyond the lowest positive level, where the levels are spaced so."""
    positive = np.unique(levels[levels > 0.0])
    if len(positive) < 3 or positive[-1] < 20.0 * positive[0]:
        return lambda apply: apply("linear")
    return lambda apply: apply("symlog", linthresh=float(positive[0]))
