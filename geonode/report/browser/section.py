"""The section of the report that takes an unknown's file, and the scripts behind it."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from geonode.errors import InputError
from geonode.report.browser.data import answer_data

if TYPE_CHECKING:
    from geonode.model import GeodesicModel

ANSWERING = (
    "numbers.js", "text.js", "unknown.js", "sets.js", "verdicts.js", "shapes.js", "pls.js", "posterior_cells.js",
    "posterior_network.js", "posterior_density.js", "posterior_ends.js", "posterior_twins.js", "posterior.js",
    "causes.js", "cause_fit.js", "explanation.js", "answers.js",
)  # fmt: skip
"""What computes an answer, in the order in which one needs the other; none of it touches the page."""
DRAWING = ("overlay.js", "drop_zone.js")

_FORM = """
<div id="drop" class="drop"><p><label for="unknown-file">Drop the file of an unknown here, or choose it:</label></p>
<p><input type="file" id="unknown-file" multiple></p>
<p class="options">
<label><input type="checkbox" id="unknown-replicates"> all spectra are replicates of one sample</label>
<label>Dilution factor <input type="number" id="unknown-dilution" value="1" min="0" step="any"></label>
<label>its standard uncertainty <input type="number" id="unknown-dilution-std" value="0" min="0" step="any"></label>
<label>Interval <select id="unknown-level"><option value="0.5">50 %</option><option value="0.8" selected>80 %</option>
<option value="0.9">90 %</option><option value="0.95">95 %</option></select></label></p></div>
<noscript><p>Answers need JavaScript; without it, use <code>geonode quantify</code>.</p></noscript>
<div id="answers" role="status" aria-label="Answers" aria-live="polite"></div>
"""
_SAID = (
    "CSV or text with a column of wavelengths and one of signal for each spectrum, as measured. This page itself reads "
    "the file, which stays on this machine. The answer is that of <code>geonode quantify</code>, which also takes a "
    "matrix blank and the formats of instruments."
)


def answer_section(model: GeodesicModel) -> str:
    """HTML of the drop zone with the calibration behind it; where a preprocessing cannot be written as plain numbers,
    the sentence that says so, and what to use instead."""
    try:
        data = answer_data(model)
    except InputError:
        return (
            f"<p>This page cannot quantify: the preprocessing ({escape(str(model.preprocessing))}) has a step that "
            "only geonode does. Use <code>geonode quantify</code>.</p>"
        )
    # "<" is written as an escape, so that no text in the data can end the element
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")
    return f'<p>{_SAID}</p>{_FORM}<script type="application/json" id="answer-data">{text}</script>'


def answer_scripts() -> str:
    """All scripts of the section, to be run after the page is there."""
    return "".join(script(name) for name in (*ANSWERING, *DRAWING))


def answer_style() -> str:
    """CSS of the section."""
    return script("drop_zone.css")


def script(name: str) -> str:
    """The text of one file of this folder."""
    return files("geonode.report.browser").joinpath(name).read_text(encoding="utf-8")
