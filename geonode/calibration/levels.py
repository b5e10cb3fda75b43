"""Levels of standards: how many there may be, and how sure each of their concentrations is."""

from __future__ import annotations

from typing import Any

import numpy as np

from geonode.errors import InputError
from geonode_runtime.given_numbers import as_numbers

MAX_LEVELS = 48
"""More distinct concentrations than this are merged into so many groups of neighbours."""


def merged_levels(concentrations: np.ndarray, notes: list[str]) -> np.ndarray:
    """Neighbouring concentrations pooled to their mean where there are more than MAX_LEVELS distinct ones."""
    levels, index = np.unique(concentrations, return_inverse=True)
    if len(levels) <= MAX_LEVELS:
        return concentrations
    group = np.minimum(np.arange(len(levels)) * MAX_LEVELS // len(levels), MAX_LEVELS - 1)
    pooled = np.array([levels[group == g].mean() for g in range(MAX_LEVELS)])
    notes.append(f"{len(levels)} distinct concentrations were merged into {MAX_LEVELS} groups of neighbours")
    return pooled[group][index]


def level_std(value: Any, count: int) -> np.ndarray | None:
    """Standard uncertainty of each of ``count`` levels ``[n]`` from one number or one per level; None for none at all.

    Raises:
        InputError: another count, or values that are negative or not finite.
    """
    if value is None:
        return None
    std = as_numbers(value, "concentration_std")
    if std.ndim == 0:
        std = np.full(count, float(std))
    if std.shape != (count,) or not np.isfinite(std).all() or (std < 0.0).any():
        raise InputError(
            f"concentration_std must be one number or {count} numbers (one per level), finite and not negative."
        )
    return std if (std > 0.0).any() else None
