"""The posterior of one unknown on its cells, and the sets of highest density made from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from geonode_runtime.sets import Component, ConcentrationSet

SMOOTHING = 3e-4
"""Densities are compared after averaging over at least this fraction of the calibrated range to either side: what is
narrower than that (zero itself, two equal quantiles) is no piece of its own, and no gap between two."""
SMALLEST_PIECE = 0.02
"""A piece with less of the set's probability than this is left out, and the others grow instead."""
_BEYOND = 0.2  # of the calibrated range: how wide *below* and *above* count where densities are compared


@dataclass(frozen=True)
class Posterior:
    """p(c | spectrum, standards) of one unknown.

    Attributes:
        edges: ``[K + 1]`` ascending, user units, over the searched range.
        mass: ``[K]`` of every cell. below, above: beyond the searched range. The three add up to 1.
        none: probability that no concentration explains the spectrum; the others are what holds if one does.
        span: width of the calibrated range. floor: whether the searched range ends at a concentration of zero.
    """

    edges: np.ndarray
    mass: np.ndarray
    below: float
    above: float
    none: float
    span: float
    floor: bool

    @cached_property
    def cumulative(self) -> np.ndarray:
        """``[K + 1]`` probability below each edge."""
        return self.below + np.concatenate([[0.0], np.cumsum(self.mass)])

    def below_of(self, concentration: np.ndarray | float) -> np.ndarray | np.float64:
        """Probability that the concentration is smaller than this."""
        return np.interp(concentration, self.edges, self.cumulative)

    def quantile(self, probability: float, low: float = 0.0, high: float = 1.0) -> float:
        """Where the share ``probability`` of the mass between the cumulative values ``low`` and ``high`` lies below."""
        return float(np.interp(low + probability * (high - low), self.cumulative, self.edges))

    @cached_property
    def density(self) -> np.ndarray:
        """``[K]`` smoothed (`SMOOTHING`), per unit of concentration."""
        middle = self._middle
        half = np.maximum(np.diff(self.edges), SMOOTHING * self.span)
        low = np.maximum(middle - half, self.edges[0])
        high = np.minimum(middle + half, self.edges[-1])
        return (self.below_of(high) - self.below_of(low)) / (high - low)

    def log_density(self, concentration: float) -> float:
        """ln of the density at a concentration, per calibrated range; beyond the searched range that of *below* or
        *above* spread over `_BEYOND` of it."""
        if concentration < self.edges[0] or concentration > self.edges[-1]:
            mass = self.below if concentration < self.edges[0] else self.above
            return float(np.log(max(mass, 1e-12) / _BEYOND))
        return float(np.log(max(float(np.interp(concentration, self._middle, self.density)) * self.span, 1e-12)))

    def widened(self, power: float) -> Posterior:
        """The density raised to a ``power`` ≤ 1 and normalised: wider, the same order of concentrations."""
        if power == 1.0:
            return self
        width = np.append(np.diff(self.edges), [_BEYOND * self.span, _BEYOND * self.span])
        mass = np.append(self.mass, [self.below, self.above])
        raised = width * (np.maximum(mass, 1e-300) / width) ** power
        raised /= raised.sum()
        return replace(self, mass=raised[:-2], below=float(raised[-2]), above=float(raised[-1]))

    def highest(self, level: float) -> ConcentrationSet:
        """The set of highest density at ``level``, 0 < level < 1, as pieces by descending probability.

        Zero, where the range ends, may hold mass in no width and so have any density: a piece there that is parted from
        the others is in the set only where the set could not do without it, that is from the mass 1 − ``level`` on. So
        the 95 % set leaves zero out where the probability of a blank is below 5 %.
        """
        allowed: np.ndarray | None = None
        while True:
            inside, last, share = self._chosen(level, allowed)
            pieces = self._closed(inside)
            weight = np.array([self._padded[a : b + 1].sum() for a, b in pieces])
            small = weight < SMALLEST_PIECE * weight.sum()
            if self.floor and len(pieces) > 1 and pieces[0][0] <= 1:
                small[0] |= weight[0] < 1.0 - level
            if not small.any():
                break
            allowed = np.ones(len(self.mass) + 2, dtype=bool) if allowed is None else allowed
            for (a, b), bad in zip(pieces, small, strict=True):
                if bad:
                    allowed[a : b + 1] = False
        found = [self._component(k, pieces, last, share) for k in range(len(pieces))]
        found.sort(key=lambda c: -c.probability)
        return ConcentrationSet(level, tuple(found), 0.0, 1.0)

    @cached_property
    def _padded(self) -> np.ndarray:
        return np.concatenate([[self.below], self.mass, [self.above]])

    @cached_property
    def _middle(self) -> np.ndarray:
        return 0.5 * (self.edges[1:] + self.edges[:-1])

    @cached_property
    def _bounds(self) -> np.ndarray:
        """``[K + 3]`` probability below each end of below, cells and above."""
        return np.concatenate([[0.0], self.cumulative, [1.0]])

    @cached_property
    def _densities(self) -> np.ndarray:
        """``[K + 2]`` of below, cells and above."""
        beyond = _BEYOND * self.span
        return np.concatenate([[self.below / beyond], self.density, [self.above / beyond]])

    @cached_property
    def _ranked(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Below, cells and above by descending density, the mass of each, and the mass up to each."""
        order = np.argsort(-self._densities, kind="stable")
        mass = self._padded[order]
        return order, mass, np.cumsum(mass)

    def _chosen(self, level: float, allowed: np.ndarray | None) -> tuple[np.ndarray, int, float]:
        """Which of below, cells, above are in the set; the one that is in it in part, and its share; ``allowed``: which
        of them may be, None for all."""
        if allowed is None:
            (order, mass, total), most = self._ranked, float(self._ranked[2][-1])
        else:
            order = np.argsort(-np.where(allowed, self._densities, -1.0), kind="stable")
            mass = self._padded[order]
            total = np.cumsum(mass)
            most = float(total[allowed[order]][-1])
        k = int(np.searchsorted(total, min(level, most)))
        inside = np.zeros(len(order), dtype=bool)
        inside[order[: k + 1]] = True
        if allowed is not None:
            inside &= allowed
        before = total[k - 1] if k else 0.0
        share = (level - before) / mass[k] if mass[k] > 0.0 else 1.0
        return inside, int(order[k]), min(max(float(share), 0.0), 1.0)

    def _closed(self, inside: np.ndarray) -> list[tuple[int, int]]:
        """The pieces of a set, first and last of each, with what parts two of them taken into it where it is narrower
        than what densities are averaged over."""
        found: list[tuple[int, int]] = []
        for first, last in _runs(inside):
            if found and self.edges[first - 1] - self.edges[found[-1][1]] <= 2.0 * SMOOTHING * self.span:
                found[-1] = found[-1][0], last
            else:
                found.append((first, last))
        return found

    def _component(self, number: int, pieces: list[tuple[int, int]], partial: int, share: float) -> Component:
        """One of the ``pieces``, first to last (0: below, K + 1: above); of ``partial`` ``share`` belongs to it."""
        first, last = pieces[number]
        size = len(self.mass)
        a, b = max(first, 1) - 1, min(last, size) - 1  # cells
        if first > size:
            a = b = size - 1
        if last < 1:
            a = b = 0
        low, high = self.edges[a], self.edges[b + 1]
        if first <= partial <= last and first < last and 1 <= partial <= size:
            width = self.edges[partial] - self.edges[partial - 1]
            if partial == first:
                low = self.edges[partial] - share * width
            elif partial == last:
                high = self.edges[partial - 1] + share * width
        if first > size:
            low = high
        if last < 1:
            high = low
        open_low, open_high = first == 0 and not self.floor, last == size + 1
        basin = self._basin(number, pieces)
        start, stop = self._bounds[basin[0]], self._bounds[basin[1] + 1]
        estimate = self.quantile(0.5, start, stop)
        cells = slice(max(basin[0], 1) - 1, min(basin[1], size))
        weight, where = self.mass[cells], self._middle[cells]
        whole = float(weight.sum())
        total = max(whole, 1e-300)
        mean = float(weight @ where / total) if len(where) and whole > 0.0 else estimate
        std = float(np.sqrt(weight @ (where - mean) ** 2 / total)) if len(where) else 0.0
        return Component(
            low=float(low),
            high=float(high),
            open_low=open_low,
            open_high=open_high,
            estimate=float(min(max(estimate, low), high)),
            distance=0.0,
            probability=float(stop - start),
            mean=mean,
            std=std,
        )

    def _basin(self, number: int, pieces: list[tuple[int, int]]) -> tuple[int, int]:
        """The piece with what lies nearer to it than to the next one (half of every gap; all of the ends)."""
        first, last = pieces[number]
        start = 0 if number == 0 else (pieces[number - 1][1] + first) // 2 + 1
        end = number == len(pieces) - 1
        stop = len(self.mass) + 1 if end else (last + pieces[number + 1][0]) // 2
        return min(start, first), max(stop, last)


def _runs(inside: np.ndarray) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], inside.astype(int), [0]])))
    return [(int(a), int(b) - 1) for a, b in edges.reshape(-1, 2)]
