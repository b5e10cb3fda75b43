"""Four or five standards: too few to leave two of them out, enough to see three on a straight line and one beside it.

Of so few levels any smooth curve passes through all, so only two things speak against one of them:

* *beside the line*: the others lie on one straight line of the space of wavelengths, at places proportional to their
  concentrations (Beer and Lambert's law, nothing else gives that of three levels or four that are not all but two
  places), and this one lies on the same line at another place. An interior level may be anywhere; the highest, which
  saturation moves too, only where it is the place of half or twice, a fifth or five times, a tenth or ten times what is
  written.
* *one spectrum twice*: two neighbours differ by no more than noise, while every other pair differs by far more than
  both that and what a smooth curve has room for. Which of the two is wrong is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geonode.calibration.assessment.straight_line import against_line
from geonode_runtime.figures import figure

MOST_LEVELS = 5
"""Of more levels, another label tells more (:mod:`~geonode.calibration.assessment.wrong_label`)."""
STRAIGHT = 0.02
"""The others lie within this share of their spread of a straight line, …"""
OFF = 0.1
"""… and this one so far from its place on it, as a share of the whole way, with the rest of it beside the line no more
than a third of that."""
SLIPS = (0.1, 0.2, 0.5, 2.0, 5.0, 10.0)
"""Factors of a slip of dilution or of a label, …"""
SLIP = 0.06
"""… met within this share."""
SAME = 2.5
"""Two spectra differ by noise up to this many times its standard deviation (root mean square over wavelengths), …"""
APART = 12.0
"""… and other neighbours are this many times further apart."""


@dataclass(frozen=True)
class Slip:
    """A standard of four or five that contradicts the others.

    Attributes:
        level: what it is called, user units. implied: what the others call it. ratio: how much further from its own
            place than the others from theirs. twin: the other level that has the same spectrum, or None.
    """

    level: float
    implied: float
    ratio: float
    twin: float | None = None

    def sentence(self, unit: str = "") -> str:
        """What to tell the analyst."""
        unit = f" {unit}" if unit else ""
        if self.twin is not None:
            return (
                f"the standards {self.twin:g}{unit} and {self.level:g}{unit} have one spectrum up to noise, and all "
                "others differ: one of the two is not what it is called, or was measured twice"
            )
        return (
            f"the standard {self.level:g}{unit} contradicts the others, which lie on a straight line of concentration: "
            f"they would call it {figure(self.implied, unit)}, {self.ratio:.2g} times as far off as the worst of them. "
            "It was kept: check its label, its dilution, and whether the detector was at its limit"
        )


def slips_among(levels: np.ndarray, means: np.ndarray, noise: np.ndarray) -> list[Slip]:
    """What speaks against single standards of four or five; nothing of other numbers.

    Args:
        levels: ``[n]`` ascending. means: ``[n, W]`` their spectra. noise: ``[W]`` its standard deviation in them.
    """
    if not 4 <= len(levels) <= MOST_LEVELS:
        return []
    white = means / noise
    found = [one for i in range(1, len(levels)) if (one := _beside_the_line(levels, white, i)) is not None]
    if found:  # a bad one among the others bends their line too: the clearest is told
        return [max(found, key=lambda one: one.ratio)]
    return _twins(levels, white)


def _beside_the_line(levels: np.ndarray, white: np.ndarray, i: int) -> Slip | None:
    line = against_line(levels, white, i)
    if line is None or not line.straight(STRAIGHT):
        return None
    if line.off < OFF * line.way or line.off < 5.0 * max(line.worst, line.noise) or line.beside > line.off / 3.0:
        return None
    if i == len(levels) - 1 and not any(
        abs(line.implied / levels[i] - s) < SLIP * s for s in SLIPS if levels[i] != 0.0
    ):
        return None
    return Slip(float(levels[i]), line.implied, line.off / max(line.worst, line.noise))


def _twins(levels: np.ndarray, white: np.ndarray) -> list[Slip]:
    steps = np.linalg.norm(np.diff(white, axis=0), axis=1) / np.sqrt(2.0 * white.shape[1])
    k = int(steps.argmin())
    others = np.delete(steps, k)
    interior = 0 < k < len(steps) - 1
    if steps[k] > SAME or not interior or others.min() < APART * max(float(steps[k]), 1.0):
        return []
    return [Slip(float(levels[k + 1]), float(levels[k]), float(others.min() / steps[k]), float(levels[k]))]
