"""From the posterior to a verdict: one table, in this order.

1. *none of these* has more than a quarter of the probability: does not match;
2. less than 5 % of the rest lies within the calibrated range: outside calibrated range;
3. the reported set or that of 95 % has several pieces or an end out of reach, or the reported one is wider than 0.8 of
   the range: ambiguous;
4. a blank was measured and the 95 % set includes zero: below detection limit;
5. otherwise: quantified.

Where no curve over concentration describes the standards, the same rules hold (PLS and PCR are among the posterior's
candidates) and a note says that PLS is the better instrument.
"""

from __future__ import annotations

from geonode.calibration.posterior.density import Posterior
from geonode_runtime.sets import ConcentrationSet
from geonode_runtime.verdicts import VerdictRules, loose_end

REFUSED = 0.25
"""On simulated families left out of training 0.1 % of genuine unknowns get so much, and 98 % of foreign spectra."""
INSIDE = 0.05
STRANGE = 0.3
"""1 % of genuine unknowns and half of those with an interferent (2 to 200 % of the response) there."""
NO_CURVE = (
    "this assay is no curve: use PLS (a one-dimensional curve does not describe the standards; the posterior follows "
    "its regressions)"
)


def judge(
    rules: VerdictRules, posterior: Posterior, strange: float, found: ConcentrationSet, at_95: ConcentrationSet
) -> tuple[str, tuple[str, ...]]:
    """The verdict and the notes that explain it.

    Args:
        rules: range, blank, and whether a curve describes the standards; its limits of misfit are not used.
        strange: probability that the spectrum holds something that the standards do not.
        found, at_95: the reported set and that of 95 %.
    """
    notes = [] if rules.is_curve else [NO_CURVE]
    said, reason = _verdict(rules, posterior, found, at_95)
    if said != "does not match" and strange > STRANGE:
        notes.append(
            f"the spectrum holds something that the standards do not (probability {strange:.2f}): an interferent or "
            "another matrix may have moved the result"
        )
    return said, (*((reason,) if reason else ()), *notes)


def _verdict(
    rules: VerdictRules, posterior: Posterior, found: ConcentrationSet, at_95: ConcentrationSet
) -> tuple[str, str]:
    if posterior.none > REFUSED:
        return "does not match", (
            f"with probability {posterior.none:.2f} no concentration of this assay gives this spectrum"
        )
    under, over = float(posterior.below_of(rules.lowest)), 1.0 - float(posterior.below_of(rules.highest))
    if 1.0 - under - over < INSIDE:
        side = "above" if over > under else "below"
        limits = f"{rules.lowest:g} to {rules.highest:g}"
        return "outside calibrated range", (
            f"{side} the calibrated range: with probability {max(over, under):.3f} the concentration lies {side} the "
            f"standards' range {limits}"
        )
    doubt = _doubt(rules, found, at_95)
    if doubt:
        return "ambiguous", doubt
    (only,) = at_95.components
    if rules.has_blank and only.low <= 1e-6 * (rules.highest - rules.lowest):
        return "below detection limit", "the 95 % set includes zero: it cannot be told from a blank"
    if not rules.lowest <= found.best.estimate <= rules.highest:
        return "quantified", (
            f"the estimate lies outside the standards' range {rules.lowest:g} to {rules.highest:g}, but the 95 % set "
            "reaches into it"
        )
    return "quantified", ""


def _doubt(rules: VerdictRules, found: ConcentrationSet, at_95: ConcentrationSet) -> str:
    for one in (found, at_95):
        if len(one.components) > 1:
            percent = f"{100 * one.level:g} %"
            return f"{len(one.components)} separate ranges of concentration explain the spectrum (the {percent} set)"
        if said := loose_end(rules, one, reported=one is found):
            return said
    return ""
