"""The spectrum at any concentration: predictions on a grid, as compact JSON, and the figure with its slider."""

from __future__ import annotations

import json
import math
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from geonode.data.labelled import half_width
from geonode.report.style import gap_positions
from geonode.report.tables import number

if TYPE_CHECKING:
    from geonode.model import GeodesicModel

POINTS = 100
"""Concentrations of the grid, the standards and the middles between them included; at least 40 besides those."""
LABEL = 0.055
"""Share of the slider's length that a tick's label takes."""
MOST_WAVELENGTHS = 1200
"""A page shows no more than this; of more, every second, third, …, which is said."""


def slider_data(model: GeodesicModel) -> dict[str, Any]:
    """What the figure shows: spectra, half-widths of the 80 % bands, standards; JSON's own types.

    Values are rounded to the fifth decimal of the span of the standards' spectra, far below what a screen resolves.
    The band is the central 80 % of the prediction's Student t, whose coverage of held-out standards is measured; with
    fewer than four standards no band is claimed and ``half`` is None.
    """
    gp, calibration = model.gp, model.calibration
    c = _grid(model)
    mean, std = model.predict_spectra(c)
    half = half_width(std)
    low, high = model.calibrated_range
    span = float(np.ptp(gp.level_means)) or 1.0
    places = max(0, 5 - math.floor(math.log10(span)))
    step = -(-len(model.dataset.wavelengths) // MOST_WAVELENGTHS)
    wavelengths = model.dataset.wavelengths[::step]

    def rows(values: np.ndarray, digits: int = places) -> list[list[float]]:
        return [[round(v, digits) for v in row] for row in values[:, ::step].tolist()]

    return {
        "concentrations": c.tolist(),
        "extrapolated": [bool(v) for v in (c < low) | (c > high)],
        "levels": gp.levels.tolist(),
        "wavelengths": [round(v, 6) for v in wavelengths.tolist()],
        "every": step,
        "pieces": _pieces(wavelengths),
        "mean": rows(mean.values),
        "half": rows(half, places - 1) if calibration.checked else None,
        "standards": rows(gp.level_means),
        "places": places,
        "unit": calibration.unit,
        "xLabel": calibration.wavelength_label,
        "yLabel": calibration.signal,
    }


def _grid(model: GeodesicModel) -> np.ndarray:
    """Half evenly spread over the served range, half along the learned arc length, where a response that is over after
    the first standard has its points; and the standards and the middles between them exactly."""
    levels = model.gp.levels
    low, high = model.served_range
    exact = np.concatenate([levels, 0.5 * (levels[1:] + levels[:-1])])
    count = max(20, (POINTS - len(exact)) // 2)
    even = np.linspace(low, high, count)
    along = np.interp(np.linspace(0.0, 1.0, count), *_arc(model))
    spread = np.concatenate([even, along])
    # a point of the spread that all but falls on a standard would be a step that shows nothing
    near = np.abs(spread[:, None] - exact).min(axis=1) < 1e-3 * (levels[-1] - levels[0])
    return np.unique(np.concatenate([exact, spread[~near]]))


def _arc(model: GeodesicModel) -> tuple[np.ndarray, np.ndarray]:
    """Share of the arc length of the calibrated range, 0 … 1, and the concentrations where it is reached."""
    import torch

    low, high = model.calibrated_range
    c = np.unique(np.concatenate([np.linspace(low, high, 400), low + (high - low) * np.geomspace(1e-5, 1.0, 400)]))
    with torch.no_grad():
        arc = model.gp.warp_metric(trainable=False).arc_length(torch.from_numpy(c)).numpy()
    return (arc - arc[0]) / (arc[-1] - arc[0]), c


def _pieces(wavelengths: np.ndarray) -> list[list[int]]:
    """First and last position of each stretch without a gap, as the other figures cut them."""
    ends = [0, *gap_positions(wavelengths).tolist(), len(wavelengths)]
    return [[a, b - 1] for a, b in pairwise(ends)]


def slider_section(data: dict[str, Any], coverage: str) -> str:
    """HTML of the figure; ``coverage`` says how often the bands held what was left out."""
    start = data["concentrations"].index(0.5 * (data["levels"][0] + data["levels"][1]))
    # "<" is written as an escape, so that no text in the data can end the element
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")
    low, high = data["levels"][0], data["levels"][-1]
    unit = f" {data['unit']}" if data["unit"] else ""
    alt = (
        f"Spectra of {len(data['levels'])} standards from {low:g} to {high:g}{unit}, and the spectrum predicted at the "
        f"concentration that the slider below is at{', with its 80 % band' if data['half'] else ''}. What is shown is "
        "also said in words below."
    )
    thinned = f" Every {data['every']}th wavelength is shown." if data["every"] > 1 else ""
    marks = (
        ("", "prediction", "stroke:#0072b2;stroke-width:2.2", "predicted"),
        ("", "band", "stroke:#56b4e9;stroke-opacity:.5;stroke-width:9", "80 % band of one further spectrum"),
        (' id="key-below"', "below", "", 'standard <span id="label-below"></span>'),
        (' id="key-above"', "above", "", 'standard <span id="label-above"></span>'),
        ("", "standard", "stroke:#b8c0c8", "other standards"),
    )
    if not data["half"]:
        marks = tuple(mark for mark in marks if mark[1] != "band")
    key = "".join(
        f'<li{where}><svg aria-hidden="true" viewBox="0 0 28 10">'
        f'<path class="{name}" style="{style}" d="M0 5H28"/></svg>{words}</li>'
        for where, name, style, words in marks
    )
    return (
        f'<figure><svg id="spectrum" role="img" aria-label="{escape(alt)}"></svg><ul class="key">{key}</ul>'
        '<div class="control"><label for="concentration">Concentration</label>'
        '<div class="track"><input type="range" id="concentration" min="0" '
        f'max="{len(data["concentrations"]) - 1}" step="1" value="{start}" aria-describedby="slider-marks">'
        f"{_marks(data)}</div>"
        f'<output id="shown-concentration" for="concentration"></output></div>{_described(data)}'
        '<p id="shown-state" aria-live="polite"></p>'
        "<noscript><p>The slider needs JavaScript; the spectra of the standards and between them are below.</p>"
        f"</noscript><figcaption>{escape(coverage)}{thinned}</figcaption></figure>"
        f'<script type="application/json" id="spectra-data">{text}</script>'
    )


def _marks(data: dict[str, Any]) -> str:
    """Ticks below the slider at its ends and at the standards, with their concentrations."""
    c, levels = data["concentrations"], data["levels"]
    ends = {0, len(c) - 1}
    at = sorted(ends | {c.index(level) for level in levels})
    ticks, free = [], -1.0
    for k in at:
        share = k / (len(c) - 1)
        words = number(c[k]) if k in ends and c[k] not in levels else f"{c[k]:g}"
        room = share >= free and (share <= 1.0 - LABEL or k == len(c) - 1)
        kind = "standard" if c[k] in levels else "end"
        ticks.append(f'<span class="{kind}" style="--at:{share:.4f}">{words if room else ""}</span>')
        free = share + LABEL if room else free
    return f'<div class="marks" aria-hidden="true">{"".join(ticks)}</div>'


def _described(data: dict[str, Any]) -> str:
    """The ends and the standards in a sentence that the slider is described by."""
    c, unit = data["concentrations"], f" {data['unit']}" if data["unit"] else ""
    listed = ", ".join(f"{level:g}" for level in data["levels"])
    said = f"The slider goes from {number(c[0])} to {number(c[-1], unit)}. Standards at {listed}{unit}."
    return f'<p id="slider-marks" class="for-readers">{escape(said)}</p>'
