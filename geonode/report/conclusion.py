"""The three things to know of a calibration: how good it is, what is wrong, and what it can tell apart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import bdtrc

from geonode.calibration.calibration import Calibration
from geonode.calibration.design.resolution import DetectionLimits, ambiguity_map, detection_limits, resolution
from geonode.report.tables import number

SETS, RARE = 0.8, 0.05
"""Level of the sets that standards left out should lie in, and how seldom chance has as many of them outside."""
MOST_LEVELS = 12
"""Of more standards the errors of the largest are told."""


@dataclass(frozen=True)
class LevelError:
    """A level, left out.

    Attributes:
        level: its concentration. error: found less true, mean over its spectra, user units.
        spectrum: root mean square of its predicted spectrum's error ÷ that of the response. edge: lowest or highest.
    """

    level: float
    error: float
    spectrum: float
    edge: bool


class Conclusion:
    """What a calibration is worth, in sentences that `geonode fit`, the report and Python share.

    Args:
        calibration: fitted.
    """

    def __init__(self, calibration: Calibration) -> None:
        self.calibration = calibration
        self.unit = f" {calibration.unit}" if calibration.unit else ""

    @cached_property
    def errors(self) -> list[LevelError]:
        """Every level that was left out."""
        held, calibration = self.calibration.held_out, self.calibration
        found, last = [], len(calibration.levels) - 1
        for position, residual in zip(held.left_out, held.residual, strict=True):
            rows = held.level == position
            error = float(np.mean(held.estimate[rows] - held.concentration[rows]))
            spectrum = float(np.sqrt(np.mean(residual**2))) / self.response if self.response > 0.0 else np.inf
            found.append(LevelError(float(calibration.levels[position]), error, spectrum, position in (0, last)))
        return found

    @cached_property
    def response(self) -> float:
        """What changes with concentration: root mean square, over levels and wavelengths, of the level means less their
        mean. Errors of spectra are told as shares of it, not of the spectra, whose shape is no response."""
        return float(np.sqrt(np.mean(self.calibration.gp.residual**2)))

    @cached_property
    def findings(self) -> list[str]:
        """What is wrong, a sentence each."""
        return self.calibration.standing.warnings

    @cached_property
    def contradictions(self) -> list[str]:
        """The replicates that are not of their level and the standards that contradict the others, a sentence each."""
        return self.calibration.standing.contradictions

    @cached_property
    def limits(self) -> DetectionLimits:
        """Of detection and quantification: looked for once, since that takes some hundreds of simulated unknowns."""
        return detection_limits(self.calibration)

    @property
    def usable(self) -> bool:
        """Whether the standards respond, and the interior ones, each left out, are found better than by a guess."""
        return self.calibration.standing.usable

    def good(self) -> str:
        """How good: the error at every level, left out, in concentration and of the spectrum relative to response."""
        inner = [one for one in self.errors if not one.edge]
        if not inner:
            return "how good: unknown, no standard between the lowest and the highest was left out to try it"
        shown = inner if len(inner) <= MOST_LEVELS else sorted(inner, key=lambda one: -abs(one.error))[:MOST_LEVELS]
        shown = sorted(shown, key=lambda one: one.level)
        levels = ", ".join(f"{one.level:g}: {_signed(one.error)} ({_percent(one.spectrum)})" for one in shown)
        said = (
            f"how good (each level left out: error{_of(self.unit)}, and of the spectrum relative to response): {levels}"
        )
        if len(shown) < len(inner):
            said += f" (the {MOST_LEVELS} largest of {len(inner)})"
        edges = [f"{one.level:g}: {_signed(one.error)}" for one in self.errors if one.edge]
        return said + (f"; the ends, extrapolated: {', '.join(edges)}" if edges else "")

    def wrong(self) -> str:
        """What is wrong."""
        found = [*self.findings]
        told = not self.calibration.response.responds or self.contradictions
        if not self.usable and not told and not self.calibration.curve_check.pls_is_better:
            found.insert(0, self._useless())
        return f"what is wrong: {'; '.join(found) if found else 'nothing was found'}"

    def apart(self) -> str:
        """What can be told apart."""
        found = resolution(self.calibration)
        low, high = self.calibration.range
        parts = []
        for share in (0.1, 0.5, 0.9):
            c = low + share * (high - low)
            step = float(np.interp(c, found.concentrations, found.resolvable))
            if np.isfinite(step) and step < high - low:
                parts.append(f"{number(step)} at {number(c)}")
        limits = self.limits
        said = f"differences of {', '.join(parts)}{self.unit}" if parts else "no difference within the range"
        if limits.detection is not None:
            said += f"; detection limit {number(limits.detection, self.unit)}"
            if limits.quantification is not None:
                said += f", quantification limit {number(limits.quantification, self.unit)}"
        else:
            said += f"; no detection limit ({limits.reason})"
        pairs = ambiguity_map(self.calibration).pairs
        if pairs:
            said += f"; {number(pairs[0].first)} and {number(pairs[0].second)}{self.unit} look alike"
            said += f" (and {len(pairs) - 1} pairs more)" if len(pairs) > 1 else ""
        return f"what can be told apart: {said}"

    def lines(self) -> list[str]:
        """The three lines."""
        return [self.good(), self.wrong(), self.apart()]

    def headline(self) -> str:
        """One sentence for somebody who reads no further."""
        low, high = self.calibration.range
        span = f"{low:g} to {high:g}{self.unit}"
        standing = self.calibration.standing
        if not self.usable and standing.replicates:
            return f"Not usable as it stands: {standing.contradictions[0]}{self._without()}."
        if not self.calibration.response.responds:
            return f"Not usable: {self.calibration.response.sentence()}."
        if self.calibration.curve_check.pls_is_better:
            return (
                "Not usable as a curve: the spectra depend on more than the concentration; PLS is the better tool here."
            )
        if not self.usable:
            return f"Not usable: {[*self.contradictions, self._useless()][0]}."
        inner = [one for one in self.errors if not one.edge]
        if not inner or not self.calibration.checked:
            return f"Unproven from {span}: too few standards to leave any out and see how good it is."
        rms = float(np.sqrt(np.mean([one.error**2 for one in inner])))
        spectra = float(np.sqrt(np.mean([one.spectrum**2 for one in inner])))
        count = len(self.findings)
        but = "nothing else was found wrong" if not count else f"{count} {'remark' if count == 1 else 'remarks'} below"
        return (
            f"Usable from {span}: a standard between others, left out, is found within {number(rms, self.unit)} (root "
            f"mean square) and its spectrum within {_percent(spectra)} of the response{self._undetected()}"
            f"{self._uncovered()}; {but}."
        )

    def _undetected(self) -> str:
        """Of a detection limit above the lowest standard that is no blank: the range that is usable begins there."""
        limit, levels = self.limits.detection, self.calibration.levels
        low = levels[levels > 0.0]
        if limit is None or not len(low) or limit <= low[0]:
            return ""
        return f"; below the detection limit, {number(limit, self.unit)}, nothing can be told from a blank"

    def _uncovered(self) -> str:
        """Of more levels outside their own 80 % sets, each left out, than one assay in twenty has by chance."""
        held = self.calibration.held_out
        levels = [int(i) for i in held.left_out]
        outside = [i for i in levels if (held.coverage[held.level == i] > SETS).all()]
        if not outside or bdtrc(len(outside) - 1, len(levels), 1.0 - SETS) > RARE:
            return ""
        named = ", ".join(f"{self.calibration.levels[i]:g}" for i in outside)
        return f"; but {len(outside)} of {len(levels)} levels ({named}{self.unit}) lie outside their own 80 % sets"

    def _without(self) -> str:
        """What the standards are worth without the wrong replicates; empty where that is nothing."""
        sound, count = self.calibration.standing.sound, len(self.calibration.standing.replicates)
        inner = [one.error for one in Conclusion(sound).errors if not one.edge]
        if sound is self.calibration or not sound.standing.usable or not inner:
            return ""
        rms = number(float(np.sqrt(np.mean(np.square(inner)))), self.unit)
        what = "it" if count == 1 else f"the {count} named below"
        return f". Without {what} a standard between others, left out, is found within {rms}"

    def _useless(self) -> str:
        held, (low, high) = self.calibration.standing, self.calibration.range
        guess = (high - low) / np.sqrt(12.0)
        by_guess = number(guess, self.unit)
        return (
            f"a standard between others, left out, is found wrong by {number(held.worst * guess, self.unit)} (root "
            f"mean square), where a guess, the middle of the range, is wrong by {by_guess}: these spectra "
            "hardly tell the concentration"
        )


def _of(unit: str) -> str:
    return f" in{unit}" if unit else ""


def _signed(value: float) -> str:
    return ("+" if value >= 0.0 else "−") + number(abs(value))


def _percent(share: float) -> str:
    return f"{number(100.0 * share)} %"
