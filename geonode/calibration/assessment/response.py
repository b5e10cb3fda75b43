"""Do the standards respond at all, and how large is an error beside what responds?

The spread of spectra is mostly their shape, which is the same at every concentration; what changes with concentration,
the *response*, may be a thousandth of it or nothing. An error of 1 % of the spread can be all of the response.

Standards do not respond where what they differ by is noise. Two signs, either of which is enough:

* the largest singular value of the level means (less their mean, whitened by the noise) is no larger than that of noise
  alone, √W + √(n − 1) standard deviations (the edge of Marchenko & Pastur), and a level left out is not predicted;
* levels left out are predicted no better than by the mean of the others, and neighbours in concentration differ as any
  two levels do (von Neumann's ratio near 1). Of few levels a response that turns back looks like that too, so this sign
  counts from six levels on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geonode.calibration.assessment.curve_check import CurveCheck
from geonode.calibration.inverse.projection import Projection

NOISE_EDGE = 1.2
"""Singular values up to this many times the edge are noise's: noise is given as roughness, a little too low."""
PREDICTED = 0.3
"""Left-out levels of which this share of the variance is predicted do respond, whatever the noise."""
ORDER_FROM = 6
"""Levels from which order tells anything."""
UNORDERED = 0.8
"""Von Neumann's ratio (1 for no order) from which neighbours are no more alike than any two."""


@dataclass(frozen=True)
class Response:
    """What the standards show of concentration.

    Attributes:
        levels: n. size: RMS, over levels and wavelengths, of the level means less their mean, units of the spectra.
        strength: largest singular value ÷ that of noise alone. explained: share of the variance of left-out levels
            that is predicted (negative: worse than the mean). disorder: von Neumann's ratio.
        error: RMS of the left-out interior levels' residual ÷ ``size``; NaN without any.
    """

    levels: int
    size: float
    strength: float
    explained: float
    disorder: float
    error: float

    @property
    def responds(self) -> bool:
        """Whether anything changes with concentration that noise alone would not show."""
        if self.strength <= NOISE_EDGE and self.explained < PREDICTED:
            return False
        return not (self.levels >= ORDER_FROM and self.explained < 0.0 and self.disorder >= UNORDERED)

    def sentence(self) -> str:
        """What to say of standards that do not respond; empty of those that do."""
        if self.responds:
            return ""
        return (
            "these standards do not respond: what their spectra differ by is noise and not concentration (the largest "
            f"difference is {self.strength:.2g} times that of noise alone, and a standard left out is missed by "
            f"{100.0 * self.error:.0f} % of all that changes); no result can rest on them: check which samples were "
            "measured, and where the analyte absorbs"
        )


def response_of(check: CurveCheck, projection: Projection) -> Response:
    """The response of standards, from what is known of their curve and their noise."""
    gp, held = check.gp, check.held_out
    n, width = gp.residual.shape
    size = float(np.sqrt((gp.residual**2).mean()))
    noise = 1.0
    if check.deviations is not None:
        noise = max(float(((check.deviations / projection.scale) ** 2).sum()) / ((len(check.spectra) - n) * width), 1.0)
    largest = float(np.linalg.svd(gp.residual / projection.scale, compute_uv=False)[0])
    edge = np.sqrt(noise / projection.per_level) * (np.sqrt(width) + np.sqrt(n - 1.0))
    rows = held.left_out
    total = float((gp.residual[rows] ** 2).sum()) if len(rows) else 0.0
    explained = 1.0 - float((held.residual**2).sum()) / total if total > 0.0 else 0.0
    inner = (rows > 0) & (rows < n - 1)
    error = float(np.sqrt((held.residual[inner] ** 2).mean())) / size if inner.any() and size > 0.0 else float("nan")
    return Response(n, size, largest / float(edge), explained, check.disorder, error)
