"""How far from the standards a spectrum may be asked for: what lies further is any number at all, and is refused."""

from __future__ import annotations

import numpy as np

from geonode_runtime.errors import InputError

FARTHEST = 3.0
"""Ranges of the standards beyond them; a warp may turn what lies further into any number at all."""

PREFIX = 1000.0
"""From one prefix of a unit to the next, as from mM to µM."""


def require_reach(concentrations: np.ndarray, low: float, high: float, unit: str) -> None:
    """Refuse concentrations ``[C]`` that lie more than `FARTHEST` ranges beyond the standards, ``low`` to ``high``.

    Raises:
        InputError: naming the first such concentration and, where another prefix of the unit fits, that one.
    """
    reach = FARTHEST * (high - low)
    outside = concentrations[(concentrations < low - reach) | (concentrations > high + reach)]
    if not len(outside):
        return
    asked = float(outside[0])
    other = next((f for f in (asked / PREFIX, asked / PREFIX**2) if low <= f <= high), None)
    if other is None:
        remedy = "ask nearer to them, or measure standards there"
    else:
        remedy = f"{other:g} lies within them: was another unit meant? Else measure standards there"
    standards = f"{low:g} … {high:g} {unit}".rstrip()
    raise InputError(
        f"Concentration {asked:g} lies more than three ranges beyond the standards ({standards}), where nothing is "
        f"known of it; {remedy}."
    )
