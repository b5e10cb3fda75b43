"""One standard against the straight line of all others through the space of wavelengths (Beer and Lambert's law)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SPREAD = 0.1
"""Of the gaps between the others the second largest has this share of their range; else they are two places, through
which a line always goes. And no line is straight that one of them misses by more than this share of their spread."""


@dataclass(frozen=True)
class AgainstLine:
    """Lengths in standard deviations of the noise, over all wavelengths together.

    Attributes:
        spread: how far the others reach along their line. way: how far all levels would. worst: of the others, the
            distance from its place on the line. noise: what noise alone is expected to be.
        implied: where on the line the standard lies, user units. off: how far that is from its place. beside: how far
            it lies from the line itself, less noise.
    """

    spread: float
    way: float
    worst: float
    noise: float
    implied: float
    off: float
    beside: float

    def straight(self, share: float) -> bool:
        """Whether the others lie within ``share`` of their spread of the line, or within noise."""
        return self.worst <= min(max(share * self.spread, 2.0 * self.noise), SPREAD * self.spread)


def against_line(levels: np.ndarray, white: np.ndarray, i: int) -> AgainstLine | None:
    """Level ``i`` against the line of the others; None where they lie at two places or do not respond.

    Args:
        levels: ``[n]`` ascending. white: ``[n, W]`` their spectra over the noise.
    """
    c, x = np.delete(levels, i), np.delete(white, i, axis=0)
    if np.sort(np.diff(c))[-2] < SPREAD * np.ptp(c):
        return None
    centre, mean, width = c - c.mean(), x.mean(axis=0), x.shape[1]
    slope = centre @ (x - mean) / (centre @ centre)
    length = float(np.linalg.norm(slope))
    if length == 0.0:
        return None
    step = white[i] - mean
    along = float(step @ slope) / length
    implied = along / length + float(c.mean())
    return AgainstLine(
        spread=length * float(np.ptp(c)),
        way=length * float(np.ptp(levels)),
        worst=float(np.linalg.norm(x - mean - centre[:, None] * slope, axis=1).max()),
        noise=float(np.sqrt(width)),
        implied=implied,
        off=abs(implied - float(levels[i])) * length,
        beside=float(np.sqrt(max(float(step @ step) - along**2 - width, 0.0))),
    )
