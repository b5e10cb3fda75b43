"""The figure of an answer: the unknown over the prediction, and what is left between them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from geonode.errors import InputError
from geonode.report.style import OKABE_ITO, new_figure, split_at_gaps
from geonode.report.svg import figure_svg
from geonode_runtime.figures import figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from geonode.calibration.causes.explained import Explained

MOST_ROWS = 12
"""Answers in one figure."""


def answer_figure(answers: Sequence[Explained], width: float = 10.0, height: float = 3.6) -> Figure:
    """A row for each answer: left unknown, prediction and the standards, right the residual.

    Args:
        answers: at most ``MOST_ROWS``. width: of the figure, height: of a row, in inches.

    Raises:
        InputError: none, or more.
    """
    if not 1 <= len(answers) <= MOST_ROWS:
        raise InputError(
            f"a figure holds 1 to {MOST_ROWS} answers, not {len(answers)}; give a name that ends in .html."
        )
    figure, axes = new_figure(width, height * len(answers), len(answers), 2)
    for answer, (left, right) in zip(answers, axes, strict=True):
        draw_overlay(left, answer)
        draw_residual(right, answer)
        left.set_title(f"{answer.name}: {title(answer)}", loc="left", fontsize=10)
    return figure


def title(answer: Explained) -> str:
    """Verdict and estimate, or verdict and cause."""
    unit = f" {answer.calibration.unit}" if answer.calibration.unit else ""
    if answer.matches:
        return f"{answer.verdict}, {answer.written(unit)}"
    found = answer.explanation
    return answer.verdict + (f" ({found.cause})" if found is not None and found.cause is not None else "")


def draw_overlay(axis: Axes, answer: Explained) -> None:
    """Unknown over prediction, the standards pale behind."""
    over, unit = answer.overlay, answer.calibration.unit
    standards = answer.calibration.measured.gp.level_means
    for row in standards:
        axis.plot(*split_at_gaps(over.wavelengths, row), color="0.85", linewidth=0.8, zorder=1)
    axis.plot([], [], color="0.85", linewidth=0.8, label="standards")
    x, middle = split_at_gaps(over.wavelengths, over.predicted)
    low, high = (split_at_gaps(over.wavelengths, over.predicted + s * over.half)[1] for s in (-1.0, 1.0))
    axis.fill_between(x, low, high, color=OKABE_ITO[0], alpha=0.2, linewidth=0)
    label = f"predicted at {answer.place(f' {unit}' if unit else '')} (80 % band)"
    axis.plot(x, middle, color=OKABE_ITO[0], linewidth=1.6, label=label)
    x, y = split_at_gaps(over.wavelengths, over.measured)
    axis.plot(x, y, color=OKABE_ITO[1], linewidth=1.4, linestyle=(0, (4, 2)), label="unknown")
    axis.set_xlabel(over.wavelength_label)
    axis.set_ylabel(over.signal)
    axis.legend(fontsize=8, frameon=False)


def draw_residual(axis: Axes, answer: Explained) -> None:
    """Measured less predicted, over the band in which a spectrum of the standards' kind lies; the worst stretches
    marked along the axis."""
    over, found = answer.overlay, answer.explanation
    x, half = split_at_gaps(over.wavelengths, over.half)
    axis.fill_between(x, -half, half, color=OKABE_ITO[0], alpha=0.2, linewidth=0, label="80 % band")
    axis.axhline(0.0, color="0.5", linewidth=0.8)
    axis.plot(*split_at_gaps(over.wavelengths, over.residual), color=OKABE_ITO[1], linewidth=1.2)
    axis.set_xlabel(over.wavelength_label)
    axis.set_ylabel("unknown − predicted")
    if found is not None:
        for stretch in found.stretches[:2]:
            axis.axvspan(stretch.low, stretch.high, 0.0, 0.025, color=OKABE_ITO[5], linewidth=0)
        axis.set_title(f"looks like: {found.cause}" if found.cause else "no simple cause", loc="left", fontsize=10)
    axis.legend(fontsize=8, frameon=False)


def in_words(answer: Explained) -> str:
    """What the figure shows, for a reader who does not see it."""
    over = answer.overlay
    size = np.abs(over.residual)
    k = int(np.nanargmax(size))
    unit = f" {answer.calibration.unit}" if answer.calibration.unit else ""
    return (
        f"The unknown over the spectrum predicted at {answer.place(unit)}, and the difference: largest at "
        f"{figure(over.wavelengths[k])}, {over.residual[k]:+.3g}; root mean square {np.sqrt(np.nanmean(size**2)):.3g}."
    )


def answer_svg(answer: Explained) -> str:
    """The figure as inline SVG with its words; nothing in it needs anything from outside."""
    words = in_words(answer)
    drawn = figure_svg(answer_figure([answer], 9.0, 3.4), words, f"answer-{answer.name}")
    return f"<figure>{drawn}<figcaption>{escape(words)}</figcaption></figure>"
