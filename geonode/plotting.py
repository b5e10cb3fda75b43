"""Figures. Every function writes a file and returns its path; matplotlib is imported on first use, without pyplot."""

from __future__ import annotations

from geonode.report.answer import plot_answers
from geonode.report.evaluation_figure import plot_evaluation
from geonode.report.predictions_figure import plot_predictions, predictions_figure
from geonode.report.style import level_colours, new_figure, save_figure

__all__ = [
    "level_colours",
    "new_figure",
    "plot_answers",
    "plot_evaluation",
    "plot_predictions",
    "predictions_figure",
    "save_figure",
]
