"""What a calibration's standards deserve: wrong replicates first, then levels, then whether anything can be told.

One wrong replicate makes its level, the levels beside it or the whole assay look bad. So once replicates are found that
are not of their level, everything after them is asked of the standards without them (`Standing.sound`), and what was
noted of the standards as they are, but is not so without those replicates, is not said.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from geonode.calibration.assessment.decimal_slip import DecimalSlip, decimal_slip
from geonode.calibration.assessment.few_standards import Slip, slips_among
from geonode.calibration.assessment.likelier_order import likelier_exchange, likelier_sentence
from geonode.calibration.assessment.match_limits import FEWEST_LEFT_OUT
from geonode.calibration.assessment.off_the_line import OffTheLine, off_the_line
from geonode.calibration.assessment.replicates_check import ReplicateCheck, check_replicates
from geonode.calibration.assessment.standards_check import StandardCheck, checked_levels
from geonode.calibration.assessment.unlikely_label import unlikely_label
from geonode.calibration.assessment.untold import untold_levels, untold_sentence
from geonode.calibration.remarks import of_response, wide_limits_of
from geonode_runtime.figures import figure

if TYPE_CHECKING:
    from geonode.calibration.calibration import Calibration

USELESS = 0.5
"""A root mean square error above this fraction of that of a guess (the middle of the range, whatever the spectrum)
tells little that is worth a measurement, and that is said beside every answer."""
HOPELESS = 0.7
"""Above this fraction nothing is quantified. Of 349 genuine simulated assays that respond (families left out of
training, 4 to 10 levels) 1.1 % are so, and quantified 3 unknowns; of 63 with shuffled labels that respond all the same
56 % are, and their sets of 95 % hold 81 % of the truths. Between the two limits sets are honest: those of 13 genuine
assays hold 90 and 98 %."""
GUESSED = "found hardly better than by a guess"
_FEWEST_LEVELS = 3


class Standing:
    """What is known of the standards of a ``calibration``."""

    def __init__(self, calibration: Calibration) -> None:
        self._calibration = calibration

    @cached_property
    def replicates(self) -> list[ReplicateCheck]:
        """Replicates that are not of their level."""
        made = self._calibration
        return check_replicates(made.prepared, made.spectra, made.names)

    @cached_property
    def sound(self) -> Calibration:
        """The standards without those replicates (without the level where it is not known which of two is wrong), with
        the Gaussian process; the calibration itself where there are none, or nothing would be left without them."""
        made = self._calibration.of_process
        keep = np.ones(len(made.spectra), dtype=bool)
        keep[[row for check in self.replicates for row in check.rows]] = False
        left = np.isin(made.levels, made.concentrations[keep])
        if keep.all() or left.sum() < _FEWEST_LEVELS:
            return made
        return _without(made, keep)

    @cached_property
    def trusted(self) -> Calibration:
        """The sound standards without the levels that contradict the others, as long as enough are left to learn from
        (:data:`~geonode.calibration.assessment.match_limits.FEWEST_LEFT_OUT`)."""
        sound = self.sound
        bad = [check.level for check in self.checks if check.flagged] + [slip.level for slip in self.slips]
        keep = ~np.isin(sound.concentrations, bad)
        if keep.all() or len(np.unique(sound.concentrations[keep])) < FEWEST_LEFT_OUT:
            return sound
        return _without(sound, keep)

    @cached_property
    def trusted_rows(self) -> np.ndarray:
        """``[N]`` the standards that `trusted` has."""
        made, rows = self._calibration, [row for check in self.replicates for row in check.rows]
        keep = np.isin(made.concentrations, self.trusted.concentrations)
        if self.sound is not made.of_process:
            keep[rows] = False
        return keep

    @cached_property
    def has_curve(self) -> bool:
        """Whether some of the standards make a curve that a spectrum can be held against: they respond, and what is
        left without those that contradict the others is free of contradictions."""
        made, trusted = self._calibration, self.trusted
        if made.curve_check.pls_is_better or not made.response.responds:
            return False
        return not self.contradictions or (trusted is not made.of_process and not trusted.standing.contradictions)

    @cached_property
    def fault(self) -> str:
        """What the standards are at fault for, one clause for an answer that suffers from it; empty of sound ones."""
        if self.contradictions:
            return self.contradictions[0].split(": ")[0].split(", which lie ")[0]
        made = self._calibration
        if of_response(made):
            unordered = "their spectra are no smooth function of the concentration"
            return unordered if made.response.unordered else "they do not respond to the concentration"
        if made.curve_check.pls_is_better:
            return made.curve_check.errors(f" {made.unit}" if made.unit else "")
        return "" if self.usable else f"each left out, they are {GUESSED}"

    @cached_property
    def q_limit(self) -> float:
        """Upper limit of Q for genuine spectra, learned without standards that contradict the others: one bad standard
        widens it so far (10⁴ times and more) that anything passes."""
        own = self._calibration.own_limits[0]
        return own if self.trusted is self._calibration.of_process else min(own, self.trusted.q_limit)

    @cached_property
    def decimal(self) -> DecimalSlip | None:
        """The level that may have a zero too many or too few; None where another test names it already."""
        found = self._decimal
        named = [check.level for check in self.checks if check.flagged] + [slip.level for slip in self.slips]
        return None if found is None or found.level in named else found

    @cached_property
    def _decimal(self) -> DecimalSlip | None:
        return decimal_slip(self.sound.levels, self.sound.gp.level_means, self._noise)

    @cached_property
    def _noise(self) -> np.ndarray:
        """``[W]`` standard deviation of a level's mean spectrum."""
        projection = self.sound.inverse.projection
        return projection.scale / np.sqrt(projection.per_level)

    @cached_property
    def checks(self) -> list[StandardCheck]:
        """Every level that was left out, as the others see it; wrong replicates left out. Where a level has a zero too
        many or too few no other is blamed for what that does to the curve."""
        slip, checks = self._decimal, checked_levels(self.sound)
        if slip is None:
            return checks
        return [one if not one.flagged or one.level == slip.level else one.cleared() for one in checks]

    @cached_property
    def slips(self) -> list[Slip]:
        """What speaks against one of four or five levels, where leaving levels out says nothing. Where whole levels
        went with their replicates the few that are left have gaps that bend any line, and none is blamed for them."""
        sound = self.sound
        if any(check.flagged for check in self.checks) or not self._calibration.response.responds:
            return []
        if len(sound.levels) < len(self._calibration.levels):
            return []
        return slips_among(sound.levels, sound.gp.level_means, self._noise)

    @cached_property
    def contradictions(self) -> list[str]:
        """Replicates that are not of their level, then levels that contradict the others, a sentence each."""
        unit = self._calibration.unit
        flagged = [check for check in self.checks if check.flagged and not check.told_before]
        return [one.sentence(unit) for one in [*self.replicates, *flagged, *self.slips]]

    @cached_property
    def warnings(self) -> list[str]:
        """Everything that speaks against the standards: contradictions of replicates first, remarks, levels."""
        made, sound = self._calibration, self.sound
        count, gone = len(self.replicates), set()
        if count and sound is not made:
            for one, other in zip(_consequences(made), _consequences(sound), strict=True):
                gone |= set() if other else {one}
        notes = [note for note in made.notes if note not in gone]
        beside = [] if self.beside is None else [self.beside.sentence(made.unit)]
        last = [*self._zero, *beside, *([self.untold] if self.untold else [])]
        return [*self.contradictions[:count], *notes, *self.contradictions[count:], *last]

    @cached_property
    def _zero(self) -> list[str]:
        return [] if self.decimal is None else [self.decimal.sentence(self._calibration.unit)]

    @cached_property
    def beside(self) -> OffTheLine | None:
        """The level off the straight line of all others; None where something else speaks against the standards."""
        made, sound = self._calibration, self.sound
        if not made.response.responds or made.curve_check.pls_is_better or self.contradictions or self.decimal:
            return None
        return off_the_line(sound.levels, sound.gp.level_means, self._noise)

    @cached_property
    def untold(self) -> str:
        """Of sound standards, which levels the others do not tell (:mod:`~geonode.calibration.assessment.untold`), or
        which two may be exchanged, or which label is unlikely: the first that there is; empty where there is none, and
        where the standards are at fault already."""
        made = self._calibration
        if not self.usable or self.contradictions:
            return ""
        said = untold_sentence(untold_levels(made), made.unit)
        if said or self.cautions:
            return said
        said = likelier_sentence(made.levels, likelier_exchange(made), made.unit)
        unlikely = None if said else unlikely_label(made)
        return said if unlikely is None else unlikely.sentence(made.unit)

    @cached_property
    def cautions(self) -> tuple[str, ...]:
        """What is wrong with the standards, as it must stand beside each concentration: not what they cannot give."""
        made = self._calibration
        # The response may bend at the highest: that is told of the standards, not beside every answer.
        found = self.beside
        beside = [] if found is None or found.place == "highest" else [found.sentence(made.unit)]
        return (*self.contradictions, *(one for one in (of_response(made), self.useless) if one), *self._zero, *beside)

    @property
    def doubts(self) -> tuple[str, ...]:
        """What is wrong with the standards, or leaves them in doubt: beside what rests on them and is no answer."""
        return (*self.cautions, self.untold) if self.untold else self.cautions

    @cached_property
    def useless(self) -> str:
        """Of standards that respond, contradict nothing and are found hardly better than by a guess: that; else empty.
        Where PLS is the better tool it answers."""
        made = self._calibration
        if self.usable or of_response(made) or self.contradictions or made.curve_check.pls_is_better:
            return ""
        (low, high), unit = made.range, f" {made.unit}" if made.unit else ""
        guess = (high - low) / np.sqrt(12.0)
        return (
            f"a standard between others, left out, is found wrong by {figure(self.worst * guess, unit, digits=3)} "
            "(root mean square), where a guess, the middle of the range, is wrong by "
            f"{figure(guess, unit, digits=3)}: these spectra hardly tell the concentration"
            f"{', and nothing is quantified with them' if self.declines else ''}; "
            "measure more standards, or where the analyte shows"
        )

    @cached_property
    def worst(self) -> float:
        """Root mean square of the interior levels' errors ÷ that of a guess, the range ÷ √12: by the curve or by the
        posterior, whichever is the better (of a posterior's set the piece that lies nearest counts). NaN where no level
        was left out."""
        made, (low, high) = self._calibration, self._calibration.range
        held, own = made.held_out, None if made.unfit_for_posterior else made.own_levels
        error = held.estimate - held.concentration
        squares = [[float(error[held.level == i].mean()) ** 2 for i in np.unique(held.level[~held.edge])]]
        if own is not None:
            squares.append(own.nearest[(own.asked > 0) & (own.asked < own.count - 1)].tolist())
        return min((float(np.sqrt(12.0 * np.mean(x))) / (high - low) for x in squares if x), default=float("nan"))

    @property
    def declines(self) -> str:
        """Why nothing is quantified with these standards, a clause; empty where it is. Of three levels none can be left
        out that says so."""
        made = self._calibration
        if not made.response.responds:
            return made.response.fault
        guessed = made.checked and not made.curve_check.pls_is_better and self.worst > HOPELESS
        return f"these standards, each left out, are {GUESSED}" if guessed else ""

    @property
    def usable(self) -> bool:
        """Whether the standards respond, and the interior ones, each left out, are found better than by a guess."""
        made = self._calibration
        return made.response.responds and not made.curve_check.pls_is_better and not self.worst > USELESS


def _without(made: Calibration, keep: np.ndarray) -> Calibration:
    """The standards ``keep [N]`` of a calibration, with the Gaussian process."""
    from geonode.calibration.calibration import Calibration

    left = np.isin(made.levels, made.concentrations[keep])
    # Preprocessed already: nothing is asked of it that was not.
    return Calibration(
        made.concentrations[keep],
        made.spectra[keep],
        made.wavelengths,
        concentration_std=None if made.concentration_std is None else made.concentration_std[left],
        unit=made.unit,
        names=[name for name, stays in zip(made.names, keep, strict=False) if stays],
    )


def _consequences(made: Calibration) -> list[str]:
    """What may be noted of standards only because a replicate is wrong; empty strings for what is not so."""
    curve = made.curve_check
    return [
        of_response(made),
        "" if curve.is_curve and not (curve.pls_is_better or curve.pls_is_closer) else curve.sentence(made.unit),
        *(wide_limits_of(made) or [""]),
    ]
