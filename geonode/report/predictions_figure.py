"""The figure of a model: predicted spectra among the standards, and the response against concentration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from geonode.data.labelled import half_width
from geonode.report.concentration_axis import scale_concentration
from geonode.report.style import OKABE_ITO, figure_path, level_colours, new_figure, save_figure

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from geonode.model import GeodesicModel


def plot_predictions(
    model: GeodesicModel, mean: xr.DataArray, std: xr.DataArray, path: str | Path, truth: np.ndarray | None = None
) -> Path:
    """Write `predictions_figure` to ``path``."""
    return save_figure(predictions_figure(model, mean, std, truth), path)


def draw_model(model: GeodesicModel, path: str | Path | None, concentrations: Any) -> Figure | Path:
    """`GeodesicModel.plot`."""
    if path is not None:
        figure_path(path)  # refused before any work
    chosen = between(model.gp.levels) if concentrations is None else concentrations
    figure = predictions_figure(model, *model.predict_spectra(chosen))
    return figure if path is None else save_figure(figure, path)


def between(levels: np.ndarray, most: int = 6) -> np.ndarray:
    """Middles between neighbouring ``levels`` [n], at most so many, evenly chosen."""
    middles = 0.5 * (levels[1:] + levels[:-1])
    return middles[np.unique(np.linspace(0, len(middles) - 1, min(most, len(middles))).round().astype(int))]


def predictions_figure(
    model: GeodesicModel, mean: xr.DataArray, std: xr.DataArray, truth: np.ndarray | None = None
) -> Figure:
    """Left: standards (thin) and predicted spectra with 80 % bands. Right: the response against concentration at the
    wavelengths that respond most.

    ``mean`` and ``std`` are from `GeodesicModel.predict_spectra`; ``truth`` [C, W], where known, is drawn dashed.
    """
    figure, axes = new_figure(11.0, 4.4, 1, 2)
    _plot_spectra(axes[0, 0], model, mean, std, truth)
    _plot_response(axes[0, 1], model)
    return figure


def _plot_spectra(axis: Axes, model: GeodesicModel, mean: xr.DataArray, std: xr.DataArray, truth: Any) -> None:
    dataset, wavelengths = model.dataset, mean.wavelength.values
    concentrations = mean.concentration.values
    span = _span(model, concentrations)
    axis.plot(dataset.wavelengths, dataset.level_means().T, color="0.72", linewidth=0.8)
    axis.plot([], [], color="0.72", linewidth=0.8, label="standards")
    half = half_width(std)
    for i, c in enumerate(concentrations):
        colour = span(c)
        m, h = mean.values[i], half[i]
        axis.fill_between(wavelengths, m - h, m + h, color=colour, alpha=0.25, linewidth=0)
        axis.plot(wavelengths, m, color=colour, linewidth=1.4, label=f"{c:g} {dataset.units['concentration']}".strip())
    if truth is not None:
        axis.plot(wavelengths, np.asarray(truth).T, color="black", linewidth=0.7, linestyle=(0, (4, 3)))
        axis.plot([], [], color="black", linewidth=0.7, linestyle=(0, (4, 3)), label="truth")
    axis.set_xlabel(f"wavelength / {dataset.units['wavelength']}")
    axis.set_ylabel(_signal(dataset))
    axis.set_title("Predicted spectra with 80 % bands", loc="left", fontsize=10)
    axis.legend(frameon=False, fontsize=8)


def _plot_response(axis: Axes, model: GeodesicModel) -> None:
    dataset = model.dataset
    means = dataset.level_means()
    low, high = model.calibrated_range
    grid = np.unique(np.concatenate([np.linspace(low, high, 121), _fan(low, high)]))
    mean, std = model.predict_spectra(grid)
    half = half_width(std)
    for place, colour in zip(_responding(means), OKABE_ITO, strict=False):
        m, h = mean.values[:, place], half[:, place]
        label = f"{dataset.wavelengths[place]:.0f} {dataset.units['wavelength']}"
        axis.fill_between(grid, m - h, m + h, color=colour, alpha=0.2, linewidth=0)
        axis.plot(grid, m, color=colour, linewidth=1.4, label=label)
        axis.plot(dataset.levels, means[:, place], "o", color=colour, markersize=4)
    unit = dataset.units["concentration"]
    axis.set_xlabel(f"concentration / {unit}" if unit else "concentration")
    scale_concentration(axis, model.gp.levels)
    axis.set_ylabel(_signal(dataset))
    axis.set_title("Response where it is largest; dots: standards", loc="left", fontsize=10)
    axis.legend(frameon=False, fontsize=8)


def _responding(means: np.ndarray, count: int = 3) -> list[int]:
    """Up to ``count`` wavelengths of largest response, at least a twelfth of the spectrum apart."""
    response = np.ptp(means, axis=0).astype(float)
    chosen: list[int] = []
    for _ in range(count):
        place = int(response.argmax())
        if response[place] <= 0.0:
            break
        chosen.append(place)
        reach = max(1, len(response) // 12)
        response[max(0, place - reach) : place + reach + 1] = 0.0
    return chosen


def _fan(low: float, high: float) -> np.ndarray:
    """Points that close in on the lowest concentration, for an axis by factors."""
    return low + (high - low) * np.geomspace(1e-3, 1.0, 60)


def _span(model: GeodesicModel, concentrations: np.ndarray) -> Any:
    """Concentration → colour. A few are given colours that are told apart; many run from dark to light."""
    if len(concentrations) <= len(OKABE_ITO):
        return lambda c: OKABE_ITO[int(np.flatnonzero(concentrations == c)[0])]
    everything = np.unique(np.concatenate([model.gp.levels, concentrations]))
    colours = level_colours(len(everything))
    return lambda c: colours[int(np.searchsorted(everything, c))]


def _signal(dataset: Any) -> str:
    unit = dataset.units["signal"]
    return f"{dataset.signal} / {unit}" if unit else dataset.signal
