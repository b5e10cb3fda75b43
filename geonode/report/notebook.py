"""What a notebook shows of a model: its conclusion, its three lines and its figure."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from geonode.report.predictions_figure import between, predictions_figure
from geonode.report.svg import figure_svg

if TYPE_CHECKING:
    from geonode.model import GeodesicModel


def model_text(model: GeodesicModel) -> str:
    """The model in a line."""
    unit = f" {model.dataset.units['concentration']}".rstrip()
    low, high = model.calibrated_range
    spectra, wavelengths = model.dataset.shape
    kind = "Gaussian process" if model.ode is None else f"neural flow of {model.config.members} members"
    return (
        f"<{type(model).__name__}: {kind}, {len(model.gp.levels)} levels {low:g} … {high:g}{unit}, {spectra} spectra × "
        f"{wavelengths} wavelengths>"
    )


def model_html(model: GeodesicModel) -> str:
    """The model as a part of a page."""
    figure = predictions_figure(model, *model.predict_spectra(between(model.gp.levels)))
    said = "".join(f"<li>{escape(line[0].upper() + line[1:])}.</li>" for line in model.conclusion.lines())
    words = f"Standards, and spectra predicted between them, with their response. {model.conclusion.headline()}"
    return (
        f"<div><p><code>{escape(model_text(model))}</code></p><p><strong>{escape(model.conclusion.headline())}</strong></p>"
        f"<ul>{said}</ul><figure>{figure_svg(figure, words, 'model')}</figure></div>"
    )
