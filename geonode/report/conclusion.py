"""The three things to know of a calibration: how good it is, what is wrong, and what it can tell apart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import bdtrc

from geonode.calibration.assessment.untold import missed_by
from geonode.calibration.calibration import Calibration
from geonode.calibration.design.resolution import DetectionLimits, ambiguity_map, detection_limits, resolution
from geonode.calibration.remarks import of_response
from geonode.report.tables import number
from geonode_runtime.shapes import PLAINLY_THERE

SETS, RARE = 0.8, 0.1
"""Level of the sets that standards left out should lie in, and how seldom chance has as many of them outside: then the
sets are called too narrow. Levels outside are told in any case."""
MOST_NAMED = 4
"""So many levels that were not left out are named; of more their number is."""
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
        for position, spectrum in zip(held.left_out, missed_by(calibration), strict=True):
            rows = held.level == position
            error = float(np.mean(held.estimate[rows] - held.concentration[rows]))
            level = float(calibration.levels[position])
            found.append(LevelError(level, error, float(spectrum), position in (0, last)))
        return found

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

    @cached_property
    def caveats(self) -> list[str]:
        """What stands beside every result: the findings, and of standards that do not respond, are hardly better than a
        guess or no curve the headline before those that it does not say itself."""
        if self.usable:
            return self.findings
        said = self.headline()
        return [said, *(one for one in self.findings if one not in said)]

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
        levels = ", ".join(f"{one.level:g}: {self._missed(one)} ({_of_response(one.spectrum)})" for one in shown)
        said = (
            f"how good (each level left out: error{_of(self.unit)}, and of the spectrum relative to response): {levels}"
        )
        if len(shown) < len(inner):
            said += f" (the {MOST_LEVELS} largest of {len(inner)})"
        edges = [f"{one.level:g}: {self._missed(one)}" for one in self.errors if one.edge]
        said += f"; the ends, extrapolated: {', '.join(edges)}" if edges else ""
        return said if self.calibration.curve_check.pls_is_better else said + self._uncovered()

    def _missed(self, one: LevelError) -> str:
        """The error at a level with its sign, 0 where it is nothing beside the level (the lowest other at a blank) and
        beside the largest error."""
        positive = self.calibration.levels[self.calibration.levels > 0.0]
        level = abs(one.level) or float(positive[0] if len(positive) else 0.0)
        beside = min(level, max(abs(other.error) for other in self.errors))
        said = number(abs(one.error), beside=beside)
        return said if said == "0" else ("+" if one.error >= 0.0 else "−") + said

    def wrong(self) -> str:
        """What is wrong."""
        found = [*self.findings]
        if useless := self.calibration.standing.useless:
            found.insert(0, useless)
        return f"what is wrong: {'; '.join(found) if found else 'nothing was found'}"

    def apart(self) -> str:
        """What can be told apart."""
        low, high = self.calibration.range
        places = low + np.array([0.1, 0.5, 0.9]) * (high - low)
        parts = []
        for c, step in zip(places, resolution(self.calibration, places).resolvable, strict=True):
            if np.isfinite(step) and step < high - low:
                parts.append(f"{number(step)} at {number(c)}")
        limits = self.limits
        said = f"differences of {', '.join(parts)}{self.unit}" if parts else "no difference within the range"
        if limits.detection is not None:
            said += f"; detection limit {number(limits.detection, self.unit)}"
            if limits.quantification is not None:
                said += f", quantification limit {number(limits.quantification, self.unit)}"
        else:
            # That there is no blank stands among what is wrong.
            said += f"; no detection limit ({limits.reason})" if self.calibration.has_blank else "; no detection limit"
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
        standing = self.calibration.standing
        if not self.usable and standing.replicates:
            return f"Not usable as it stands: {standing.contradictions[0]}{self._without()}."
        if silent := of_response(self.calibration):
            # What is in no order is in none for the sake of a label, where one is known to be wrong.
            named = self.contradictions[0] if self.calibration.response.unordered and self.contradictions else silent
            return f"Not usable: {named}."
        if self.calibration.curve_check.pls_is_better:
            errors = self.calibration.curve_check.errors(self.unit)
            return f"Not usable as a curve: {errors}. PLS is the better tool here and answers."
        if not self.usable:
            named = self.contradictions
            if named:
                return f"Not usable: {named[0]}."
            return f"{'Not' if standing.declines else 'Hardly'} usable: {standing.useless}."
        inner = [one for one in self.errors if not one.edge]
        if not inner or not self.calibration.checked:
            span = f"{low:g} to {high:g}{self.unit}"
            return f"Unproven from {span}: too few standards to leave any out and see how good it is."
        rms = float(np.sqrt(np.mean([one.error**2 for one in inner])))
        spectra = float(np.sqrt(np.mean([one.spectrum**2 for one in inner])))
        count = len(self.findings)
        but = "nothing else was found wrong" if not count else f"{count} {'remark' if count == 1 else 'remarks'} below"
        return (
            f"Usable from {self._span()}: a standard between others, left out, is found within "
            f"{number(rms, self.unit)} (root mean square) {_spectrum(spectra)}"
            f"{self._undetected()}"
            f"{self._uncovered()}; {but}."
        )

    def _span(self) -> str:
        """From where to where it is usable: not from the blank on, but from what can be told from it."""
        limit, (low, high) = self.limits.detection, self.calibration.range
        start = f"{low:g}" if limit is None or limit <= low else f"{number(limit)} (its detection limit)"
        return f"{start} to {high:g}{self.unit}"

    def _undetected(self) -> str:
        """Of a detection limit above standards that are no blanks, or beyond the range."""
        limit, levels = self.limits.detection, self.calibration.levels
        if limit is None and self.calibration.has_blank:
            return "; but no single result of the range is told from a blank (the detection limit is not reached)"
        below = levels[(levels > 0.0) & (levels < (limit or 0.0))]
        if not len(below):
            return ""
        hidden = below[[not self._seen(float(one)) for one in below]]
        which, what = below, "the spectra are no blank's, but concentrations cannot be told from zero"
        if len(hidden):
            which, what = hidden, "nothing can be told from a blank"
        named = ", ".join(f"{one:g}" for one in which)
        which = f"the {'standard' if len(which) == 1 else 'standards'} {named}{self.unit}"
        return f"; below the detection limit, {which} included, {what}"

    def _seen(self, level: float) -> bool:
        """Whether the standard of a level is plainly no blank."""
        shapes, at = self.calibration.facts.shapes, int(np.searchsorted(self.calibration.levels, level))
        return shapes is not None and shapes.above_blank(shapes.spectra[at]) > PLAINLY_THERE

    @cached_property
    def outside(self) -> tuple[list[float], list[float]]:
        """Levels that lie, each left out, outside the 80 % sets of what answers (of replicates, more than half of
        them), and all levels that were left out."""
        made = self.calibration
        if not made.checked:
            return [], []
        if not made.unfit_for_posterior:
            asked, covered = made.own_levels.asked, made.own_levels.covered
        else:
            held = made.held_out
            asked = held.left_out
            covered = np.array([float((held.coverage[held.level == i] <= SETS).mean()) for i in asked])
        return made.levels[asked[covered < 0.5]].tolist(), made.levels[asked].tolist()

    def _uncovered(self) -> str:
        """Of levels outside their own sets; of more than chance has, that the sets are too narrow."""
        (outside, asked), count = self.outside, len(self.outside[1])
        if not outside:
            return ""
        ends = [one for one in outside if one in self.calibration.range]
        named = ", ".join(f"{one:g}" for one in outside)
        which = f"(not {named}{self.unit}{self._unasked(asked)}"
        which += f"; {', '.join(f'{one:g}' for one in ends)} extrapolated)" if ends else ")"
        whose = "profile" if self.calibration.unfit_for_posterior else "posterior"
        inside = f"{count - len(outside)} of {count} levels, each left out, lie in their own 80 % sets of the {whose}"
        if bdtrc(len(outside) - 1, count, 1.0 - SETS) > RARE:
            return f"; {inside} {which}"
        return f"; but only {inside} {which}: take intervals for too narrow"

    def _unasked(self, asked: list[float]) -> str:
        """Of many levels some are not left out: which, or how many."""
        rest = [f"{one:g}" for one in self.calibration.levels if one not in asked]
        if not rest:
            return ""
        named = ", ".join(rest) if len(rest) <= MOST_NAMED else f"{len(rest)} others"
        return f"; {named} {'was' if len(rest) == 1 else 'were'} not left out"

    def _without(self) -> str:
        """What the standards are worth without the wrong replicates; empty where that is nothing."""
        sound, count = self.calibration.standing.sound, len(self.calibration.standing.replicates)
        inner = [one.error for one in Conclusion(sound).errors if not one.edge]
        if sound is self.calibration or not sound.standing.usable or not inner:
            return ""
        rms = number(float(np.sqrt(np.mean(np.square(inner)))), self.unit)
        what = "it" if count == 1 else f"the {count} named below"
        return f". Without {what} a standard between others, left out, is found within {rms}"


def _of(unit: str) -> str:
    return f" in{unit}" if unit else ""


def _of_response(share: float) -> str:
    """An error of a spectrum beside the response: what is missed by more than all of that is not predicted."""
    return f"{number(100.0 * share, beside=1.0)} %" if share <= 1.0 else f"not predicted, {share:.2g} times"


def _spectrum(share: float) -> str:
    if share <= 1.0:
        return f"and its spectrum within {_of_response(share)} of the response"
    return f"but its spectrum is not predicted (missed by {share:.2g} times the response)"
