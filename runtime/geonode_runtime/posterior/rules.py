"""From the posterior to a verdict: one table, the first row that applies.

1. *none of these* has more than a quarter of the probability, or the misfit outside the span of the standards is more
   than four times (square) that of the worst standard left out: does not match. Where more than 0.9 of the rest lies
   above the highest standard a note says so, and to dilute: it may be a sample too concentrated;
2. no curve over concentration describes the standards: no curve, and PLS answers;
3. less than 5 % of the rest lies within the calibrated range: outside calibrated range;
4. the reported set or that of 95 % has several pieces or an end out of reach, or the reported one is wider than 0.8 of
   the range: ambiguous. Pieces that only a gap beyond the calibrated range parts are one, and so are a piece that
   includes zero and one that begins below the first standard above a blank, and pieces that lie closer than a standard
   deviation of theirs; and where the spectrum is an end
   standard's, sets end where the search did (:mod:`geonode_runtime.posterior.ends`), which a note says;
5. a blank was measured and the 95 % set includes zero: below detection limit, or ambiguous where the spectrum is no
   blank's (:mod:`geonode_runtime.shapes`);
6. the reported set lies below the lowest standard or above the highest: outside calibrated range;
7. otherwise: quantified.

Of standards that do not respond, or are found hardly better than by a guess, 3, 5, 6 and 7 are ambiguous: they
quantify nothing.

At last the shape of the spectrum is looked at (there too): what lies on the extension of the curve is above the
calibrated range and not foreign, and what has next to nothing of the standards' shapes does not match.

One note stands beside any verdict but *does not match*, and before its reasons: that the spectrum holds something
strange, which may have moved all that they say. Above the range
nearly every spectrum is strange to a network that saw few from there; where the standards' own shapes carried on are
all but a tenth of it, its misfit alone counts, beyond what the standards' own noise makes of it when it is carried on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from geonode_runtime.answers import Facts, by_pls
from geonode_runtime.pls import PLSRegression
from geonode_runtime.posterior.density import SMOOTHING, Posterior
from geonode_runtime.posterior.ends import ended
from geonode_runtime.posterior.standards import PosteriorStandards
from geonode_runtime.remedies import DILUTE, VerdictRules, declined
from geonode_runtime.sets import Component, ConcentrationSet, close, together
from geonode_runtime.shapes import above_all, carried_on, judged_by_shape
from geonode_runtime.verdicts import doubt, within

REFUSED = 0.25
"""On simulated families left out of training 0.1 % of genuine unknowns get so much, and 98 % of foreign spectra."""
INSIDE = 0.05
FAR = 4.0
"""Of genuine simulated unknowns inside the range 0.3 % are so far off (of end levels left out 2.6 %), and 43 % of those
with an interferent of 2 to 200 % of the response."""
ODD = 2.0
"""1 % of genuine unknowns inside the range are farther off than that, and 56 % of those with an interferent."""
STRANGE = 0.15
"""On 112 assays of simulated families left out of training 4 % of genuine unknowns there, 62 % of those with an
interferent (2 to 200 % of the response), 97 % of those with one of 30 % of it, 95 % with scattering of 10 % of the
signal, and 95 % of spectra of noise."""
TOO_CONCENTRATED = 0.9
"""A spectrum that does not match may be of a sample too concentrated where so much of the rest of the probability lies
above the highest standard. Of genuine simulated samples at 3 to 10 times the highest that do not match 54 % have that,
of noise 5 %, of samples inside the range with an interferent or scattering, and of other assays', 1 % or less."""

Sets = tuple[ConcentrationSet, ConcentrationSet]


def judge(
    facts: Facts,
    known: PosteriorStandards,
    posterior: Posterior,
    strange: float,
    stray: float,
    sets: Sets,
    spectrum: np.ndarray,
    usable: np.ndarray | None,
) -> tuple[str, tuple[str, ...], Sets, PLSRegression | None]:
    """The verdict, the notes that explain it, the sets that stand, and PLS where it answers.

    Args:
        facts: of the standards; their limits of misfit are not used. known: what the posterior knows of them.
        strange: probability that the spectrum holds something that the standards do not.
        stray: its misfit outside their span ÷ that of the worst of them left out, both square.
        sets: the reported one and that of 95 %.
        spectrum: ``[W]``, the unknown's mean. usable: ``[W]``, None where all wavelengths are.
    """
    rules, pls = facts.rules, None
    sets = joined(rules, known.levels, sets[0]), joined(rules, known.levels, sets[1])
    if posterior.none > REFUSED or stray > FAR:
        said = "does not match"
        reasons = [
            f"the probability that no concentration of this assay gives this spectrum is {posterior.none:.2f}, and "
            f"above {REFUSED:g} none is given"
            if posterior.none > REFUSED
            else f"its misfit is {stray:.3g} times (square) that of the worst standard left out",
            *_too_concentrated(rules, posterior),
        ]
    elif facts.pls is not None:
        said, pls = "no curve", facts.pls
        reasons, sets = by_pls(facts, pls, spectrum, usable, sets)
    else:
        sets, at_the_end = ended(known, posterior, spectrum, usable, sets)
        first, *why = _verdict(rules, posterior, *sets)
        said, reasons = declined(rules, (first, tuple(why)))
        if at_the_end and said == "quantified":
            reasons = (*reasons, at_the_end)
        end = posterior.edges[-1] - SMOOTHING * posterior.span  # a sliver of the last cell is none of the search
        if said == "outside calibrated range" and all(c.estimate >= end for c in sets[0].components):
            # Beyond what was searched there is no number: all that is known is that it is more than the highest.
            first, second = (replace(one, components=(above_all(one, rules.highest),)) for one in sets)
            sets = first, second if all(c.low >= rules.highest for c in sets[1].components) else sets[1]
    (said, reasons), sets = judged_by_shape(facts.shapes, rules, spectrum, usable, (said, tuple(reasons)), sets)
    grown = carried_on(facts.shapes, rules, spectrum, usable, said, sets[1])
    odd = stray > ODD or strange > STRANGE if grown is None else stray > ODD * grown
    if said != "does not match" and odd:
        # It questions all that the others say; of several curves PLS's own notes say what the number is.
        note = _strange(strange, stray)
        reasons = (*reasons, note) if said == "no curve" else (note, *reasons)
    return said, reasons, sets, pls


def _strange(strange: float, stray: float) -> str:
    """Of a spectrum as a whole, whatever its concentration; a cause that fits is named in a line of its own."""
    return (
        f"the spectrum holds something that the standards do not (probability {strange:.2f} that it does, misfit "
        f"{stray:.3g} times, square, that of the worst standard left out): the cause that is named, or where none is "
        "an interferent or another matrix, may have moved the result"
    )


def _too_concentrated(rules: VerdictRules, posterior: Posterior) -> list[str]:
    """Of a spectrum that does not match: that it may be a sample far above the range, where the curve is not known."""
    over = 1.0 - float(posterior.below_of(rules.highest))
    if over <= TOO_CONCENTRATED or not rules.usable:
        return []
    return [
        f"were it a sample of this assay, it would lie above the standards' range with probability {over:.2f}; "
        f"if no cause is named that explains the spectrum, {DILUTE}"
    ]


def joined(rules: VerdictRules, levels: np.ndarray, one: ConcentrationSet) -> ConcentrationSet:
    """The set with pieces that only a gap beyond the calibrated range parts taken as one, and those from zero on that
    only a gap below the first standard (of ``levels [n]``) above a blank parts: no standard is there that could tell
    them apart. So are pieces so close that the answer could not tell them apart."""
    pieces = sorted(one.components, key=lambda c: c.low)
    blank = levels[0] == 0.0 and zero_within(rules, pieces[0])
    found = pieces[:1]
    for piece in pieces[1:]:
        last = found[-1]
        from_zero = blank and len(found) == 1 and piece.low < levels[1]
        near = close(last, piece, rules.highest - rules.lowest)
        if last.high < rules.highest and piece.low > rules.lowest and not from_zero and not near:
            found.append(piece)
        else:
            found[-1] = together(last, piece)
    return replace(one, components=tuple(sorted(found, key=lambda c: -c.probability)))


def zero_within(rules: VerdictRules, piece: Component) -> bool:
    """Whether a piece includes zero, of which a blank was measured."""
    return rules.has_blank and piece.low <= 1e-6 * (rules.highest - rules.lowest)


def _verdict(
    rules: VerdictRules, posterior: Posterior, found: ConcentrationSet, at_95: ConcentrationSet
) -> tuple[str, ...]:
    """Rows 3 to 7: the verdict, and the reasons."""
    under, over = float(posterior.below_of(rules.lowest)), 1.0 - float(posterior.below_of(rules.highest))
    if 1.0 - under - over < INSIDE:
        side = "above" if over > under else "below"
        limits = f"{rules.lowest:g} to {rules.highest:g}"
        return (
            "outside calibrated range",
            f"with probability {max(over, under):.3f} the concentration lies {side} the standards' range {limits}, if "
            "the spectrum is of this assay",
        )
    doubtful = doubt(rules, found, at_95)
    if doubtful:
        return "ambiguous", doubtful
    (only,) = at_95.components
    if zero_within(rules, only):
        return "below detection limit", "the 95 % set includes zero: it cannot be told from a blank"
    said, reasons = within(rules, found)
    return said, *reasons
