"""When an answer explains itself, and what it says then: what the full library and an exported model do alike.

A spectrum that does not match is always explained, unless the standards themselves make no curve. For other verdicts
only where the spectrum is further from the standards' span than noise and one cause explains nearly all of that; beyond
the calibrated range, where the curve is carried on and not known, only that it is of another quantity; and never where
the standards contradict each other: then it is as likely the curve that is off. A spectrum that does not match
standards of which some contradict the others is held against the curve of the others, and a cause is named only where
it explains nearly all. Where the standards are at fault themselves, and no cause can be looked for, or they cannot tell
how little gives a spectrum that is no blank's, the answer says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from geonode_runtime.causes.cause import Cause
from geonode_runtime.causes.explanation import NEARLY_ALL, Explanation, explain
from geonode_runtime.causes.fitting import FIRST, Problem
from geonode_runtime.causes.kinds import KINDS
from geonode_runtime.posterior.rules import ODD, STRANGE
from geonode_runtime.remedies import DILUTE
from geonode_runtime.shapes import NO_BLANK
from geonode_runtime.unknowns import Unknown
from geonode_runtime.verdicts import Quantification

LARGER = 1.3
"""A refused spectrum this many times as large as every standard's may be of a sample too concentrated."""
ELSEWHERE = (
    "the answer knows nothing of that cause, and its 95 % set does not hold the concentration without it: put the "
    "cause right and measure again before the answer is used"
)
FEWEST_WAVELENGTHS = 8
"""Of fewer nothing is explained."""
ARRAYS = ("wavelengths", "levels", "scale", "grid", "weights", "residual", "centre")
WORDS = ("wavelength_unit", "signal", "unit")
LATER = ("fault", "highest", "usable")
"""Facts that earlier files do not hold."""


@dataclass(frozen=True)
class Explainer:
    """What explaining needs of the standards, all of it as measured: causes act there, before any preprocessing.

    Attributes:
        wavelengths: ``[V]``. levels: ``[n, V]`` mean spectra of the standards' levels. scale: ``[V]`` standard
            deviation of the noise of one spectrum.
        grid: ``[K]`` concentrations, ascending; between them the curve is interpolated by straight lines.
        weights, residual, centre: ``[K, n]``, ``[n, V]``, ``[V]``; the curve on the grid is
            ``centre + weights @ residual``.
        ignored: names of causes that the preprocessing takes away: they may be there as well, and are not named.
        textbook: limit of Q by noise alone.
        silent: whether no curve can be trusted: the standards make none, do not respond, or contradict each other so
            that no sound ones are left.
        fault: what the standards themselves are at fault for, a clause; empty of sound ones. highest: the highest
            standard; None in files of before. usable: whether they respond, or PLS answers.
        wavelength_unit: " nm" or nothing, with its space. signal: what a spectrum is called in a sentence. unit: of
            concentration.
        kinds: the causes, by name.
    """

    wavelengths: np.ndarray
    levels: np.ndarray
    scale: np.ndarray
    grid: np.ndarray
    weights: np.ndarray
    residual: np.ndarray
    centre: np.ndarray
    ignored: tuple[str, ...]
    textbook: float
    silent: bool
    wavelength_unit: str
    signal: str
    unit: str
    fault: str = ""
    highest: float | None = None
    usable: bool = True
    kinds: Mapping[str, type[Cause]] = field(default_factory=lambda: KINDS)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays, and what else there is, for JSON."""
        facts = {name: getattr(self, name) for name in ("textbook", "silent", *LATER, *WORDS)}
        return {name: getattr(self, name) for name in ARRAYS}, facts | {"ignored": list(self.ignored)}

    @classmethod
    def from_state(cls, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> Explainer:
        """From the ``arrays`` and ``facts`` of `state`."""
        rest = {name: facts[name] for name in ("textbook", "silent", *WORDS)}
        rest |= {name: facts[name] for name in LATER if name in facts}
        return cls(**{name: arrays[name] for name in ARRAYS}, **rest, ignored=tuple(facts["ignored"]))

    def explained(self, unknown: Unknown) -> Explanation | None:
        """Why ``unknown``, aligned but not preprocessed, lies off the curve; None of too few wavelengths."""
        usable = unknown.usable
        if usable.sum() < FEWEST_WAVELENGTHS:
            return None
        residual, centre = self.residual[:, usable], self.centre[usable]
        spread = np.interp(np.linspace(0.0, 1.0, FIRST), np.linspace(0.0, 1.0, len(self.grid)), self.grid)
        problem = Problem(
            unknown.spectra.mean(axis=0)[usable],
            self.wavelengths[usable],
            self.scale[usable] / np.sqrt(len(unknown.spectra)),
            lambda c: centre + self._weights_at(c) @ residual,
            np.unique(spread),
            tuple(self.kinds[name]() for name in self.ignored),
            self.highest,
        )
        return explain(problem, self.wavelength_unit, self.signal, self.kinds)

    def _weights_at(self, c: np.ndarray) -> np.ndarray:
        k = np.clip(np.searchsorted(self.grid, c) - 1, 0, len(self.grid) - 2)
        share = ((c - self.grid[k]) / (self.grid[k + 1] - self.grid[k]))[:, None]
        return (1.0 - share) * self.weights[k] + share * self.weights[k + 1]

    def larger(self, unknown: Unknown) -> float:
        """Size (root mean square) of a spectrum as measured ÷ that of the largest standard's."""
        usable = unknown.usable
        largest = float(np.linalg.norm(self.levels[:, usable], axis=1).max())
        size = float(np.linalg.norm(unknown.spectra.mean(axis=0)[usable]))
        return size / largest if largest > 0.0 else 1.0


@dataclass(frozen=True)
class Explaining(Quantification):
    """A `Quantification` that can explain itself.

    Attributes:
        unknown: what was asked, aligned, not preprocessed. name: of the unknown.
    """

    unknown: Unknown = field(kw_only=True, repr=False, compare=False)
    name: str = field(kw_only=True, compare=False)

    @property
    def explainer(self) -> Explainer | None:
        """Of the standards that answered; None where they are not known."""
        raise NotImplementedError

    @cached_property
    def explanation(self) -> Explanation | None:
        """Where and why the spectrum lies off the curve; None where there is nothing to say (see above)."""
        known = self.explainer
        if known is None:
            return None
        refused, outside = self.verdict == "does not match", self.verdict == "outside calibrated range"
        if known.silent or not (refused or (self._strange(known) and not known.fault)):
            return None
        found = known.explained(self.unknown)
        if refused and not known.fault:
            return found
        if found is None or found.cause is None or found.explained < NEARLY_ALL:
            return None
        return None if outside and not known.kinds[found.cause].other_quantity else found

    def _strange(self, known: Explainer) -> bool:
        """Whether the spectrum holds more that the standards do not than noise explains."""
        if self.posterior is not None:
            return self.posterior.strange > STRANGE or self.q > ODD
        return self.q > known.textbook

    @property
    def why(self) -> tuple[str, ...]:
        """The sentences of `explanation`, and what the standards themselves are at fault for where that matters; none
        where there is nothing to explain. Of a spectrum that is refused and far larger than every standard's the first
        thing to think of is a sample too concentrated for the range or for the detector; where a note advises already
        to dilute it, it is not said again, nor where the standards are what is to be mended."""
        known = self.explainer
        if known is None:
            return ()
        said = () if self.explanation is None else self.explanation.sentences(known.unit)
        said = (*said, *self._elsewhere(), *self._blamed(known))
        asked = self.verdict == "does not match" and known.usable
        found = self.explanation
        if found is not None and found.cause is not None and known.kinds[found.cause].other_quantity:
            return said  # its size is none of the standards' quantity
        larger = known.larger(self.unknown) if asked else 1.0
        if larger < LARGER or any(note.endswith(DILUTE) for note in self.notes):
            return said
        return (
            f"the spectrum is {larger:.2g} times as large as that of any standard: the sample may be too concentrated, "
            "or the detector at its limit; dilute it and measure again",
            *said,
        )

    def _elsewhere(self) -> tuple[str, ...]:
        """That the answer does not hold what the cause leads to, where it does not: sets know of no cause."""
        found = self.explanation
        if found is None or found.corrected is None or not self.matches:
            return ()
        true = found.corrected * self.dilution
        held = ((c.open_low or c.low <= true) and (c.open_high or true <= c.high) for c in self.verdict_components)
        return () if any(held) else (ELSEWHERE,)

    def _blamed(self, known: Explainer) -> tuple[str, ...]:
        """What the standards are at fault for: that no cause is known, or that zero is not ruled out."""
        if not known.fault:
            return ()
        if self.verdict == "does not match":
            if self.explanation is None:
                return (f"no cause is looked for, for the standards are at fault themselves: {known.fault}",)
            return (f"take this with caution, for the standards are not without fault: {known.fault}",)
        if not any(note.endswith(NO_BLANK) for note in self.notes):
            return ()
        return (f"the measurement tells it from a blank, and these standards do not: {known.fault}",)

    def explanation_dict(self) -> dict[str, Any] | None:
        """The explanation in plain dictionaries, lists and numbers; None where there is none."""
        known, found = self.explainer, self.explanation
        return None if known is None or found is None else found.to_dict(known.unit)


@dataclass(frozen=True)
class ExportedAnswer(Explaining):
    """The answer of an exported model.

    Attributes:
        known: what explains it; None for a file that holds none.
    """

    known: Explainer | None = field(kw_only=True, repr=False, compare=False)

    @property
    def explainer(self) -> Explainer | None:
        """Of the file."""
        return self.known

    @property
    def why(self) -> tuple[str, ...]:
        """As of every answer; of a file without causes, where to ask for them."""
        if self.known is None and self.verdict == "does not match":
            return ("the file holds nothing to tell it by: export the model anew, or ask geonode quantify",)
        return super().why
