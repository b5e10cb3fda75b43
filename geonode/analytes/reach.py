"""How far from their standards several analytes may be asked for, and analytes that were given in another order."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np

from geonode.errors import InputError
from geonode_runtime.given_numbers import as_numbers
from geonode_runtime.reach import FARTHEST


def places(concentrations: Any) -> np.ndarray:
    """Concentrations of several analytes as they were given, ``[C, D]`` or those of one place, as float64 ``[C, D]``.

    Raises:
        InputError: what is no number.
    """
    return np.atleast_2d(as_numbers(concentrations, "concentrations"))


def require_within_reach(concentrations: np.ndarray, levels: np.ndarray) -> None:
    """Refuse concentrations ``[C, D]`` that lie more than `FARTHEST` ranges beyond ``levels [n, D]``.

    Raises:
        InputError: another number of analytes.
        InputError: naming the analyte, its range and, where another order of the analytes fits, that order.
    """
    if concentrations.ndim != 2 or concentrations.shape[1] != levels.shape[1]:
        raise InputError(f"concentrations must be [C, {levels.shape[1]}], one column per analyte.")
    low, high = levels.min(axis=0), levels.max(axis=0)
    reach = FARTHEST * (high - low)
    beyond = (concentrations < low - reach) | (concentrations > high + reach)
    if not beyond.any():
        return
    row, analyte = np.argwhere(beyond)[0]
    asked = concentrations[row]
    said = (
        f"analyte {analyte + 1} was asked at {asked[analyte]:g}, and its standards run from {low[analyte]:g} to "
        f"{high[analyte]:g}: "
    )
    for order in permutations(range(len(low))):
        moved = asked[list(order)]
        if ((moved >= low) & (moved <= high)).all():
            raise InputError(f"{said}the analytes seem to be swapped; give them in the order of the standards.")
    raise InputError(f"{said}nothing is known so far from them; ask within their range, or measure standards there.")
