"""A label that the learned posterior finds improbable: its level left out, its spectrum is another concentration's.

What a single wrong standard moves is mostly within what the others' curve has room for, so that nothing contradicts it
(:mod:`~geonode.calibration.assessment.wrong_label`). The posterior has learned how responses go on between standards,
and gives the label a density: ln of the highest density ÷ that at the label is the surprise of a level. Standards that
are known to be uncertain are no surprise within that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geonode_runtime.figures import figure
from geonode_runtime.wording import either

if TYPE_CHECKING:
    from geonode.calibration.calibration import Calibration

UNLIKELY = 5.5
"""Surprise from which a level between others is told: of 488 genuine simulated assays of families left out of training
with nothing else to be said of them six have it, and of 258 whose one label is 20 % off, which nothing else finds, 112,
the right level each time (docs/calibration.md)."""
DECLARED = 2.0
"""Standard uncertainties of the label within which another concentration is none."""


@dataclass(frozen=True)
class UnlikelyLabel:
    """The most surprising level.

    Attributes:
        level, implied: its label, and what the others make of its spectrum, user units. surprise: see the module.
    """

    level: float
    implied: float
    surprise: float

    def sentence(self, unit: str = "") -> str:
        """What to tell the analyst."""
        unit = f" {unit}" if unit else ""
        declared = either("geonode fit --standard-uncertainty", "concentration_std")
        return (
            f"with {self.level:g}{unit} left out the others make its spectrum that of {figure(self.implied, unit)}, "
            f"and its own label {_times(self.surprise)} times less probable: it may be prepared or labelled wrong, and "
            "then results beside it are off by as much and their intervals too short; prepare it anew, or declare how "
            f"well the standards are known ({declared})"
        )


def unlikely_label(calibration: Calibration) -> UnlikelyLabel | None:
    """The level between others that surprises most, if by more than `UNLIKELY`; None where none does, or no posterior
    answers."""
    if calibration.unfit_for_posterior:
        return None
    own, levels, declared = calibration.own_levels, calibration.levels, calibration.concentration_std
    best = None
    for i, implied, surprise in zip(own.asked, own.implied, own.surprise, strict=True):
        if not 0 < i < len(levels) - 1 or not levels[i - 1] < implied < levels[i + 1]:
            continue  # further away it is the other branch of a response that folds, as a rule
        known = declared is not None and abs(implied - levels[i]) <= DECLARED * declared[i]
        if not known and surprise > (UNLIKELY if best is None else best.surprise):
            best = UnlikelyLabel(float(levels[i]), float(implied), float(surprise))
    return best


def _times(surprise: float) -> str:
    """e to the power of it, one digit, as nothing more is known of it."""
    if surprise > np.log(1e6):
        return "more than a million"
    size = 10.0 ** int(surprise / np.log(10.0))
    return f"{int(np.exp(surprise) / size) * size:.0f}"
