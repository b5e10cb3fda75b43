"""Figures. Every function writes a file and returns its path; matplotlib is imported on first use, without pyplot."""

from geonode.validation.figures import level_colours, new_figure, plot_evaluation, save_figure

__all__ = ["level_colours", "new_figure", "plot_evaluation", "save_figure"]
