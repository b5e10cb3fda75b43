"""What a notebook shows of standards: the data set in a line, its spectra drawn, its notes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from geonode.data.checks import format_level

if TYPE_CHECKING:
    from geonode.data.dataset import SpectralDataset

_WIDTH, _HEIGHT = 480, 160
_MOST_POINTS = 240
_DARK, _LIGHT = np.array([0x2B, 0x2D, 0x7C]), np.array([0xE0, 0x9F, 0x1F])
"""Colours of the lowest and the highest level; those between are mixed, and a legend stands beside."""


def dataset_text(data: SpectralDataset) -> str:
    """The data set in a line."""
    samples, wavelengths = data.shape
    levels, axis, n = data.levels, data.wavelengths, len(data.levels)
    unit = f" {data.concentration_unit}" if data.concentration_unit else ""
    span = f"{axis[0]:g}–{axis[-1]:g} {data.wavelength_unit or 'of no stated unit'}"
    low, high = (format_level(level) for level in levels[[0, -1]])
    masked = int(data.mask.sum())
    parts = [
        f"{samples} spectra × {wavelengths} wavelengths ({span})",
        f"{n} level{'s' if n != 1 else ''} {low} … {high}{unit}",
        data.signal + (f" [{data.signal_unit}]" if data.signal_unit else ""),
        *([f"{masked} masked"] if masked else []),
        *([f"from {data.source}"] if data.source else []),
    ]
    return f"<{type(data).__name__}: {', '.join(parts)}>"


def dataset_html(data: SpectralDataset) -> str:
    """The data set as a part of a page."""
    unit = f" {data.concentration_unit}" if data.concentration_unit else ""
    names = [f"{format_level(level)}{unit}" for level in data.levels]
    drawn = spectra_svg(data.wavelengths, data.level_means(), names)
    return standards_html(dataset_text(data), drawn, data.notes)


def standards_html(line: str, drawn: str, said: Sequence[str]) -> str:
    """Standards as a part of a page: a ``line``, a drawing, and sentences."""
    notes = "".join(f"<li>{escape(one)}</li>" for one in said)
    return f"<div><p><code>{escape(line)}</code></p>{drawn}{f'<ul>{notes}</ul>' if notes else ''}</div>"


def spectra_svg(wavelengths: np.ndarray, spectra: np.ndarray, names: Sequence[str]) -> str:
    """Mean spectra of levels ``[n, W]`` as inline SVG that needs nothing else, dark to light, with a legend."""
    step = max(1, len(wavelengths) // _MOST_POINTS)
    x, rows = wavelengths[::step], spectra[:, ::step]
    low, high = float(np.nanmin(rows)), float(np.nanmax(rows))
    across = _WIDTH * (x - x[0]) / ((x[-1] - x[0]) or 1.0)
    lines, legend = [], []
    for k, (row, name) in enumerate(zip(rows, names, strict=True)):
        mixed = _DARK + (_LIGHT - _DARK) * k / max(len(rows) - 1, 1)
        colour = "#" + "".join(f"{round(part):02x}" for part in mixed)
        up = _HEIGHT * (1.0 - (row - low) / ((high - low) or 1.0))
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, up, strict=True) if np.isfinite(b))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
        legend.append(f'<span style="color:{colour}">■</span> {escape(name)}')
    words = f"Mean spectra of {len(rows)} levels over {x[0]:g} to {x[-1]:g}, between {low:.3g} and {high:.3g}."
    return (
        f'<svg role="img" aria-label="{escape(words)}" viewBox="-2 -2 {_WIDTH + 4} {_HEIGHT + 4}" '
        f'width="{_WIDTH}" style="max-width:100%">{"".join(lines)}</svg><p>{" ".join(legend)}</p>'
    )
