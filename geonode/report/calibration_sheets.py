"""Figures of a calibration, each with the numbers it shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch

from geonode.calibration.calibration import Calibration
from geonode.calibration.design.resolution import ambiguity_map, fisher_information, resolution
from geonode.report.concentration_axis import scale_concentration
from geonode.report.sheet import Sheet
from geonode.report.style import legend_below, legend_beside, level_colours, split_at_gaps

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Spectra = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Concentrations ``[C]`` → mean and standard deviation of the spectra, ``[C, W]`` each."""


def sheets(calibration: Calibration, spectra: Spectra | None = None, full_arc: np.ndarray | None = None) -> list[Sheet]:
    """All figures of the report.

    Args:
        calibration: fitted.
        spectra: what predicts spectra with their standard deviation, None for the calibration's own process.
        full_arc: ``[201, W]`` arc length of the full metric, scaled to [−1, 1], over :func:`arc_grid` where a neural
            flow has learned one.
    """
    return [
        _spectra(calibration, spectra),
        _predicted(calibration),
        _residuals(calibration),
        _resolution(calibration),
        _ambiguity(calibration),
        _metric(calibration, full_arc),
    ]


def arc_grid(calibration: Calibration) -> np.ndarray:
    """``[201]`` concentrations of the metric figure."""
    return np.linspace(*calibration.range, 201)


def axis_label(calibration: Calibration, what: str = "concentration") -> str:
    """``what`` with the unit of concentration."""
    return f"{what} / {calibration.unit}" if calibration.unit else what


def _spectra(calibration: Calibration, spectra: Spectra | None) -> Sheet:
    levels = calibration.levels
    between = 0.5 * (levels[1:] + levels[:-1])
    if spectra is None:
        prediction = calibration.gp.predict(between)
        mean, std = prediction.mean, prediction.std
    else:
        mean, std = spectra(between)
    columns = {"wavelength": calibration.wavelengths}
    columns |= {f"measured_{c:g}": row for c, row in zip(levels, calibration.gp.level_means, strict=True)}
    for c, m, s in zip(between, mean, std, strict=True):
        columns |= {f"mean_{c:g}": m, f"std_{c:g}": s}

    def draw(axis: Axes) -> None:
        colours = level_colours(2 * len(levels) - 1)
        for k, (c, row) in enumerate(zip(levels, calibration.gp.level_means, strict=True)):
            axis.plot(*split_at_gaps(calibration.wavelengths, row), color=colours[2 * k], linewidth=1.3, label=f"{c:g}")
        for k, (c, m, s) in enumerate(zip(between, mean, std, strict=True)):
            colour = colours[2 * k + 1]
            x, middle = split_at_gaps(calibration.wavelengths, m)
            axis.plot(x, middle, color=colour, linewidth=0.9, linestyle="--", label=f"{c:g}")
            low, high = (split_at_gaps(calibration.wavelengths, end)[1] for end in (m - s, m + s))
            axis.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
        axis.set_xlabel(calibration.wavelength_label)
        axis.set_ylabel(calibration.signal)
        title = f"{axis_label(calibration)}\n(solid: standard,\ndashed: predicted)"
        legend_beside(axis, title, 2 * len(levels) - 1)

    return Sheet(
        "spectra", "Standards (solid) and predictions between them (dashed, ± one standard deviation)", columns, draw
    )


def _predicted(calibration: Calibration) -> Sheet:
    held = calibration.held_out
    columns = {
        "concentration": held.concentration,
        "held_out_estimate": held.estimate,
        "set_80_percent_low": held.interval[:, 0],
        "set_80_percent_high": held.interval[:, 1],
        "open_low": np.isinf(held.interval[:, 0]).astype(float),
        "open_high": np.isinf(held.interval[:, 1]).astype(float),
        "covered_by_80_percent_set": np.where(calibration.checked, held.coverage <= 0.8, np.nan),
        **_of_posterior(calibration),
        "edge": held.edge.astype(float),
    }

    def draw(axis: Axes) -> None:
        low, high = calibration.range
        axis.plot([low, high], [low, high], color="0.6", linewidth=0.8)
        for edge, marker, label in ((False, "o", "interior level"), (True, "s", "lowest or highest (extrapolated)")):
            chosen = held.edge == edge
            x, y, ends = held.concentration[chosen], held.estimate[chosen], held.interval[chosen]
            # An open end is drawn as an arrow to the end of the search, not as a bar with a cap.
            shown = np.clip(ends, calibration.inverse.low, calibration.inverse.high)
            reach = np.maximum(np.stack([y - shown[:, 0], shown[:, 1] - y]), 0.0)
            dots = axis.errorbar(x, y, reach, fmt=marker, markersize=4, linewidth=0.8, label=label)
            colour = dots.lines[0].get_color()
            for column, caps in ((0, ("_", "v")), (1, ("_", "^"))):
                for is_open, cap in zip((False, True), caps, strict=True):
                    at = np.isinf(ends[:, column]) == is_open
                    axis.plot(x[at], shown[at, column], cap, color=colour, markersize=5, fillstyle="none")
        missed = calibration.checked & (held.coverage > 0.8)
        if missed.any():
            missed_label = "truth outside its 80 % set"
            axis.plot(held.concentration[missed], held.estimate[missed], "kx", markersize=7, label=missed_label)
        scale_concentration(axis, calibration.levels, "xy")
        axis.set_xlabel(axis_label(calibration, "true concentration"))
        axis.set_ylabel(axis_label(calibration, "predicted, its level left out"))
        if np.isinf(held.interval).any():
            axis.plot([], [], "^", color="0.4", markersize=5, fillstyle="none", label="no limit (end of the search)")
        legend_below(axis)

    return Sheet(
        "predicted",
        "Predicted against true concentration, each level left out (bars: 80 % sets of the profile, the curve's own)",
        columns,
        draw,
    )


def _of_posterior(calibration: Calibration) -> dict[str, np.ndarray]:
    """Where the posterior answers: whether its set of the level, left out, holds the truth (of replicates, the share);
    NaN of levels that it was not asked about."""
    if calibration.unfit_for_posterior or not calibration.checked:
        return {}
    own, covered = calibration.own_levels, np.full(len(calibration.levels), np.nan)
    covered[own.asked] = own.covered
    return {"covered_by_80_percent_set_of_posterior": covered[calibration.held_out.level]}


def _residuals(calibration: Calibration) -> Sheet:
    held = calibration.held_out
    columns = {"wavelength": calibration.wavelengths}
    columns |= {f"residual_{calibration.levels[i]:g}": r for i, r in zip(held.left_out, held.residual, strict=True)}

    def draw(axis: Axes) -> None:
        colours = level_colours(len(held.left_out))
        for k, (i, row) in enumerate(zip(held.left_out, held.residual, strict=True)):
            x, y = split_at_gaps(calibration.wavelengths, row)
            dashes = ("-", "--", "-.", ":")[k % 4]  # not by colour alone
            axis.plot(x, y, dashes, color=colours[k], linewidth=0.9, label=f"{calibration.levels[i]:g}")
        axis.axhline(0.0, color="0.6", linewidth=0.8)
        axis.set_xlabel(calibration.wavelength_label)
        axis.set_ylabel(f"{calibration.signal}, measured − predicted")
        legend_beside(axis, axis_label(calibration), len(held.left_out))

    return Sheet("residuals", "Residual spectra of the levels, each left out", columns, draw)


def _resolution(calibration: Calibration) -> Sheet:
    found = resolution(calibration)
    columns = {
        "concentration": found.concentrations,
        "sensitivity_rms": found.sensitivity,
        "fisher_information": found.information,
        "standard_deviation": found.standard_deviation,
        f"resolvable_difference_k{found.factor:g}": found.resolvable,
    }

    def draw(axis: Axes) -> None:
        axis.plot(found.concentrations, found.resolvable, label=f"resolvable difference, {found.factor:g} √2 / √G")
        axis.plot(
            found.concentrations, found.standard_deviation, "--", label="1/√G, one standard deviation of a result"
        )
        axis.plot(calibration.levels, np.zeros(len(calibration.levels)), "|", color="0.4", label="standards")
        axis.set_yscale("symlog", linthresh=max(float(np.nanmin(found.standard_deviation)), 1e-12))
        scale_concentration(axis, calibration.levels)
        axis.set_xlabel(axis_label(calibration))
        axis.set_ylabel(axis_label(calibration, "difference"))
        legend_below(axis)

    return Sheet("resolution", "What differences in concentration can be told", columns, draw)


def _ambiguity(calibration: Calibration) -> Sheet:
    found = ambiguity_map(calibration)
    first, second = np.meshgrid(found.concentrations, found.concentrations, indexing="ij")
    columns = {"first": first.ravel(), "second": second.ravel(), "distance": found.distance.ravel()}

    def draw(axis: Axes) -> None:
        from matplotlib.colors import LogNorm

        shown = np.clip(found.distance, 0.3, 100.0)
        c = found.concentrations
        mesh = axis.pcolormesh(c, c, shown, norm=LogNorm(0.3, 100.0), cmap="magma", shading="nearest", rasterized=True)
        axis.figure.colorbar(mesh, ax=axis, label="distance / standard deviations")
        for pair in found.pairs[:20]:
            axis.plot([pair.first, pair.second], [pair.second, pair.first], "co", markersize=4, fillstyle="none")
        axis.set_xlabel(axis_label(calibration))
        axis.set_ylabel(axis_label(calibration))
        scale_concentration(axis, calibration.levels, "xy")
        axis.set_box_aspect(1.0)

    return Sheet("ambiguity", "Mahalanobis distance between samples of any two concentrations", columns, draw)


def _metric(calibration: Calibration, full_arc: np.ndarray | None) -> Sheet:
    c = arc_grid(calibration)
    metric = calibration.gp.warp_metric(trainable=False)
    with torch.no_grad():
        points = torch.from_numpy(c)
        root, arc = metric(points).sqrt().numpy(), metric.arc_length(points).numpy()
    information = np.sqrt(fisher_information(calibration.inverse, c))
    counted = np.concatenate([[0.0], np.cumsum(0.5 * (information[1:] + information[:-1]) * np.diff(c))])
    columns = {
        "concentration": c,
        "sqrt_metric": root,
        "arc_length": arc,
        "fisher_arc_length_standard_deviations": counted,
    }
    if full_arc is not None:
        full_arc = full_arc + 1.0  # from [−1, 1] to 0 … 2, like the warp's
        columns["full_arc_length_mean"] = full_arc.mean(axis=1)
        columns["full_arc_length_min"] = full_arc.min(axis=1)
        columns["full_arc_length_max"] = full_arc.max(axis=1)

    def draw(axis: Axes) -> None:
        # Wide and pale below the others: lines that agree stay visible.
        axis.plot(c, arc, linewidth=4.0, alpha=0.4, label="arc length of the learned warp")
        if full_arc is not None:
            low, high = columns["full_arc_length_min"], columns["full_arc_length_max"]
            axis.plot(c, columns["full_arc_length_mean"], color="C2", label="full metric, mean over wavelengths")
            axis.fill_between(c, low, high, color="C2", alpha=0.2, linewidth=0, label="full metric, all wavelengths")
        if counted[-1] > 0.0:
            axis.plot(
                c,
                2.0 * counted / counted[-1],
                "--",
                color="C1",
                linewidth=1.2,
                label=f"Fisher information ({counted[-1]:.3g} σ in all)",
            )
        axis.plot(calibration.levels, np.zeros(len(calibration.levels)), "|", color="0.4", label="standards")
        axis.set_xlabel(axis_label(calibration))
        scale_concentration(axis, calibration.levels)
        axis.set_ylabel("arc length (2 over the calibrated range)")
        legend_below(axis)

    return Sheet("metric", "The learned metric: arc length against concentration", columns, draw)
