"""The answer for one unknown: concentration, set, components, verdict and the reasons for it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from geonode_runtime.distributions import student_quantile
from geonode_runtime.figures import figure
from geonode_runtime.pls import PLSRegression
from geonode_runtime.remedies import VerdictRules, into_the_range, remedy
from geonode_runtime.sets import PRIOR, Component, ConcentrationSet

MEANING = {
    "quantified": "one range of concentration explains the spectrum, at the level asked for and at 95 %",
    "ambiguous": "several separate ranges do, or one as wide as most of the calibrated range, or one without an end "
    "within reach, or one that includes zero though the spectrum is no blank's, or the standards do not respond, or "
    "are found hardly better than by a guess",
    "below detection limit": "the 95 % set includes zero, a blank was among the standards, and the spectrum may be one",
    "outside calibrated range": "every concentration of the reported set or of that of 95 % lies beyond the standards",
    "does not match": "the spectrum is too unlike what is predicted at any concentration; no estimate is given",
    "no curve": "PLS finds standards that are left out much better than a curve does: its value and its error stand",
}
VERDICTS = tuple(MEANING)
LEARNED = "learned on simulated unknowns"
"""What stands in place of a prior where the posterior is the learned one; an exported file has weights of its own."""
NO_MATCH = "no concentration is given, for the spectrum is too unlike what these standards predict at any"
UNDETERMINED = 0.8
"""A set wider than this fraction of the calibrated range says nothing about the concentration."""
VERDICT_LEVEL = 0.95
FEWEST_CHECKED = 4
"""Fewer standards than this leave at most one interior one to check the curve with, and sets then cover anything
between 26 and 100 % at nominal 80 % (docs/calibration.md): no interval is claimed."""


@dataclass(frozen=True)
class PosteriorMasses:
    """What the learned posterior says besides the set.

    Attributes:
        below, above: probability that the concentration lies beyond the searched range, where one explains the spectrum
            at all. none: that none does. strange: that the spectrum holds something that the standards do not.
    """

    below: float
    above: float
    none: float
    strange: float


@dataclass(frozen=True)
class Quantification:
    """What is known of one unknown's concentration, in user units, dilution undone.

    Attributes:
        verdict: one of ``VERDICTS``.
        nearest: where the predicted spectrum lies nearest within the most probable component of the set; for
            ``ambiguous`` only the best of several. Of a spectrum that does not match it says nothing of the sample.
        low, high: ends of the component that holds it, at ``level``; None where the data set no limit, and where the
            spectrum does not match.
        std: posterior standard deviation of that component; None where the spectrum does not match.
        level: nominal coverage of the set.
        components: all components of the set by descending probability; of a spectrum that does not match, the ranges
            where the curve comes nearest to it.
        verdict_components: those of the 95 % set, on which the verdict rests.
        q, q_limit: residual outside the span of the standards per degree of freedom, and its limit.
        t2, t2_limit: squared distance from the curve within that span, and its limit.
        replicates: spectra that were averaged. masked: wavelengths left out. dilution: the factor applied.
        attainable: the highest confidence that the standards alone can vouch for without a model, n/(n + 1).
        notes: sentences the reader must see beside the number.
        pls: the regression whose value the estimate is where the verdict is ``no curve``, else None; components, ends
            and std are then PLS's too.
        posterior: with ``method="posterior"`` its probabilities; None for the profile. There ``q`` and ``t2`` are
            multiples of the worst left-out standard's, without limits.
    """

    verdict: str
    nearest: float
    low: float | None
    high: float | None
    std: float | None
    level: float
    components: tuple[Component, ...]
    verdict_components: tuple[Component, ...]
    q: float
    q_limit: float
    t2: float
    t2_limit: float
    replicates: int
    masked: int
    dilution: float
    attainable: float
    notes: tuple[str, ...]
    pls: PLSRegression | None = None
    posterior: PosteriorMasses | None = None

    @property
    def matches(self) -> bool:
        """Whether some concentration predicts the spectrum at all."""
        return self.verdict != "does not match"

    @property
    def estimate(self) -> float | None:
        """The concentration; None where the spectrum does not match, of which only the ``nearest`` is known."""
        return self.nearest if self.matches else None

    @property
    def standards(self) -> int:
        """n, the levels of the calibration."""
        return round(self.attainable / (1.0 - self.attainable))

    def rests_on(self, level: float) -> str | None:
        """What an interval at ``level`` rests on: ``"standards"`` up to n/(n + 1); above it only on the ``"model"``'s
        Student distribution; None with fewer than four standards, where nothing checks the model."""
        if self.standards < FEWEST_CHECKED:
            return None
        return "standards" if level <= self.attainable + 1e-12 else "model"

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """Ends of the whole set where the standards vouch for its level; None for an end that cannot be claimed."""
        return self.enclosing if self._claimed("standards") else (None, None)

    @property
    def model_interval(self) -> tuple[float | None, float | None]:
        """The same at levels that no number of standards as small as this vouches for; it rests on the model alone."""
        return self.enclosing if self._claimed("model") else (None, None)

    def _claimed(self, by: str) -> bool:
        return self.matches and self.rests_on(self.level) == by

    @property
    def enclosing(self) -> tuple[float | None, float | None]:
        """Lower and upper end of the whole set, None where the data set no limit."""
        low = None if any(c.open_low for c in self.components) else min(c.low for c in self.components)
        high = None if any(c.open_high for c in self.components) else max(c.high for c in self.components)
        return low, high

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries, lists and numbers; a limit that does not exist is None.

        Where the spectrum does not match, there is no estimate and no interval, only the ``nearest`` concentration;
        where it is ambiguous, ``interval`` encloses all components. An interval above the level that the standards
        vouch for is ``model_interval``; with fewer than four standards there is neither (see `rests_on`).
        """
        matches = self.matches
        checked = self.rests_on(self.level) is not None
        return {
            "verdict": self.verdict,
            "estimate": self.estimate,
            "nearest": self.nearest,
            "interval": list(self.interval),
            "model_interval": list(self.model_interval),
            "interval_rests_on": self.rests_on(self.level) if matches else None,
            "std": self.std if checked else None,
            "level": self.level,
            "components": [_component(c, checked) for c in self.components] if matches else [],
            "components_95": [_component(c, checked) for c in self.verdict_components] if matches else [],
            "components_95_rest_on": self.rests_on(VERDICT_LEVEL) if matches else None,
            "q": self.q,
            "q_limit": _finite(self.q_limit),
            "t2": self.t2,
            "t2_limit": _finite(self.t2_limit),
            "replicates": self.replicates,
            "masked_wavelengths": self.masked,
            "dilution": self.dilution,
            "prior": PRIOR if self.posterior is None else LEARNED,
            "method": "profile" if self.posterior is None else "posterior",
            "probabilities": None if self.posterior is None else vars(self.posterior).copy(),
            "attainable_confidence": self.attainable,
            "pls": None if self.pls is None else {"rmsecv": self.std, "components": self.pls.components},
            "notes": list(self.notes),
        }

    def sentence(self, unit: str = "") -> str:
        """The result in one line, with ``unit`` behind every concentration."""
        unit = f" {unit}" if unit else ""
        if not self.matches:
            return f"does not match: {NO_MATCH}"
        if self.verdict == "outside calibrated range" and self.high is None and self.low == self.nearest:
            times = "" if self.dilution == 1.0 else f"{self.dilution:.6g} times "
            return f"outside calibrated range: above {figure(self.nearest, unit)}, {times}the highest standard"
        by = self.rests_on(self.level)
        if by is None:
            near = " or ".join(figure(c.estimate, unit, beside=c.size) for c in self.components)
            near = near if self.verdict == "ambiguous" else self.written(unit)
            return f"{self.verdict}: {near}, no interval can be claimed from {self.standards} standards"
        if self.pls is not None:
            (one,) = self.components
            return (
                f"{self.verdict}: use PLS, whose value is {self.written(unit)}, {100 * self.level:g} % interval "
                f"{_span(one, unit)} (cross-validated error {figure(one.std, unit, digits=3)}, "
                f"{self.pls.components} components)"
            )
        percent, at_most = f"{100 * self.level:g} %", f"{100 * self.attainable:.1f} %"
        own = (
            f"no {percent} interval that {self.standards} standards alone vouch for (at most {at_most}); "
            "the model's own"
        )
        if self.verdict == "ambiguous":
            several = len(self.components) > 1
            parts = [
                _span(c, unit) + (f" (probability {c.probability:.2f})" if several else "") for c in self.components
            ]
            return f"ambiguous, {f'{percent} set' if by == 'standards' else own}: {' or '.join(parts)}"
        interval = _span(self.components[0], unit)
        said = f"{percent} interval" if by == "standards" else own
        return f"{self.verdict}: {self.written(unit)}, {said} {interval}"

    def written(self, unit: str = "") -> str:
        """``nearest`` as it is written beside its interval, ``unit`` as it is behind it."""
        return figure(self.nearest, unit, beside=self.components[0].size)


def verdict(
    rules: VerdictRules, found: ConcentrationSet, at_95: ConcentrationSet, q: float, t2: float
) -> tuple[str, tuple[str, ...]]:
    """The verdict and the notes that explain it; ``found`` is the set that is reported, ``at_95`` that of 95 %.

    In this order: standards that lie on no curve, with which only the residual outside their span can tell a foreign
    spectrum; a spectrum that matches nowhere; a 95 % set that lies beyond the calibrated range; a set of several
    pieces, as wide as the range or with no end within reach, be it the reported one or that of 95 %; a 95 % set that
    includes a measured blank; a reported set that lies beyond the calibrated range. So `quantified` means one piece
    with two ends at the reported level and at 95 %, which reaches into the range at both. A set that does is compatible
    with the range, wherever in the set the estimate lies: a standard at the end of the range, measured again, is as
    often beyond the end as within.
    """
    if not rules.is_curve and q <= rules.q_limit:
        return "no curve", ()
    if q > rules.q_limit or (rules.is_curve and t2 > rules.t2_limit):
        reasons = []
        if q > rules.q_limit:
            reasons.append(f"the residual outside the standards' span is {q:.3g} (limit {rules.q_limit:.3g})")
        if rules.is_curve and t2 > rules.t2_limit:
            reasons.append(f"the distance from the curve is {t2:.3g} (limit {rules.t2_limit:.3g})")
        return "does not match", ("does not match: " + " and ".join(reasons),)
    if not any(c.low <= rules.highest and c.high >= rules.lowest for c in at_95.components):
        return "outside calibrated range", (f"the 95 % set lies outside {_range(rules)}",)
    doubtful = doubt(rules, found, at_95)
    if doubtful:
        return "ambiguous", (doubtful,)
    (only,) = at_95.components
    if rules.has_blank and only.low <= 0.0 <= only.high:
        return "below detection limit", ("the 95 % set includes zero: it cannot be told from a blank",)
    return within(rules, found)


def within(rules: VerdictRules, found: ConcentrationSet) -> tuple[str, tuple[str, ...]]:
    """The verdict, with its notes, on a reported set of one piece where that of 95 % reaches into the calibrated range:
    what is reported must reach into it too, for a result below the lowest standard or above the highest is none that
    the standards quantify."""
    (one,), percent = found.components, f"{100 * found.level:g} %"
    if one.high < rules.lowest:
        said = f"the {percent} set lies below {_range(rules)}, though that of 95 % reaches into it"
        return "outside calibrated range", (said,)
    if one.low > rules.highest:
        said = (
            f"the {percent} set lies above {_range(rules)}, though that of 95 % reaches into it{into_the_range(rules)}"
        )
        return "outside calibrated range", (said,)
    if not rules.lowest <= one.estimate <= rules.highest:
        return "quantified", (f"the estimate lies outside {_range(rules)}, but the {percent} set reaches into it",)
    return "quantified", ()


def doubt(rules: VerdictRules, found: ConcentrationSet, at_95: ConcentrationSet) -> str:
    """Why neither set names one range with two ends; empty where both do."""
    return (
        several(rules, found, at_95)
        or loose_end(rules, found, reported=True)
        or loose_end(rules, at_95, reported=False)
    )


def loose_end(rules: VerdictRules, one: ConcentrationSet, *, reported: bool) -> str:
    """Why the most probable range of a set determines no concentration; empty where it does.

    Args:
        rules: the calibrated range.
        one: the set.
        reported: whether it is the one that is reported, whose width counts besides.
    """
    percent, best = f"{100 * one.level:g} %", one.best
    if reported and best.width > UNDETERMINED * (rules.highest - rules.lowest):
        return (
            f"the {percent} set is about as wide as the calibrated range: the spectrum does not determine it"
            f"{remedy(rules, one)}"
        )
    if best.open_high or best.open_low:
        side = "upper" if best.open_high else "lower"
        return (
            f"the data set no {side} limit within the range that was searched (the {percent} set){remedy(rules, one)}"
        )
    return ""


def _range(rules: VerdictRules) -> str:
    return f"the standards' range {rules.lowest:g} to {rules.highest:g}"


def several(rules: VerdictRules, found: ConcentrationSet, at_95: ConcentrationSet) -> str:
    """How many ranges there are, of the set that is reported; of the 95 % set only where the two differ in kind; empty
    where both are one range."""
    count, percent = len(found.components), f"{100 * found.level:g} %"
    if count > 1:
        said = f"{count} separate ranges of concentration explain the spectrum (the {percent} set)"
        return said + remedy(rules, found)
    if len(at_95.components) == 1:
        return ""
    return (
        f"the {percent} set is one range, but the 95 % set, on which the verdict rests, has {len(at_95.components)} "
        f"separate ones{remedy(rules, at_95)}"
    )


def pls_notes(rules: VerdictRules, at_80: Component, at_95: Component) -> tuple[str, ...]:
    """What must stand beside the value of PLS: why it is given, and where it lies outside the range or at a blank."""
    notes = [
        "use PLS: it finds the standards that are left out much better than a curve of concentration does, so the "
        "value and its interval are those of PLS; more may vary in these samples than the concentration"
    ]
    if not rules.lowest <= at_80.estimate <= rules.highest:
        above = at_80.estimate > rules.highest
        notes.append(
            f"the value of PLS lies outside {_range(rules)}: an extrapolation{into_the_range(rules) if above else ''}"
        )
    if rules.has_blank and at_95.low <= 0.0 <= at_95.high:
        notes.append("the 95 % interval of PLS includes zero: it cannot be told from a blank")
    return tuple(notes)


def scale_component(component: Component, factor: float, relative_std: float, level: float, dof: float) -> Component:
    """Undo a dilution: multiply by ``factor`` and widen by its relative standard uncertainty (GUM 5.1.2, independent
    factors; half-widths add in quadrature, at the t quantile of the set's level)."""
    if factor == 1.0 and relative_std == 0.0:
        return component
    extra = abs(component.estimate) * relative_std * student_quantile(dof, 0.5 + 0.5 * level)
    low = component.estimate - math.hypot(component.estimate - component.low, extra)
    high = component.estimate + math.hypot(component.high - component.estimate, extra)
    if component.low >= 0.0:
        low = max(low, 0.0)
    return replace(
        component,
        low=low * factor,
        high=high * factor,
        estimate=component.estimate * factor,
        mean=component.mean * factor,
        std=factor * math.hypot(component.std, component.mean * relative_std),
    )


def _component(c: Component, checked: bool) -> dict[str, Any]:
    low, high = None if c.open_low else c.low, None if c.open_high else c.high
    return {
        "interval": [low, high] if checked else [None, None],
        "estimate": c.estimate,
        "probability": c.probability,
        "mean": c.mean,
        "std": c.std if checked else None,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _span(one: Component, unit: str = "") -> str:
    low, high = figure(one.low, beside=one.size), figure(one.high, unit, beside=one.size)
    if one.open_low and one.open_high:
        return "without limits"
    if one.open_high:
        return f"from {low}{unit} up, no upper limit"
    if one.open_low:
        return f"up to {high}, no lower limit"
    return f"{low} to {high}"
