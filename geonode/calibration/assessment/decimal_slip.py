"""A zero too many or too few: a level that breaks the spacing of the others and would keep it at a tenth or ten times.

Levels are spaced evenly (with a blank or without), by one factor, as 1, 2, 5, 10, 20, 50 or as 1, 3, 10, 30; or they
are spaced as they may be, and one lies an order of magnitude beyond all others. A genuine design may do either, so the
spectrum has to agree: it must lie nearer to the line between the standards where the other label belongs (or carried
on beyond them) than to that where the written one is.

Such a label is nothing that leaving levels out finds: it is an end, mostly, to which the others only extrapolate.
Thresholds were chosen on simulated assays (docs/calibration.md, "One wrong label").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geonode_runtime.figures import figure

FACTORS = (0.1, 10.0)
FEWEST = 4
"""Levels above zero, of which any three are spaced somehow."""
ROUND = {"1, 2, 5, 10, …": (1.0, 2.0, 5.0), "1, 3, 10, 30, …": (1.0, 3.0)}
"""Round numbers of a decade that levels may go through."""
EVEN = 0.02
"""Steps, or factors, that differ by no more than this share of them are the same."""
NEARER = 0.5
"""The spectrum's distance from where the other label belongs ÷ that from where the written one does, at most, where the
spacing is regular with the other."""
FAR_NEARER = 0.1
"""The same where the spacing says nothing."""
BEYOND = 4.9
"""An end so many times (or so small a part of) the next level lies an order of magnitude out."""
FAR_BEYOND = 3.0
"""Where the spacing says nothing an end must be that many times further out than the widest step of the others is."""
NOISY = 4.0
"""A spectrum is off the place of its label where it lies so many times the noise (root mean square) from it."""


@dataclass(frozen=True)
class DecimalSlip:
    """A level that may have a zero too many or too few.

    Attributes:
        level: as written, user units. meant: the other label. regular: how the levels are spaced with it; empty where
            nothing but its distance speaks against the level. between: the levels between which its spectrum lies,
            None for beyond the highest or the lowest.
    """

    level: float
    meant: float
    regular: str
    between: tuple[float | None, float | None]

    def sentence(self, unit: str = "") -> str:
        """What to tell the analyst."""
        unit = f" {unit}" if unit else ""
        breaks = (
            f"breaks the spacing of the others, which {self.meant:g}{unit} would keep ({self.regular})"
            if self.regular
            else "lies an order of magnitude beyond the others"
        )
        low, high = self.between
        if low is not None and high is not None:
            where = f"lies between those of {low:g} and {high:g}{unit}"
        else:
            where = f"lies beyond that of {figure(low if low is not None else high or 0.0, unit)}"
        return (
            f"the standard {self.level:g}{unit} {breaks}, and its spectrum {where}: check whether {self.meant:g}{unit} "
            "is meant. It was kept as written"
        )


def decimal_slip(levels: np.ndarray, means: np.ndarray, noise: np.ndarray) -> DecimalSlip | None:
    """The level that has a zero too many or too few; None where there is none, or several might have.

    Args:
        levels: ``[n]`` ascending. means: ``[n, W]`` their spectra. noise: ``[W]`` its standard deviation in them.
    """
    positive = np.flatnonzero(levels > 0.0)
    if len(positive) < FEWEST:
        return None
    white, found = means / noise, []
    was = spacing(levels)
    for i in positive.tolist():
        for factor in FACTORS:
            one = _tried(levels, white, i, factor, was)
            if one is not None:
                found.append(one)
    regular = [one for one in found if one.regular]
    found = regular or found
    return found[0] if len(found) == 1 else None


def spacing(levels: np.ndarray) -> str:
    """How levels are spaced, in words; empty where in no regular way."""
    c = np.sort(levels[levels > 0.0])
    for own in (levels, c):
        steps = np.diff(np.sort(own))
        if len(steps) > 2 and np.ptp(steps) <= EVEN * steps.mean():
            return "even steps"
    factors = c[1:] / c[:-1]
    if np.ptp(factors) <= EVEN * factors.mean():
        return "one factor"
    return next((words for words, numbers in ROUND.items() if _in_turn(c, np.array(numbers))), "")


def _in_turn(c: np.ndarray, numbers: np.ndarray) -> bool:
    """Whether ``c``, ascending, are ``numbers`` of a decade and of the next ones, with none left out between."""
    decade = np.floor(np.log10(c) + 1e-9)
    mantissa = c / 10.0**decade
    place = np.abs(numbers - mantissa[:, None]).argmin(axis=1)
    near = np.abs(mantissa - numbers[place]) <= EVEN * mantissa
    return bool(near.all() and (np.diff(len(numbers) * decade + place) == 1).all())


def _tried(levels: np.ndarray, white: np.ndarray, i: int, factor: float, was: str) -> DecimalSlip | None:
    """Level ``i`` under the label that is ``factor`` times its own, where that is better."""
    meant = float(levels[i]) * factor
    others = np.delete(levels, i)
    if np.abs(others - meant).min() <= EVEN * meant:
        return None
    now = "" if was else spacing(np.append(others, meant))
    times = _times_beyond(others, float(levels[i]))
    x = np.delete(white, i, axis=0)
    off, written = _distance(others, x, white[i], float(levels[i]))
    left, between = _distance(others, x, white[i], meant)
    if between == written:  # beyond the same end under either label: what the spacing says must do
        nearer = _times_beyond(others, meant) < times
        wrong = None in between and nearer and times >= (BEYOND if now else FAR_BEYOND * _widest(others))
    else:
        near = NEARER if now else FAR_NEARER if times >= BEYOND and None not in between else 0.0
        wrong = off >= NOISY * np.sqrt(white.shape[1]) and left <= near * off
    if not wrong:
        return None
    return DecimalSlip(float(levels[i]), meant, now, between)


def _times_beyond(others: np.ndarray, level: float) -> float:
    """How many times the highest of the others a level is, or what part of the lowest above zero; 1 between them."""
    positive = others[others > 0.0]
    return float(max(level / positive[-1], positive[0] / level, 1.0))


def _widest(levels: np.ndarray) -> float:
    """The largest factor between neighbours."""
    positive = levels[levels > 0.0]
    return float((positive[1:] / positive[:-1]).max())


def _distance(
    levels: np.ndarray, white: np.ndarray, x: np.ndarray, label: float
) -> tuple[float, tuple[float | None, float | None]]:
    """How far ``x`` lies from the line between the levels beside a label, or from that of the two nearest carried on,
    and which these levels are."""
    k = int(np.searchsorted(levels, label))
    last = len(levels) - 1
    if k == 0:
        start, end, most, between = white[1], white[0], np.inf, (None, float(levels[0]))
    elif k > last:
        start, end, most, between = white[last - 1], white[last], np.inf, (float(levels[last]), None)
    else:
        start, end, most, between = white[k - 1], white[k], 1.0, (float(levels[k - 1]), float(levels[k]))
    least = 0.0 if most == 1.0 else 1.0
    step = end - start
    square = float(step @ step)
    t = float(np.clip((x - start) @ step / square, least, most)) if square > 0.0 else 0.0
    return float(np.linalg.norm(x - start - t * step)), between
