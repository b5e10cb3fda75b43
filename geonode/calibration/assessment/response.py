"""Do the standards respond at all, and how large is an error beside what responds?

The spread of spectra is mostly their shape, which is the same at every concentration; what changes with concentration,
the *response*, may be a thousandth of it or nothing. An error of 1 % of the spread can be all of the response.

Standards do not respond where what they differ by is noise, or drift of the instrument. Any of three signs is enough:

* the largest singular value of the level means (less their mean, whitened by the noise) is no larger than that of noise
  alone, √W + √(n − 1) standard deviations (the edge of Marchenko & Pastur), and a level left out is not predicted;
* levels left out are predicted no better than by the mean of the others, and neighbours in concentration differ as any
  two levels do (von Neumann's ratio near 1). Of few levels a response that turns back looks like that too, so this sign
  counts from six levels on;
* all that is more than noise is what an instrument does to any spectrum, and it follows no order: an offset, a tilt,
  a bend, scattered light and a factor (lamp, filling), small beside the spectra, neither rising nor falling with
  concentration (from six levels on, nor turning once), and no level left out is predicted. An offset and a tilt alone,
  with no part of any band, are a baseline that drifts, in order or not, where they are most of what there is. A factor
  that follows the order of concentration is what Beer and Lambert's law gives, and says nothing against an assay:
  standards measured in random order tell the two apart.

Spectra that differ by far more than noise and yet in no order are something else than no response: labels that were
swapped, one in another unit, levels too few for a response that turns back, or another substance. Nothing can rest on
such standards either, but what to look for differs (`Response.unordered`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from geonode.calibration.assessment.curve_check import CurveCheck
from geonode.calibration.inverse.projection import Projection
from geonode_runtime.figures import figure

NOISE_EDGE = 1.2
"""Singular values up to this many times the edge are noise's: noise is given as roughness, a little too low."""
PREDICTED = 0.3
"""Left-out levels of which this share of the variance is predicted do respond, whatever the noise."""
ORDER_FROM = 6
"""Levels from which order tells anything."""
PROVEN = 5.0
"""Times the edge of noise from which no search among noise has to be feared, nor that noise is all there is: on
simulated assays of families left out of training, of six to ten levels and called silent, noise alone gave 1.3 at most,
what instruments do beside it exceeded 5 in 5 %, and standards with shuffled labels in 83 %."""
MOSTLY = 0.4
"""What a drifting baseline leaves of all that standards differ by, at most: where noise hides the rest of a weak
response, taking a baseline away leaves most of it."""
UNORDERED = 0.8
"""Von Neumann's ratio (1 for no order) from which neighbours are no more alike than any two."""


FEWEST_WAVELENGTHS = 16
"""Of fewer, an offset, a tilt and a factor explain too much by chance."""
SMALL = 0.3
"""Drift is no larger than this share of the spectra; what is larger is a response, whatever its order."""
STEP_BACK = 0.05
"""A step back of less than this share of the whole way is an error of a standard, and no want of order."""


@dataclass(frozen=True)
class Response:
    """What the standards show of concentration.

    Attributes:
        levels: n. size: RMS, over levels and wavelengths, of the level means less their mean, units of the spectra.
        strength: largest singular value ÷ that of noise alone. explained: share of the variance of left-out levels
            that is predicted (negative: worse than the mean). disorder: von Neumann's ratio.
        drift: the drift of an instrument that is all there is; empty where there is more, or it follows concentration.
        error: RMS of the left-out interior levels' residual ÷ ``size``; NaN without any.
    """

    drift: str = field(default="", kw_only=True)
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
        if self.drift:
            return False
        return not (self.levels >= ORDER_FROM and self.explained < 0.0 and self.disorder >= UNORDERED)

    @property
    def unordered(self) -> bool:
        """Whether the spectra differ by far more than noise, but levels left out are not found from the others."""
        return not self.responds and not self.drift and self.strength >= PROVEN

    @property
    def fault(self) -> str:
        """Why no result can rest on these standards, a clause for another sentence; empty where they respond."""
        if self.responds:
            return ""
        if self.unordered:
            return "the spectra of these standards are no smooth function of the concentration"
        return "these standards do not respond"

    @property
    def proven(self) -> bool:
        """Whether the response is so far beyond noise that what follows it was not found by searching."""
        return self.responds and self.strength >= PROVEN

    @property
    def _missed(self) -> str:
        """By how much levels left out are missed; more than all that changes is no percentage."""
        if self.error <= 1.0:
            return f"{100.0 * self.error:.0f} % of all that changes"
        return f"{self.error:.2g} times all that changes"

    def sentence(self) -> str:
        """What to say of standards that do not respond, or in no order; empty of those that do."""
        if self.responds:
            return ""
        if self.unordered:
            return (
                f"{self.fault}: they differ by {figure(self.strength, digits=2)} times the noise, but levels left out "
                f"are not found from the others (missed by {self._missed}); no result "
                "can rest on them: look for swapped or wrong labels, a label in another unit or another substance, or "
                "measure more levels where the response turns"
            )
        if self.drift:
            return (
                f"these standards do not respond: what their spectra differ by is {self.drift}, and nothing beside it "
                "is more than noise; no result can rest on them: check which samples were measured, where the analyte "
                "absorbs, and measure the standards in random order"
            )
        return (
            "these standards do not respond: what their spectra differ by is noise and not concentration (the largest "
            f"difference is {figure(self.strength, digits=2)} times that of noise alone, and a standard left out is "
            f"missed by {self._missed}); no result can rest on them: check which "
            "samples were measured, and where the analyte absorbs"
        )


def response_of(check: CurveCheck, projection: Projection, wavelengths: np.ndarray) -> Response:
    """The response of standards, from what is known of their curve and their noise; ``wavelengths [W]``."""
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
    strength = largest / float(edge)
    white, ones = gp.level_means / projection.scale, 1.0 / projection.scale
    drift = _drift(white, ones, wavelengths, float(edge), explained)
    return Response(n, size, strength, explained, check.disorder, error, drift=drift)


def _drift(white: np.ndarray, ones: np.ndarray, wavelengths: np.ndarray, edge: float, explained: float) -> str:
    """What kind of drift is all that level means ``white [n, W]`` differ by; ``ones [W]``: an offset, whitened."""
    width = white.shape[1]
    if width < FEWEST_WAVELENGTHS:
        return ""
    line = 2.0 * (wavelengths - wavelengths.min()) / np.ptp(wavelengths) - 1.0
    mean = white.mean(axis=0)
    x = white - mean
    baseline = np.stack([ones, ones * line], axis=1)
    whole, left = _beside(x, baseline[:, :0]), _beside(x, baseline)
    if whole <= NOISE_EDGE * edge:
        return ""
    if left <= NOISE_EDGE * edge and (left <= MOSTLY * whole or explained < PREDICTED):
        return "a baseline that drifts (an offset and a tilt of the whole spectrum)"
    lengths = bool((wavelengths > 0.0).all())
    scattered = (wavelengths / wavelengths.max()) ** -4.0 if lengths else line**3  # Rayleigh's law
    every = np.column_stack([baseline, ones * line**2, ones * scattered, mean])
    size = float(np.linalg.norm(x, axis=1).max()) / float(np.linalg.norm(mean))
    if explained >= PREDICTED or size > SMALL or _beside(x, every) > NOISE_EDGE * edge or _follows_order(x, edge):
        return ""
    return "drift (an offset, a tilt, a bend and a factor of the whole spectrum, in no order of concentration)"


def _beside(x: np.ndarray, directions: np.ndarray) -> float:
    """Largest singular value of ``x [n, W]`` without what lies along ``directions [W, k]``."""
    basis, _ = np.linalg.qr(directions)
    return float(np.linalg.svd(x - (x @ basis) @ basis.T, compute_uv=False)[0])


def _follows_order(x: np.ndarray, edge: float) -> bool:
    """Whether the levels of ``x [n, W]``, in order of concentration, lie along its largest direction in one order too,
    or, of six or more, turn back once. Steps back within noise are none."""
    left, values, _ = np.linalg.svd(x, full_matrices=False)
    place = left[:, 0] * values[0]
    least = max(STEP_BACK * float(np.ptp(place)), edge / np.sqrt(x.shape[1]))
    steps = np.diff(place)
    signs = np.sign(steps[np.abs(steps) > least])
    turns = int((np.diff(signs) != 0).sum())
    return turns <= (1 if len(x) >= ORDER_FROM else 0)
