"""The sheets of a calibration as inline SVG, each with the words that a reader who does not see it needs."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from geonode.report.calibration_sheets import Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
"""Colours that are told apart with any colour vision (Okabe & Ito 2008)."""


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
        axis.legend(fontsize=7, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)

    return Sheet("training", "Training of the neural flow: loss by epoch", columns, draw)


def svg(sheet: Sheet) -> str:
    """The sheet as an inline SVG element, small enough that its letters stay readable on a phone."""
    from matplotlib import rc_context
    from matplotlib.rcsetup import cycler

    from geonode.report.style import new_figure

    # Text stays text; a salt of its own keeps the ids of several SVGs in one page apart.
    style: dict[str, Any] = {"svg.fonttype": "none", "svg.hashsalt": sheet.name, "font.size": 9}
    style |= {"path.simplify_threshold": 0.5}
    with rc_context({**style, "axes.prop_cycle": cycler(color=OKABE_ITO)}):  # pyright: ignore[reportArgumentType]
        figure, axes = new_figure(4.7, 4.0)
        sheet.draw(axes[0, 0])
        _legend_below(axes[0, 0])
        buffer = io.StringIO()
        nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
        figure.savefig(buffer, format="svg", metadata=nothing)  # pyright: ignore[reportArgumentType]
    text = buffer.getvalue()
    return _own_ids(text[text.index("<svg") :], sheet.name)


def _own_ids(text: str, name: str) -> str:
    """Ids that nothing refers to are left out, the others begin with the sheet's name: ids of one page differ."""
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    text = re.sub(r' id="([^"]+)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", text)
    return re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", text)


def _legend_below(axis: Axes) -> None:
    """The legend below and in larger letters: the page has less width than a sheet of paper."""
    legend = axis.get_legend()
    if legend is None:
        return
    handles, labels = axis.get_legend_handles_labels()
    columns = max(1, min(6, 64 // (max(len(label) for label in labels) + 6)))
    title = legend.get_title().get_text().replace("\n", " ")
    style = {"fontsize": 8.5, "title_fontsize": 8.5, "frameon": False, "ncols": columns, "columnspacing": 1.0}
    axis.legend(handles, labels, title=title, loc="upper center", bbox_to_anchor=(0.5, -0.17), **style)


def figure_html(sheet: Sheet, alt: str) -> str:
    """A figure with its caption and its numbers as a file to keep; ``alt`` is plain text."""
    drawn = svg(sheet).replace("<svg ", f'<svg role="img" aria-label="{escape(alt)}" ', 1)
    rows = base64.b64encode(sheet.csv().encode()).decode()
    link = f'<a download="{sheet.name}.csv" href="data:text/csv;base64,{rows}">numbers as CSV</a>'
    return (
        f'<figure id="figure-{sheet.name}">{drawn}<figcaption>{escape(alt)} '
        f'<span class="downloads">{link}</span></figcaption></figure>'
    )


def describe(sheet: Sheet, unit: str) -> str:
    """What the figure shows, in a sentence with its numbers."""
    columns, unit = sheet.columns, f" {unit}" if unit else ""
    words = {
        "spectra": _spectra, "predicted": _predicted, "residuals": _residuals, "resolution": _resolution,
        "ambiguity": _ambiguity, "metric": _metric, "training": _training,
    }  # fmt: skip
    return f"{sheet.title}. {words[sheet.name](columns, unit)}"


def _spectra(columns: dict[str, np.ndarray], unit: str) -> str:
    w = columns["wavelength"]
    return f"{len(columns) - 1} columns of numbers over {len(w)} wavelengths from {w[0]:g} to {w[-1]:g}."


def _predicted(columns: dict[str, np.ndarray], unit: str) -> str:
    true, found = columns["concentration"], columns["held_out_estimate"]
    worst = int(np.abs(found - true).argmax())
    covered = columns["covered_by_80_percent_set"]
    said = "no set is claimed from so few standards"
    if not np.isnan(covered).any():
        said = f"{int(covered.sum())} of {len(true)} lie inside their 80 % set"
    return (
        f"{len(true)} left-out spectra; root mean square error {np.sqrt(np.mean((found - true) ** 2)):.3g}{unit}, the "
        f"largest at {true[worst]:g}{unit}, where {found[worst]:.4g}{unit} is found; {said}."
    )


def _residuals(columns: dict[str, np.ndarray], unit: str) -> str:
    rms = {n.removeprefix("residual_"): float(np.sqrt(np.mean(v**2))) for n, v in columns.items() if n != "wavelength"}
    worst = max(rms, key=lambda n: rms[n])
    return f"Root mean square from {min(rms.values()):.2g} to {rms[worst]:.2g}, largest for the level {worst}{unit}."


def _resolution(columns: dict[str, np.ndarray], unit: str) -> str:
    c = columns["concentration"]
    smallest = next(v for n, v in columns.items() if n.startswith("resolvable"))
    usable = np.isfinite(smallest)
    if not usable.any():
        return "Nothing can be told anywhere."
    best, worst = np.nanargmin(np.where(usable, smallest, np.nan)), np.nanargmax(np.where(usable, smallest, np.nan))
    return (
        f"The smallest difference that can be told is {smallest[best]:.3g}{unit} at {c[best]:.4g}{unit} and "
        f"{smallest[worst]:.3g}{unit} at {c[worst]:.4g}{unit}."
    )


def _ambiguity(columns: dict[str, np.ndarray], unit: str) -> str:
    first, second, distance = columns["first"], columns["second"], columns["distance"]
    far = np.abs(first - second) >= 0.1 * np.ptp(first)
    k = int(np.flatnonzero(far)[distance[far].argmin()])
    return (
        "A map, dark where two concentrations look alike. Of pairs at least a tenth of the range apart, "
        f"{first[k]:.4g} and {second[k]:.4g}{unit} are nearest: {distance[k]:.2g} standard deviations."
    )


def _metric(columns: dict[str, np.ndarray], unit: str) -> str:
    c, arc = columns["concentration"], columns["arc_length"]
    half = float(np.interp(0.5 * (arc[0] + arc[-1]), arc, c))
    told = columns["fisher_arc_length_standard_deviations"][-1]
    return f"Half of the arc length lies below {half:.4g}{unit}; the range is {told:.3g} standard deviations long."


def _training(columns: dict[str, np.ndarray], unit: str) -> str:
    name = "total" if "total" in columns else next(n for n in columns if n != "epoch")
    values = columns[name]
    return f"{name}: {values[0]:.2g} in the first and {values[-1]:.2g} in the last of {len(values)} epochs."
