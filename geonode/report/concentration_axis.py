"""The axis of concentration: logarithmic where the standards are spaced so, with a linear part that holds a blank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geonode.report.tables import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_RATIO = 15.0
"""Standards whose highest is fewer times the lowest (that is not zero) are drawn on an even axis."""


def log_spaced(levels: np.ndarray) -> bool:
    """Whether levels ``[n]``, ascending, are spaced by factors rather than by steps: none negative, three or more above
    zero, over a factor of ``LEAST_RATIO`` or more, and their ratios more alike than their differences."""
    positive = levels[levels > 0.0]
    if len(positive) < 3 or (levels < 0.0).any() or positive[-1] < LEAST_RATIO * positive[0]:
        return False
    ratios, steps = np.diff(np.log(positive)), np.diff(positive)
    return bool(ratios.std() / ratios.mean() < steps.std() / steps.mean())


def scale_concentration(axis: Axes, levels: np.ndarray, which: str = "x") -> None:
    """Make the axes named in ``which`` ("x", "y", "xy") logarithmic, with ticks at standards, where `log_spaced`."""
    if not log_spaced(levels):
        return
    positive = levels[levels > 0.0]
    ticks = [float(levels[0])] if levels[0] == 0.0 else []
    for level in positive:  # standards that are further apart than a quarter of a decade
        if not ticks or ticks[-1] == 0.0 or level >= 1.7 * ticks[-1]:
            ticks.append(float(level))
    for name in which:
        scale, set_ticks, set_limits = (
            (axis.set_xscale, axis.set_xticks, axis.set_xlim)
            if name == "x"
            else (axis.set_yscale, axis.set_yticks, axis.set_ylim)
        )
        if levels[0] == 0.0:
            scale("symlog", linthresh=float(positive[0]), linscale=0.4)
            set_limits(-0.15 * float(positive[0]), None)
        else:
            scale("log")
        set_ticks(ticks, [number(tick) for tick in ticks])
        set_ticks([], minor=True)
