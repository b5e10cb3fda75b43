"""A standard off the straight line of all others: a blank that is called 5, a top that was diluted twice.

Where all other standards lie on one straight line through the space of wavelengths, at places proportional to their
concentrations (Beer and Lambert's law), they say where this one belongs: of an end, to which they only extrapolate, and
of a level between others by a fifth of a step, which no smooth curve finds
(:mod:`~geonode.calibration.assessment.wrong_label`). At an end the response may bend instead, at the highest more often
than at the lowest; so this is a remark: what the line would call it, and what to check. Thresholds were chosen on
simulated assays (docs/calibration.md, "Off the line").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geonode.calibration.assessment.straight_line import against_line
from geonode_runtime.figures import figure

FEWEST = 5
"""Levels, so that four others say what is straight."""
STRAIGHT = 0.01
"""The others lie within this share of their spread of the line, …"""
OFF, OFF_END = 0.02, 0.05
"""… and this one, between others or an end, this share of the whole way from its place on the line, …"""
CLEARLY, CLEARLY_END = 6.0, 10.0
"""… so many times further than the worst of the others, …"""
BESIDE = 0.2
"""… and beside the line by no more than this share of that."""
NOTHING = 0.2
"""Below this share of what is written the lowest may be a blank."""


@dataclass(frozen=True)
class OffTheLine:
    """A level off the line.

    Attributes:
        level: as written, user units. implied: where the line has its spectrum. place: "lowest", "highest" or "inner".
    """

    level: float
    implied: float
    place: str

    def sentence(self, unit: str = "") -> str:
        """What to tell the analyst."""
        unit = f" {unit}" if unit else ""
        return (
            f"the other standards lie on a straight line of concentration, and by that line {self.level:g}{unit} is "
            f"{figure(self.implied, unit, digits=3)}: check {self._what()}. It was kept as written"
        )

    def _what(self) -> str:
        if self.place == "highest":
            return "its label and its dilution, and whether the detector was at its limit"
        if self.level == 0.0:
            return "whether the blank has the matrix of the standards"
        if self.place == "lowest" and abs(self.implied) < NOTHING * self.level:
            return "its label, and whether it is the blank"
        return "its label and its dilution"


def off_the_line(levels: np.ndarray, means: np.ndarray, noise: np.ndarray) -> OffTheLine | None:
    """The level that lies off the straight line of all others; None where there is none, or several might.

    Args:
        levels: ``[n]`` ascending. means: ``[n, W]`` their spectra. noise: ``[W]`` its standard deviation in them.
    """
    if len(levels) < FEWEST:
        return None
    found = [one for i in range(len(levels)) if (one := _tried(levels, means / noise, i)) is not None]
    return found[0] if len(found) == 1 else None


def _tried(levels: np.ndarray, white: np.ndarray, i: int) -> OffTheLine | None:
    line = against_line(levels, white, i)
    if line is None or not line.straight(STRAIGHT):
        return None
    place = {0: "lowest", len(levels) - 1: "highest"}.get(i, "inner")
    least, clearly = (OFF, CLEARLY) if place == "inner" else (OFF_END, CLEARLY_END)
    far = line.off >= max(least * line.way, clearly * max(line.worst, line.noise))
    return OffTheLine(float(levels[i]), line.implied, place) if far and line.beside <= BESIDE * line.off else None
