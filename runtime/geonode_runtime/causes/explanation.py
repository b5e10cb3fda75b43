"""A misfit explained: where along the spectrum, how large, and the simple cause that fits it best.

Every registered cause is fitted to the spectrum beside the curve alone. With RSS the sum of squares that is left, k the
cause's free numbers and n wavelengths, the one with the least

    n_e ln(RSS/n) + k ln n_e

is named (Schwarz 1978, Ann. Stat. 6, 461), n_e = n (1 − ρ)/(1 + ρ) for neighbours correlated by ρ (Bayley & Hammersley
1946, J. R. Stat. Soc. Suppl. 8, 184), and no fewer than 4: of a misfit that is all one slow bend two values would be
left, of which nothing can be proved. None is named that takes less than 70 % of the misfit away or is not worth its own
numbers. Where the best would put the spectrum at the end of the range that is searched it may as well lie beyond: then
causes are tried within the standards' own range, if without any cause the spectrum lies there, and one is named that
explains nine tenths.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geonode_runtime.causes.cause import Cause, Told
from geonode_runtime.causes.fitting import Fit, Problem, fit, plain
from geonode_runtime.causes.kinds import KINDS
from geonode_runtime.figures import figure

LEAST_EXPLAINED = 0.7
"""A cause that takes a smaller share of the misfit's sum of squares away is not named."""
EVIDENCE = 10.0
"""Nor one that is better than no cause by less than this in the criterion (Kass & Raftery 1995: "very strong")."""
HOLDS = {("tilt", "offset"), ("scale", "other path length")}
"""Pairs of which the first holds every case of the second: it always fits as well."""
AS_WELL = 0.999
"""Of such a pair the second is named where it takes this share of what the first takes away: of many wavelengths the
criterion notices a baseline whose ends differ by a hundredth."""
AS_LITTLE = 0.05
"""A concentration at which a cause leaves this share of the misfit more than at the best one explains it as well."""
NEARLY_ALL = 0.9
"""The share that a cause must explain where the best of all ends beyond the standards' range."""
FEWEST_VALUES = 4.0
"""A misfit counts as no fewer independent values, however slowly it changes."""
MOST_WAVELENGTHS = 800
"""Of more, every second, third, … is looked at."""


@dataclass(frozen=True)
class Stretch:
    """Where the spectrum lies above or below the curve.

    Attributes:
        low, high: wavelengths of its ends. peak: where it is furthest off. size: by how much there, smoothed, with its
            sign, in the unit of the signal. share: of the misfit's sum of squares.
    """

    low: float
    high: float
    peak: float
    size: float
    share: float


@dataclass(frozen=True)
class Explanation:
    """Why a spectrum lies off the curve.

    Attributes:
        concentration: where on the curve it is compared: where it lies once the cause is taken off, or, where none is
            named, nearest as it is.
        stretches: where it is off, largest share first.
        noise: standard deviation of one value. everywhere: the same sign at nine wavelengths of ten.
        cause: the registered name of the one that fits best, None where none does.
        words: its amount. remedy: what to look at.
        corrected: the concentration at which the spectrum would lie once the cause is taken off; None without cause,
            and where it may lie beyond all that were compared.
        twins: other concentrations of which the same would hold as well: those that look alike where the curve folds.
        finest: the smallest concentration above zero that was compared, beside which smaller ones are nothing.
        explained: share of the misfit's sum of squares that the best cause takes away.
        best: the name of the best one, named or not. scores: the criterion of each cause less that of the best.
        wavelength_unit, signal: for texts.
    """

    concentration: float
    stretches: tuple[Stretch, ...]
    noise: float
    everywhere: bool
    cause: str | None
    words: str
    remedy: str
    corrected: float | None
    twins: tuple[float, ...]
    finest: float
    explained: float
    best: str
    scores: dict[str, float]
    wavelength_unit: str
    signal: str

    def sentences(self, unit: str = "") -> tuple[str, ...]:
        """Where it is off and by how much; then the cause. ``unit`` of concentration."""
        return self.where(), self.why(unit)

    def where(self) -> str:
        """Where the spectrum is off, in a sentence."""
        if not self.stretches:
            return "nowhere along the spectrum is it off by more than the noise"
        first = self.stretches[0]
        times = abs(first.size) / self.noise
        said = (
            f"the spectrum lies {_side(first)} the curve {self._from_to(first)}, by up to {abs(first.size):.3g} in "
            f"{self.signal} at {self._at(first.peak)} ({times:.2g} times the noise)"
        )
        for other in self.stretches[1:2]:
            said += f", and {_side(other)} it {self._from_to(other)}, by up to {abs(other.size):.3g}"
        return said

    def why(self, unit: str = "") -> str:
        """The cause, in a sentence."""
        if self.cause is None:
            tried = ", ".join(self.scores)
            return (
                f"no simple cause explains it (tried: {tried}); the best of them, {self.best}, takes "
                f"{100 * self.explained:.0f} % of the misfit away"
            )
        others = " and ".join(self.rivals)
        also = f" ({others} would fit nearly as well)" if others else ""
        said = f"it looks like {self.words}{also}; that explains {_percent(self.explained)} of the misfit"
        if self.corrected is None:
            return f"{said}: {self.remedy}"
        unit = f" {unit}" if unit else ""
        places = sorted([self.corrected, *self.twins])
        found = " or ".join(figure(c, unit, beside=self.finest, digits=3) for c in places)
        return f"{said}, and without it the spectrum would be that of {found}: {self.remedy}"

    @property
    def rivals(self) -> tuple[str, ...]:
        """Other causes that the spectrum does not clearly speak against: within ``EVIDENCE`` of the named one, and not
        one that holds the named one as a special case."""
        if self.cause is None:
            return ()
        return tuple(
            name
            for name, score in self.scores.items()
            if name != self.cause and score < EVIDENCE and (name, self.cause) not in HOLDS
        )

    def to_dict(self, unit: str = "") -> dict[str, Any]:
        """Plain dictionaries, lists and numbers."""
        return {
            "cause": self.cause,
            "sentences": list(self.sentences(unit)),
            "explained": self.explained,
            "corrected": self.corrected,
            "twins": list(self.twins),
            "noise": self.noise,
            "stretches": [
                {"low": s.low, "high": s.high, "peak": s.peak, "size": s.size, "share": s.share} for s in self.stretches
            ],
            "scores": self.scores,
        }

    def _at(self, wavelength: float) -> str:
        return figure(wavelength, self.wavelength_unit)

    def _from_to(self, stretch: Stretch) -> str:
        if self.everywhere and stretch is self.stretches[0]:
            return "at nearly every wavelength"
        return f"from {figure(stretch.low)} to {self._at(stretch.high)}"


def explain(
    problem: Problem,
    wavelength_unit: str = "",
    signal: str = "the signal",
    kinds: Mapping[str, type[Cause]] = KINDS,
) -> Explanation:
    """Fit every cause and name the best.

    Args:
        problem: the spectrum, its noise and the curve.
        wavelength_unit: " nm" or nothing, with its space. signal: what the spectrum is called in a sentence.
        kinds: the causes to be tried, by name.
    """
    problem = _thinned(problem)
    alone = plain(problem)
    ignored = {type(cause) for cause in problem.ignored}
    causes = {name: kind() for name, kind in kinds.items() if kind not in ignored}
    best = _best(problem, causes, alone)
    inside = best.fit.concentration < problem.concentrations[-1]
    if not inside and problem.highest is not None and alone.concentration <= problem.highest:
        within = problem.concentrations[problem.concentrations <= problem.highest]
        again = _best(replace(problem, concentrations=within), causes, alone)
        if again.explained >= NEARLY_ALL:
            best, inside = again, True
    name, found, explained, scores = best.name, best.fit, best.explained, best.scores
    cause = causes[name]
    named = bool(explained >= LEAST_EXPLAINED and best.without >= EVIDENCE and (inside or cause.other_quantity))
    told = Told(found.settings, found.coefficients, problem.wavelengths, wavelength_unit, signal)
    # with the cause known, the curve is taken where the spectrum belongs and not where the cause has moved it to
    concentration = found.concentration if named else alone.concentration
    left = problem.spectrum - problem.curve(np.array([concentration]))[0] if named else alone.left
    stretches, everywhere = _stretches(left, problem)
    return Explanation(
        concentration=concentration,
        stretches=stretches,
        noise=float(np.sqrt(np.mean(problem.scale**2))),
        everywhere=everywhere,
        cause=name if named else None,
        words=cause.words(told) if named else "",
        remedy=cause.remedy if named else "",
        corrected=found.concentration if named and inside else None,
        twins=_twins(problem, cause, found, alone) if named else (),
        finest=_finest(problem.concentrations),
        explained=explained,
        best=name,
        scores=scores,
        wavelength_unit=wavelength_unit,
        signal=signal,
    )


def _finest(concentrations: np.ndarray) -> float:
    positive = concentrations[concentrations > 0.0]
    return float(positive[0]) if len(positive) else 0.0


@dataclass(frozen=True)
class _Best:
    """The cause that fits best, and how well the others do; ``without``: the criterion of no cause less the least."""

    name: str
    fit: Fit
    explained: float
    scores: dict[str, float]
    without: float


def _best(problem: Problem, causes: Mapping[str, Cause], alone: Fit) -> _Best:
    """Every cause fitted; ``alone``: the curve as it is, over all concentrations."""
    fits = {name: fit(problem, cause) for name, cause in causes.items()}
    fits = {n: alone if _says_nothing(causes[n], f, problem, alone) else f for n, f in fits.items()}
    scores, without = _scores(fits, causes, alone)
    name = _simplest(next(iter(scores)), fits, alone)
    explained = 1.0 - fits[name].rss / alone.rss if alone.rss > 0.0 else 0.0
    return _Best(name, fits[name], explained, scores, without)


def _says_nothing(cause: Cause, found: Fit, problem: Problem, alone: Fit) -> bool:
    """Whether the fit of a cause counts as none: an empty multiple, or less than this cause must explain."""
    return (cause.multiplies and _empty(found, problem)) or found.rss > (1.0 - cause.least) * alone.rss


def _empty(found: Fit, problem: Problem) -> bool:
    """Whether a multiple of the curve says nothing: at its beginning, or hardly better than no spectrum at all."""
    size = float(np.sum((problem.spectrum / problem.scale) ** 2))
    return found.concentration <= problem.concentrations[0] or found.rss > (1.0 - LEAST_EXPLAINED) * size


def _simplest(name: str, fits: dict[str, Fit], alone: Fit) -> str:
    """The cause of this name, or the special case of it that explains as much (:data:`AS_WELL`)."""
    for general, special in HOLDS:
        taken = alone.rss - fits[name].rss
        if name == general and special in fits and alone.rss - fits[special].rss >= AS_WELL * taken:
            return special
    return name


def _twins(problem: Problem, cause: Cause, found: Fit, alone: Fit) -> tuple[float, ...]:
    """Concentrations apart from that of ``found`` at which ``cause`` leaves hardly more (:data:`AS_LITTLE`): where the
    curve folds, two lie on nearly the same spectrum, and the cause decides which is the nearer."""
    c = problem.concentrations
    left = [fit(replace(problem, concentrations=c[k : k + 1]), cause).rss for k in range(len(c))]
    inner = np.pad(left, 1, constant_values=np.inf)
    minima = [k for k in range(len(c)) if left[k] <= min(inner[k], inner[k + 2])]
    twins = []
    for k in minima:
        around = c[max(k - 1, 0) : k + 2]
        if around[0] <= found.concentration <= around[-1]:
            continue
        other = fit(replace(problem, concentrations=around), cause)
        if other.rss <= found.rss + AS_LITTLE * alone.rss and other.concentration < c[-1]:
            twins.append(other.concentration)
    return tuple(twins)


def _thinned(problem: Problem) -> Problem:
    step = -(-len(problem.spectrum) // MOST_WAVELENGTHS)
    if step == 1:
        return problem
    curve = problem.curve
    return Problem(
        problem.spectrum[::step],
        problem.wavelengths[::step],
        problem.scale[::step],
        lambda c: curve(c)[:, ::step],
        problem.concentrations,
        problem.ignored,
        problem.highest,
    )


def _scores(fits: Mapping[str, Fit], causes: Mapping[str, Cause], alone: Fit) -> tuple[dict[str, float], float]:
    """The criterion of each cause less the least, best first; and that of no cause at all less the least."""
    closest = min(fits.values(), key=lambda f: f.rss)
    n, left = len(closest.left), closest.left - closest.left.mean()
    square = float(left @ left)
    rho = float(left[1:] @ left[:-1]) / square if square > 0.0 else 0.0
    rho = min(max(rho, 0.0), 0.95)
    effective = max(n * (1.0 - rho) / (1.0 + rho), min(FEWEST_VALUES, float(n)))
    tiny = 1e-12 * alone.rss + 1e-300  # a fit without any rest would have the logarithm of zero

    def criterion(found: Fit, parameters: int) -> float:
        return float(effective * np.log((found.rss + tiny) / n) + parameters * np.log(effective))

    values = {name: criterion(found, causes[name].parameters) for name, found in fits.items()}
    ordered = sorted(values, key=lambda name: values[name])
    least = values[ordered[0]]
    return {name: values[name] - least for name in ordered}, criterion(alone, 0) - least


def _stretches(left: np.ndarray, problem: Problem) -> tuple[tuple[Stretch, ...], bool]:
    """Where the smoothed difference has one sign and is more than the noise of its mean explains."""
    n = len(left)
    window = min(n, max(3, n // 40) | 1)
    ones = np.ones(window)
    count = np.convolve(np.ones(n), ones, mode="same")
    smooth = np.convolve(left, ones, mode="same") / count
    large = np.abs(smooth) > np.maximum(3.0 * problem.scale / np.sqrt(count), 0.1 * np.abs(smooth).max())
    sign = np.where(large, np.sign(smooth), 0.0)
    edges = np.flatnonzero(np.diff(sign)) + 1
    found, total, w = [], float(left @ left) or 1.0, problem.wavelengths
    for part in np.split(np.arange(n), edges):
        if sign[part[0]] == 0.0:
            continue
        peak = part[int(np.abs(smooth[part]).argmax())]
        share = float(left[part] @ left[part]) / total
        found.append(Stretch(float(w[part[0]]), float(w[part[-1]]), float(w[peak]), float(smooth[peak]), share))
    found.sort(key=lambda s: -s.share)
    everywhere = bool(found and np.mean(sign == np.sign(found[0].size)) >= 0.9)
    return tuple(found[:4]), everywhere


def _side(stretch: Stretch) -> str:
    return "above" if stretch.size > 0.0 else "below"


def _percent(share: float) -> str:
    return "all" if share >= 0.9995 else f"{100 * share:.3g} %"
