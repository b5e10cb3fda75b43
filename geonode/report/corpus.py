"""A page of simulated calibrations for a chemist's eye."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from geonode.corpus import DESIGN_NAMES, DETECTIONS, FAMILIES, SPECTRUM_KINDS, Assays
from geonode.report.style import level_colours, new_figure, save_figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

_COLUMNS = 4


def plot_corpus(assays: Sequence[Assays], path: str | Path) -> Path:
    """Spectra coloured by concentration, the response against concentration in small, and what was drawn in words.

    Args:
        assays: any number of draws; every assay of each gets a panel.
        path: png, pdf or svg.
    """
    singles = [draw[i : i + 1] for draw in assays for i in range(len(draw))]
    rows = max(1, math.ceil(len(singles) / _COLUMNS))
    figure, axes = new_figure(4.2 * _COLUMNS, 3.2 * rows, rows, _COLUMNS)
    for axis, one in zip(axes.ravel(), singles, strict=False):
        _panel(axis, one)
    for axis in axes.ravel()[len(singles) :]:
        axis.set_axis_off()
    return save_figure(figure, path)


def _panel(axis: Axes, one: Assays) -> None:
    wavelength, levels = one.wavelength.numpy(), one.concentration[0].double().numpy()
    spectra, truth = one.spectra[0].double().numpy(), one.truth[0].double().numpy()
    for spectrum, colour in zip(spectra, level_colours(len(levels)), strict=True):
        axis.plot(wavelength, spectrum, color=colour, linewidth=0.9)
    axis.tick_params(labelsize=6)
    axis.margins(x=0.01)
    low, high = axis.get_ylim()
    axis.set_ylim(low, high + 0.45 * (high - low))  # room for the inset
    axis.set_title(_caption(one), loc="left", fontsize=6.5)
    inset = axis.inset_axes((0.56, 0.66, 0.43, 0.32))
    change = np.abs(truth - truth.mean(0)).max(0)
    strongest = int(np.argmax(change))
    # a second place that responds, far from the first
    away = np.abs(wavelength - wavelength[strongest]) > 0.15
    second = int(np.argmax(np.where(away, change, -1.0)))
    query = one.query_concentration[0].double().numpy()
    order = np.argsort(query)
    for place, colour in ((strongest, "C3"), (second, "C0")):
        inset.plot(levels, spectra[:, place], "o", color=colour, markersize=2.2)
        inset.plot(query[order], one.query_truth[0, order, place].double().numpy(), color=colour, linewidth=0.7)
    inset.tick_params(labelsize=5, length=2, pad=1)
    inset.patch.set_alpha(0.0)


def _caption(one: Assays) -> str:
    names = (FAMILIES[int(one.family)], SPECTRUM_KINDS[int(one.spectrum)], DETECTIONS[int(one.detection)])
    count = int(one.count.max())
    replicates = f" × {count}" if count > 1 else ""
    return (
        f"{' · '.join(names)}\n{DESIGN_NAMES[int(one.design)]}, {one.concentration.shape[1]} levels{replicates}, "
        f"noise {float(one.noise):.2%}, preparation {float(one.preparation):.2%}"
    )
