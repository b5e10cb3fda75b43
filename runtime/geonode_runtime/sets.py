"""Sets of concentrations that agree with a spectrum, their components and how probable each of them is.

Set at level p:  {c : d²(c) − d²_min ≤ F_{1,ν}(p) · s},  s = max(1, d²_min/(r − 1)).

That is the profile-likelihood set of the pseudo-likelihood L(c) = (1 + (d² − d²_min)/(ν s))^(−(ν+1)/2), a Student t in
the signed root of d² − d²_min; the posterior is L times the prior of :data:`PRIOR`. A prior uniform in concentration
alone gives a steep stretch of the curve next to nothing and so hides one of two concentrations that fit equally well;
one uniform in distance along the curve (Jeffreys) does the same to a flat stretch; half of each dismisses neither. The
determinant of C(c) is left out of L on purpose: C shrinks at the standards, and with the determinant the posterior is
pulled onto them (coverage 61–72 % instead of 75–83 % at nominal 80 % over the real series). Beyond the standards, where
C grows without end, it must not be left out: there any spectrum would fit ever better, for no reason but that ever less
is known. So what ln|C| exceeds its largest value within the calibrated range by is added to d² (:func:`doubt_beyond`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np

PRIOR = (
    "half uniform in concentration, half uniform in distance along the response curve (in standard deviations of a "
    "measurement), over the searched range"
)
_SUB = 8  # posterior nodes per segment of the curve


class Curve(Protocol):
    """What sets need to know of the predicted curve besides distances to it."""

    @property
    def grid(self) -> np.ndarray:
        """``[K]`` ascending concentrations at which distances are tabulated, user units."""
        ...

    @property
    def dof(self) -> float:
        """ν, the denominator degrees of freedom of every set."""
        ...

    @property
    def ends_at_zero(self) -> bool:
        """Whether the grid begins at a concentration of zero, below which there is nothing."""
        ...

    def threshold(self, level: float, minimum: np.ndarray) -> np.ndarray:
        """How far above the smallest distance ``minimum [U]`` the set at ``level`` reaches."""
        ...

    def inflation(self, minimum: np.ndarray) -> np.ndarray:
        """s = max(1, d²_min/(r − 1)): a poor fit widens every statement."""
        ...


@dataclass(frozen=True)
class Distances:
    """Squared distances of U unknowns to the K points of the curve.

    Attributes:
        squared: ``[U, K]`` d².
        steps: ``[U, K − 1]`` squared distance between neighbouring points of the curve in the same metric.
        phi: ``[U]`` noise factor φ.
        doubt: ``[K]`` what is added to d² because less is known there (:func:`doubt_beyond`).
    """

    squared: np.ndarray
    steps: np.ndarray
    phi: np.ndarray
    doubt: np.ndarray | float = 0.0

    @cached_property
    def total(self) -> np.ndarray:
        """``[U, K]`` d² and the doubt: what concentrations are compared by."""
        return self.squared + self.doubt

    @property
    def closest(self) -> np.ndarray:
        """``[U]`` T², the smallest d² anywhere on the curve, no doubt added: whether the spectrum matches at all."""
        return replace(self, doubt=0.0).minimum

    @cached_property
    def fractions(self) -> np.ndarray:
        """``[U, K − 1]`` where each segment comes closest, 0 … 1."""
        with np.errstate(divide="ignore", invalid="ignore"):
            t = 0.5 + (self.total[:, :-1] - self.total[:, 1:]) / (2.0 * self.steps)
        return np.clip(np.where(np.isfinite(t), t, 0.5), 0.0, 1.0)

    @cached_property
    def nearest(self) -> np.ndarray:
        """``[U, K − 1]`` the smallest of d² and doubt on each segment."""
        return self.at(self.fractions)

    def at(self, t: np.ndarray | float) -> np.ndarray:
        """d² and doubt at fractions ``t [U, K − 1]`` of the segments, or at one of all: exact along a straight line
        under one metric."""
        left, right = self.total[:, :-1], self.total[:, 1:]
        return np.maximum((1.0 - t) * left + t * right - t * (1.0 - t) * self.steps, 0.0)

    @property
    def minimum(self) -> np.ndarray:
        """``[U]`` the smallest of d² and doubt over the curve."""
        return self.nearest.min(1)


def doubt_beyond(log_volume: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """``[K]`` what is added to d² beyond the calibrated range: ln|C| less its largest value within, where that is more.

    Args:
        log_volume: ``[K]`` ln|C| along the curve, the noise of one measurement included.
        inside: ``[K]`` whether the point lies in the calibrated range.
    """
    return np.where(inside, 0.0, np.maximum(log_volume - log_volume[inside].max(), 0.0))


@dataclass(frozen=True)
class Component:
    """One connected piece of a set.

    Attributes:
        low, high: its ends, user units.
        open_low, open_high: the piece runs into the end of the searched range, so the data set no limit there.
        estimate: where the distance is smallest within it.
        distance: d² there.
        probability: posterior mass of the piece and of what lies nearer to it than to the others; they add up to 1.
        mean, std: posterior mean and standard deviation of that mass.
    """

    low: float
    high: float
    open_low: bool
    open_high: bool
    estimate: float
    distance: float
    probability: float
    mean: float
    std: float

    @property
    def width(self) -> float:
        """high − low."""
        return self.high - self.low

    @property
    def size(self) -> float:
        """The largest number that stands beside the estimate: itself, or an end that is there."""
        ends = [end for end, is_open in ((self.low, self.open_low), (self.high, self.open_high)) if not is_open]
        return max(abs(value) for value in (self.estimate, *ends))

    def contains(self, concentration: float) -> bool:
        """Whether ``concentration`` lies in the piece; an open end has no limit."""
        return (self.open_low or self.low <= concentration) and (self.open_high or concentration <= self.high)


@dataclass(frozen=True)
class ConcentrationSet:
    """The set at ``level`` for one unknown, its components by descending probability.

    ``minimum``: d²_min; ``scale``: s.
    """

    level: float
    components: tuple[Component, ...]
    minimum: float
    scale: float

    @property
    def best(self) -> Component:
        """The most probable component. (That of the smallest distance is drawn into gaps between standards, where the
        curve is so uncertain that any spectrum is near: over the interior held-out levels of `aunp_dmsa_nacl` its RMSEP
        is 66 % of the range against 29 %; the other shared series, with one component each, do not change.)"""
        return self.components[0]

    def contains(self, concentration: float) -> bool:
        """Whether the set covers ``concentration``."""
        return any(c.contains(concentration) for c in self.components)


CLOSE = 0.02
"""Of the calibrated range: pieces further apart than this are two, however little is known of either."""


def close(left: Component, right: Component, span: float) -> bool:
    """Whether two pieces lie so close that the answer could not tell them apart: closer than a standard deviation of
    the wider one, and closer than `CLOSE` of the calibrated range ``span``. No dilution tells such apart either."""
    return right.low - left.high < min(max(left.std, right.std), CLOSE * span)


def close_as_one(one: ConcentrationSet, span: float) -> ConcentrationSet:
    """The set with pieces that are so `close` taken as one."""
    pieces = sorted(one.components, key=lambda c: c.low)
    found = pieces[:1]
    for piece in pieces[1:]:
        found[-1:] = [together(found[-1], piece)] if close(found[-1], piece, span) else [found[-1], piece]
    return replace(one, components=tuple(sorted(found, key=lambda c: -c.probability)))


def together(left: Component, right: Component) -> Component:
    """Two neighbouring pieces as one, the gap between them in it; the estimate is that of the likelier."""
    likelier = max(left, right, key=lambda c: c.probability)
    total = left.probability + right.probability
    share = left.probability / total if total > 0.0 else 0.5
    mean = share * left.mean + (1.0 - share) * right.mean
    square = share * (left.std**2 + (left.mean - mean) ** 2) + (1.0 - share) * (right.std**2 + (right.mean - mean) ** 2)
    return replace(
        likelier,
        low=left.low,
        high=right.high,
        open_low=left.open_low,
        open_high=right.open_high,
        probability=total,
        mean=mean,
        std=math.sqrt(square),
    )


def concentration_sets(model: Curve, distances: Distances, level: float) -> list[ConcentrationSet]:
    """One set per unknown.

    Args:
        model: the curve.
        distances: of the U unknowns.
        level: nominal coverage, 0 < level < 1.
    """
    return sets_at_levels(model, distances, (level,))[0]


def sets_at_levels(model: Curve, distances: Distances, levels: Sequence[float]) -> list[list[ConcentrationSet]]:
    """As :func:`concentration_sets` for each of several levels: they share one posterior."""
    minimum = distances.minimum
    density, nodes = _posterior(model, distances, minimum)
    found = []
    for level in levels:
        low, high = _crossings(distances, minimum + model.threshold(level, minimum))
        found.append(
            [
                _one_set(model, distances, u, level, low[u], high[u], density[u], nodes, float(minimum[u]))
                for u in range(len(minimum))
            ]
        )
    return found


def _crossings(distances: Distances, limit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fractions ``[U, K − 1]`` between which d² ≤ limit on every segment; NaN where nowhere."""
    a = distances.steps
    b = np.diff(distances.total, axis=1) - a
    c = distances.total[:, :-1] - limit[:, None]
    root = np.sqrt(np.maximum(b * b - 4.0 * a * c, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        left, right = (-b - root) / (2.0 * a), (-b + root) / (2.0 * a)
    inside0, inside1 = c <= 0.0, distances.total[:, 1:] <= limit[:, None]
    low = np.where(inside0, 0.0, left)
    high = np.where(inside1, 1.0, right)
    hit = inside0 | inside1 | (distances.nearest <= limit[:, None] * (1.0 + 1e-12))
    # The minimum itself always belongs to the set, whatever rounding says.
    low = np.where(np.isfinite(low), np.clip(low, 0.0, 1.0), 0.0)
    high = np.where(np.isfinite(high), np.clip(high, 0.0, 1.0), 1.0)
    return np.where(hit, low, np.nan), np.where(hit, high, np.nan)


def _posterior(model: Curve, distances: Distances, minimum: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mass ``[U, (K − 1)·sub]`` at the midpoints ``[(K − 1)·sub]`` of equal parts of the segments."""
    fractions = (np.arange(_SUB) + 0.5) / _SUB
    grid = model.grid
    nodes = (grid[:-1, None] + np.diff(grid)[:, None] * fractions).ravel()
    cell = np.repeat(np.diff(grid) / _SUB, _SUB)
    values = np.stack([distances.at(t) for t in fractions], axis=-1)
    excess = np.maximum(values.reshape(len(minimum), -1) - minimum[:, None], 0.0)
    scale = model.inflation(minimum)[:, None]
    likelihood = (1.0 + excess / (model.dof * scale)) ** (-0.5 * (model.dof + 1.0))
    along = np.repeat(np.sqrt(np.maximum(distances.steps, 0.0)) / _SUB, _SUB, axis=1)
    travelled = along.sum(1, keepdims=True)
    along = np.where(travelled > 0.0, along / np.maximum(travelled, np.finfo(float).tiny), cell / cell.sum())
    mass = likelihood * 0.5 * (cell / cell.sum() + along)
    return mass / mass.sum(1, keepdims=True), nodes


def _one_set(
    model: Curve,
    distances: Distances,
    u: int,
    level: float,
    low: np.ndarray,
    high: np.ndarray,
    mass: np.ndarray,
    nodes: np.ndarray,
    minimum: float,
) -> ConcentrationSet:
    grid = model.grid
    pieces = _pieces(low, high)
    cuts = _cuts(distances.nearest[u], pieces)
    components = []
    for piece, (start, stop) in zip(pieces, cuts, strict=True):
        first, last = piece
        k = first + int(distances.nearest[u, first : last + 1].argmin())
        share = mass[start * _SUB : stop * _SUB]
        where = nodes[start * _SUB : stop * _SUB]
        total = float(share.sum())
        mean = float(share @ where / total) if total > 0.0 else float(where.mean())
        variance = float(share @ (where - mean) ** 2 / total) if total > 0.0 else 0.0
        components.append(
            Component(
                low=float(grid[first] + low[first] * (grid[first + 1] - grid[first])),
                high=float(grid[last] + high[last] * (grid[last + 1] - grid[last])),
                # Zero is a limit of nature, not the end of a search.
                open_low=first == 0 and low[first] == 0.0 and not model.ends_at_zero,
                open_high=last == len(grid) - 2 and high[last] == 1.0,
                estimate=float(grid[k] + distances.fractions[u, k] * (grid[k + 1] - grid[k])),
                distance=float(distances.nearest[u, k]),
                probability=total,
                mean=mean,
                std=float(np.sqrt(variance)),
            )
        )
    components.sort(key=lambda c: -c.probability)
    scale = float(model.inflation(np.array(minimum)))
    return ConcentrationSet(level, tuple(components), minimum, scale)


def _pieces(low: np.ndarray, high: np.ndarray) -> list[tuple[int, int]]:
    """Runs (first, last) of segments that join where one ends at 1 and the next begins at 0."""
    hit = np.flatnonzero(np.isfinite(low))
    pieces: list[tuple[int, int]] = []
    for k in hit:
        if pieces and pieces[-1][1] == k - 1 and high[k - 1] == 1.0 and low[k] == 0.0:
            pieces[-1] = (pieces[-1][0], int(k))
        else:
            pieces.append((int(k), int(k)))
    return pieces


def _cuts(nearest: np.ndarray, pieces: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """For every piece the half-open range of segments that counts as its own: up to the ridge towards the next."""
    edges = [0]
    for (_, last), (first, _) in pairwise(pieces):
        edges.append(last + 1 + int(nearest[last : first + 1].argmax()) if first > last + 1 else first)
    edges.append(len(nearest))
    return [(a, max(b, a + 1)) for a, b in pairwise(edges)]
