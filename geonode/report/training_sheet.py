"""Losses of a training against epochs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from geonode.report.sheet import Sheet
from geonode.report.style import legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def training_sheet(history: Sequence[dict[str, float]]) -> Sheet | None:
    """Losses against epochs; None where nothing was trained."""
    names = sorted(dict.fromkeys(name for row in history for name in row), key=lambda name: name != "total")
    if not names:
        return None
    epochs = np.arange(1, len(history) + 1)
    columns = {"epoch": epochs, **{n: np.array([row.get(n, np.nan) for row in history]) for n in names}}

    def draw(axis: Axes) -> None:
        styles = ("-", "--", "-.", ":")
        for k, name in enumerate(names):
            values = np.where(columns[name] > 0.0, columns[name], np.nan)  # the scale is logarithmic
            if np.isfinite(values).any():
                marker = "o" if np.isfinite(values).sum() < 3 else None
                # The total lies on its largest part: wide and pale below it.
                width, alpha = (5.0, 0.35) if name == "total" else (1.3, 1.0)
                axis.plot(epochs, values, styles[k % 4], marker=marker, linewidth=width, alpha=alpha, label=name)
        axis.set_yscale("log")
        axis.set_xlabel("epoch")
        axis.set_ylabel("loss, scaled spectra")
        legend_below(axis, 3)

    return Sheet("training", "Training of the neural flow: loss by epoch", columns, draw)
