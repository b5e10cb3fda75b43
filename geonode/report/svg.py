"""Sheets as inline SVG in a page."""

from __future__ import annotations

import base64
import io
import re
from html import escape
from typing import TYPE_CHECKING, Any

from geonode.report.sheet import Sheet
from geonode.report.style import OKABE_ITO, new_figure, print_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def svg(sheet: Sheet) -> str:
    """The sheet as an inline SVG element, small enough that its letters stay readable on a phone."""
    from matplotlib import rc_context
    from matplotlib.rcsetup import cycler

    # Text stays text; a salt of its own keeps the ids of several SVGs in one page apart.
    style: dict[str, Any] = {"svg.fonttype": "none", "svg.hashsalt": sheet.name, "font.size": 9}
    style |= {"path.simplify_threshold": 0.5}
    with rc_context({**style, "axes.prop_cycle": cycler(color=OKABE_ITO)}):  # pyright: ignore[reportArgumentType]
        figure, axes = new_figure(4.7, 4.0)
        sheet.draw(axes[0, 0])
        _legend_below(axes[0, 0])
        buffer = io.StringIO()
        nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
        print_figure(figure, buffer, "svg", metadata=nothing)
    text = buffer.getvalue()
    return _own_ids(text[text.index("<svg") :], sheet.name)


def figure_svg(figure: Figure, words: str, name: str) -> str:
    """A drawn figure as an inline SVG element that says ``words``; its ids begin with ``name``."""
    from matplotlib import rc_context

    style: dict[str, Any] = {"svg.fonttype": "none", "svg.hashsalt": name}
    with rc_context(style):  # pyright: ignore[reportArgumentType]
        buffer = io.StringIO()
        nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
        print_figure(figure, buffer, "svg", metadata=nothing)
    text = buffer.getvalue()
    text = _own_ids(text[text.index("<svg") :], "".join(c if c.isalnum() else "-" for c in name))
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(words)}" ', 1)


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
