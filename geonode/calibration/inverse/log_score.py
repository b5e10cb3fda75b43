"""The log score of true concentrations, by which the scale τ of the curve's uncertainty is chosen."""

from __future__ import annotations

import numpy as np

from geonode.calibration.inverse.model import InverseModel
from geonode_runtime.sets import Distances


def log_densities(model: InverseModel, distances: Distances, concentrations: np.ndarray) -> np.ndarray:
    """ln of the posterior density at ``concentrations [U]``, one for each unknown, under a uniform prior, times the
    length of the searched range (so that knowing nothing scores 0): the log score by which τ is chosen."""
    minimum = distances.minimum
    scale = model.inflation(minimum)[:, None]
    power = -0.5 * (model.dof + 1.0)
    values = np.maximum(distances.total - minimum[:, None], 0.0)
    density = (1.0 + values / (model.dof * scale)) ** power
    total = (0.5 * (density[:, 1:] + density[:, :-1]) * np.diff(model.grid)).sum(1)
    at = np.array([np.interp(c, model.grid, row) for c, row in zip(concentrations, density, strict=True)])
    return np.log(np.maximum(at * (model.grid[-1] - model.grid[0]) / total, 1e-12))
