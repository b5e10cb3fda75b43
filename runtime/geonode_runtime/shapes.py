"""What the shape of a spectrum says where sets and limits that were learned from the standards do not: that it is no
blank's, that it lies on the extension of the curve beyond the highest standard, or that it has next to nothing of what
the standards show.

All look at spectra as vectors of the space of wavelengths, whitened by the noise, with t the level of the highest
standard and m_i those of the others.

*No blank's.* The part of x − m_0 along the step m_1 − m_0 from the blank to the first standard above it. Where it is a
good part of the step and many times the noise, something is there, however little of it the standards can tell.

*Beyond the top.* x − m_t is compared with the chords m_t − m_i. Where one of them, made longer, leaves no more than
:data:`BEYOND` of it, and no standard lies further along that chord than the highest, extrapolation explains the
spectrum: samples of two or more forms of an analyte in equilibrium lie on such lines (Beer–Lambert, a binding site, an
acid and its base), however far out.

*Negated.* Whether −x lies between the standards, and x is far from all of them.

*Alien.* The part of x that no point of the line through the standards (and its extensions) explains, ÷ the whole of it.
Noise, another dye and a pure baseline leave nearly all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from geonode_runtime.remedies import VerdictRules, into_the_range
from geonode_runtime.sets import Component, ConcentrationSet

PLAINLY_THERE = 50.0
"""A spectrum so many times the noise from the blank's is none, …"""
ON_THE_WAY = 0.2
"""… if it has gone this share of the way to the first standard above the blank. Of 326 simulated blanks of families
left out of training whose 95 % set includes zero, 4.9 % have (an offset or a drift of theirs), and 30 % of 116 samples
with such a set, which are 1.8 % of all samples inside the range."""
NO_BLANK = "it is no blank's, but how little of the analyte gives it the standards cannot tell"
NEGATED = "with its sign changed the spectrum would be one of these standards' assay, and as it is it is far from all"
BEYOND = 0.1
"""Largest share (of the length) that the extension may leave unexplained."""
FARTHEST_INSIDE = 0.03
"""So far beyond the highest standard, in lengths of the longest chord, is no further than errors of path and volume."""
PLAINLY_BEYOND = 0.1
"""From here on a spectrum that several concentrations would explain counts as beyond too."""
ALIEN = 0.5
"""A spectrum of whose length more than this is nothing that the standards show is none of theirs."""
_PLAIN = 10.0
"""A spectrum of more than so many times the square of that noise is no noise."""
_NOISY = 4.0
"""Noise is given as roughness along the wavelengths; with drifts and ripples it is up to twice that."""


@dataclass(frozen=True)
class Shapes:
    """The level means ``[n, W]`` of the standards, ascending in concentration, preprocessed as unknowns are, and the
    noise ``scale [W]`` of a spectrum; ``decides``: whether the learned limits of "does not match" are so wide, or rest
    on so few standards, that a foreign spectrum may pass them."""

    spectra: np.ndarray
    scale: np.ndarray
    decides: bool

    def above_blank(self, spectrum: np.ndarray, usable: np.ndarray | None = None) -> float:
        """How far ``spectrum [W]`` lies from the lowest standard towards the next one, in standard deviations of the
        noise; 0 where it has gone less than `ON_THE_WAY`."""
        levels, x = self._white(spectrum, usable)
        step = levels[1] - levels[0]
        square = float(step @ step)
        along = float((x - levels[0]) @ step) / square if square > 0.0 else 0.0
        return along * float(np.sqrt(square)) if along >= ON_THE_WAY else 0.0

    def beyond_top(self, spectrum: np.ndarray, usable: np.ndarray | None = None) -> float:
        """How far beyond the highest standard ``spectrum [W]`` lies, in lengths of the longest chord; 0 where
        no chord explains it."""
        levels, x = self._white(spectrum, usable)
        top, others = levels[-1], levels[:-1]
        step, chords = x - top, top - others
        width = _NOISY * len(x)
        longest = float((chords**2).sum(axis=1).max())
        best = (1.0, 0.0)
        for chord in chords:
            square = float(chord @ chord)
            along = float(step @ chord) / square if square > 0.0 else 0.0
            reach = along * np.sqrt(square / longest) if longest > 0.0 else 0.0
            if reach < FARTHEST_INSIDE or square < 2.0 * width or (chords @ chord < 0.0).any():
                continue  # within errors, a chord of noise, or a curve that has turned back by its end
            # What is left over is as noisy as the spectrum and the two standards of the chord.
            noise = width * (1.0 + (1.0 + along) ** 2 + along**2)
            left = max(float(((step - along * chord) ** 2).sum()) - noise, 0.0)
            best = min(best, (float(np.sqrt(left / float(step @ step))), float(reach)))
        return best[1] if best[0] <= BEYOND else 0.0

    def carried_noise(self, spectrum: np.ndarray, usable: np.ndarray | None = None) -> float:
        """By how much the square of a misfit grows that is noise where ``spectrum [W]`` is explained a lengths of the
        longest chord beyond the highest standard: that standard's noise counts (1 + a)² there and that of the chord's
        other end a², beside the spectrum's own; (1 + (1 + a)² + a²)/2, which is 1 at the standard itself."""
        along = self.beyond_top(spectrum, usable)
        return 0.5 * (1.0 + (1.0 + along) ** 2 + along**2)

    def alien(self, spectrum: np.ndarray, usable: np.ndarray | None = None) -> float:
        """The share (of its length) of ``spectrum [W]`` that no point of the line through the standards explains."""
        levels, x = self._white(spectrum, usable)
        zero, noise = np.zeros_like(x), _NOISY * len(x)
        size = float(x @ x)
        if size <= noise:  # no signal: a blank among the standards explains it, and nothing else does
            return 0.0 if float((levels**2).sum(axis=1).min()) <= 2.0 * noise else 1.0
        within = min(_distance(x, a, b, 0.0, 1.0) for a, b in pairwise(levels))
        below, above = _distance(x, zero, levels[0], 0.0, 1.0), _distance(x, levels[-2], levels[-1], 1.0, np.inf)
        left = min(within, below, above) - noise
        return float(np.sqrt(max(left, 0.0) / size))

    def negated(self, spectrum: np.ndarray, usable: np.ndarray | None = None) -> bool:
        """Whether ``spectrum [W]`` with its sign changed lies between the standards, or between nothing and the lowest,
        and as it is far from all of them."""
        levels, x = self._white(spectrum, usable)
        size, noise = float(x @ x), _NOISY * len(x)
        if size <= _PLAIN * noise:
            return False
        pieces = [(np.zeros_like(x), levels[0]), *pairwise(levels)]
        turned, own = (min(_distance(one, a, b, 0.0, 1.0) for a, b in pieces) - noise for one in (-x, x))
        return turned <= BEYOND**2 * size and own > ALIEN**2 * size

    def _white(self, spectrum: np.ndarray, usable: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        keep = np.ones(len(self.scale), dtype=bool) if usable is None else usable
        return (self.spectra / self.scale)[:, keep], (spectrum / self.scale)[keep]


def _distance(x: np.ndarray, start: np.ndarray, end: np.ndarray, first: float, last: float) -> float:
    """From ``x`` to the points start + t (end − start), first ≤ t ≤ last, squared."""
    step = end - start
    square = float(step @ step)
    t = float(np.clip((x - start) @ step / square, first, last)) if square > 0.0 else 0.0
    return float(((x - start - t * step) ** 2).sum())


def judged_by_shape(
    shapes: Shapes | None,
    rules: VerdictRules,
    spectrum: np.ndarray,
    usable: np.ndarray | None,
    said: tuple[str, tuple[str, ...]],
    sets: tuple[ConcentrationSet, ConcentrationSet],
) -> tuple[tuple[str, tuple[str, ...]], tuple[ConcentrationSet, ConcentrationSet]]:
    """The verdict (with its notes) and the sets that stand when the shape of the ``spectrum [W]`` is looked at too.

    Args:
        shapes: of the standards; None where they are not kept (models exported before).
        rules: of verdicts. usable: ``[W]``, None where all wavelengths are.
        said: verdict and notes by the sets and limits. sets: at the level asked for and at 95 %.
    """
    if shapes is None or not rules.is_curve:
        return said, sets
    if shapes.negated(spectrum, usable):
        return ("does not match", (f"does not match: {NEGATED}",)), sets  # and no advice to dilute it
    said = _seen(shapes, rules, spectrum, usable, said)
    verdict, notes = said
    if rules.usable and not rules.declines and verdict in ("does not match", "ambiguous", "outside calibrated range"):
        beyond = shapes.beyond_top(spectrum, usable)
        if said_above(verdict, rules, sets[1].components):
            return (verdict, (notes[0] + into_the_range(rules), *notes[1:])), sets
        if beyond >= (FARTHEST_INSIDE if verdict == "does not match" else PLAINLY_BEYOND):
            note = f"the spectrum is that of the standards carried on beyond the highest, {rules.highest:g}"
            found, at_95 = (replace(one, components=(above_all(one, rules.highest),)) for one in sets)
            return ("outside calibrated range", (note + into_the_range(rules),)), (found, at_95)
    if shapes.decides and verdict in ("quantified", "ambiguous", "outside calibrated range"):
        share = shapes.alien(spectrum, usable)
        if share > ALIEN:
            note = (
                f"does not match: {100 * share:.0f} % of the spectrum (of its length) is nothing that the standards "
                "show; their limits are too wide to tell, so its shape decides"
            )
            return ("does not match", (note,)), sets
    return said, sets


def carried_on(
    shapes: Shapes | None,
    rules: VerdictRules,
    spectrum: np.ndarray,
    usable: np.ndarray | None,
    said: str,
    at_95: ConcentrationSet,
) -> float | None:
    """`Shapes.carried_noise` where ``spectrum [W]`` is ``said`` to lie above the range, by ``at_95``, the set of 95 %,
    and the line through the standards, carried on, leaves no more than `BEYOND` of it unexplained; else None. Noise
    that is said to lie there is left nearly whole."""
    if shapes is None or not rules.is_curve or not said_above(said, rules, at_95.components):
        return None
    return shapes.carried_noise(spectrum, usable) if shapes.alien(spectrum, usable) <= BEYOND else None


def said_above(verdict: str, rules: VerdictRules, at_95: Sequence[Component]) -> bool:
    """Whether the verdict is that all of the set of 95 %, whose pieces these are, lies above the highest standard."""
    return verdict == "outside calibrated range" and all(c.low >= rules.highest for c in at_95)


def _seen(
    shapes: Shapes,
    rules: VerdictRules,
    spectrum: np.ndarray,
    usable: np.ndarray | None,
    said: tuple[str, tuple[str, ...]],
) -> tuple[str, tuple[str, ...]]:
    """The verdict and its notes; ambiguous in place of *below detection limit* where the spectrum is no blank's."""
    if said[0] != "below detection limit" or rules.lowest != 0.0:
        return said
    times = shapes.above_blank(spectrum, usable)
    if times <= PLAINLY_THERE:
        return said
    return "ambiguous", (
        f"the 95 % set includes zero, yet the spectrum lies {times:.2g} times the noise from the blank's, towards the "
        f"lowest standard: {NO_BLANK}",
    )


def above_all(one: ConcentrationSet, highest: float) -> Component:
    """Everything above the highest standard."""
    return replace(
        one.best,
        low=highest,
        high=max(highest, *(c.high for c in one.components)),
        open_low=False,
        open_high=True,
        estimate=highest,
        probability=1.0,
        mean=highest,
    )
