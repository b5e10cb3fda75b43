"""What to do about an answer that is none, and when: no remedy for the unknown mends standards that do not respond."""

from __future__ import annotations

from dataclasses import dataclass

from geonode_runtime.sets import ConcentrationSet

DILUTE = "dilute it into the range and measure again"
MAY_BE_ABOVE = f"it may lie above the standards' range: if so, {DILUTE}"
DILUTED_APART = "dilute it by a known factor and measure again: only the true one fits both"
SILENT = "these standards do not respond"
"""What keeps standards from quantifying anything, where a file of before does not say it."""


@dataclass(frozen=True)
class VerdictRules:
    """What the verdict depends on besides the sets: the calibrated range, the limits, and whether a curve is the right
    model of the standards at all."""

    lowest: float
    highest: float
    has_blank: bool
    q_limit: float
    t2_limit: float
    is_curve: bool = True
    """False where PLS is the better model of the standards."""
    usable: bool = True
    """False of standards that do not respond: they quantify nothing, and measuring the unknown in another way mends
    nothing."""
    declines: str = ""
    """Why nothing is quantified with the standards, a clause; empty where it is, and in files of before. Besides those
    that do not respond there are those that are found hardly better than by a guess when they are left out."""


def declined(rules: VerdictRules, said: tuple[str, tuple[str, ...]]) -> tuple[str, tuple[str, ...]]:
    """The verdict and its notes; ambiguous in place of each that names a concentration, or where there is none, with
    standards that quantify nothing."""
    why = rules.declines or ("" if rules.usable else SILENT)
    if not why or said[0] in ("does not match", "ambiguous", "no curve"):
        return said
    return "ambiguous", (f"{why}: nothing is quantified with them, whatever the spectrum",)


def into_the_range(rules: VerdictRules) -> str:
    """The advice to dilute, a clause to stand behind a reason; empty of standards that do not respond."""
    return f"; {DILUTE}" if rules.usable else ""


def remedy(rules: VerdictRules, one: ConcentrationSet) -> str:
    """What tells the concentrations of a set apart, a clause to stand behind the reason; empty where nothing simple
    does, and of standards that do not respond. A range without an upper end may be of a sample above the standards',
    unless it has all of theirs in it and its best point lies in their lower half."""
    if not rules.usable:
        return ""
    middle = 0.5 * (rules.lowest + rules.highest)
    if any(c.open_high and (c.low > rules.lowest or c.estimate > middle) for c in one.components):
        return f"; {MAY_BE_ABOVE}"
    return f"; {DILUTED_APART}" if len(one.components) > 1 else ""
