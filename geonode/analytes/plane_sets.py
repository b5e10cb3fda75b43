"""Sets of a density over the plane: the region of highest density, its pieces, and each analyte alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import label

from geonode.analytes.plane import PlaneDensity
from geonode_runtime.sets import Component, ConcentrationSet

LEAST_PIECE = 0.005
"""A piece of less probability is no other explanation, but a far tail that the density has somewhere."""


@dataclass(frozen=True)
class Piece:
    """One connected piece of a region.

    Attributes:
        probability: of the piece; those of a region add up to its level.
        point: the two concentrations where the density is highest in it.
        low, high: ends of the smallest box around it, two concentrations each.
    """

    probability: float
    point: tuple[float, float]
    low: tuple[float, float]
    high: tuple[float, float]


@dataclass(frozen=True)
class Region:
    """The region of highest density that holds ``level`` of the probability.

    Attributes:
        inside: ``[G₁, G₂]`` the grid's cells in it. pieces: by descending probability.
    """

    level: float
    inside: np.ndarray
    pieces: tuple[Piece, ...]
    axes: tuple[np.ndarray, np.ndarray]

    def contains(self, point: np.ndarray) -> bool:
        """Whether it covers the two concentrations ``point [2]``."""
        ends = [_edges(axis) for axis in self.axes]
        place = [int(np.searchsorted(e, value, side="right")) - 1 for e, value in zip(ends, point, strict=True)]
        within = all(e[0] <= value <= e[-1] for e, value in zip(ends, point, strict=True))
        return within and bool(self.inside[min(place[0], len(ends[0]) - 2), min(place[1], len(ends[1]) - 2)])


def region(found: PlaneDensity, level: float) -> Region:
    """The region at ``level`` (0 < level < 1)."""
    inside = _highest(found.density.ravel(), found.mass.ravel(), level).reshape(found.mass.shape)
    numbers, count = label(inside, structure=np.ones((3, 3)))  # pyright: ignore[reportGeneralTypeIssues]
    edges = [_edges(axis) for axis in found.axes]
    pieces = []
    for number in range(1, count + 1):
        own = numbers == number
        if count > 1 and found.mass[own].sum() < LEAST_PIECE:
            inside = inside & ~own
            continue
        top = np.unravel_index(int(np.where(own, found.density, -1.0).argmax()), own.shape)
        at = [np.flatnonzero(own.any(axis=1 - d)) for d in range(2)]
        (low_1, high_1), (low_2, high_2) = (
            (float(e[k[0]]), float(e[k[-1] + 1])) for e, k in zip(edges, at, strict=True)
        )
        point = (float(found.axes[0][top[0]]), float(found.axes[1][top[1]]))
        pieces.append(Piece(float(found.mass[own].sum()), point, (low_1, low_2), (high_1, high_2)))
    pieces.sort(key=lambda piece: -piece.probability)
    return Region(level, inside, tuple(pieces), found.axes)


def one_analyte(found: PlaneDensity, analyte: int, level: float, ends_at_zero: bool) -> ConcentrationSet:
    """What the density says of one analyte, whatever the other: the set of highest density at ``level``."""
    share = found.mass.sum(axis=1 - analyte)
    axis, edges = found.axes[analyte], _edges(found.axes[analyte])
    inside = _highest(share / np.diff(_edges(found.coordinates[analyte])), share, level)
    best = found.density.max(axis=1 - analyte)
    changes = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]]).astype(int)))
    components = []
    for first, stop in zip(changes[::2], changes[1::2], strict=True):
        part = slice(int(first), int(stop))
        total = float(share[part].sum())
        if len(changes) > 2 and total < LEAST_PIECE:
            continue
        mean = float(share[part] @ axis[part]) / total
        components.append(
            Component(
                low=float(edges[first]),
                high=float(edges[stop]),
                open_low=bool(first == 0 and not ends_at_zero),
                open_high=bool(stop == len(axis)),
                estimate=float(axis[part][int(best[part].argmax())]),
                distance=float(found.squared.min()),
                probability=total,
                mean=mean,
                std=float(np.sqrt(share[part] @ (axis[part] - mean) ** 2 / total)),
            )
        )
    components.sort(key=lambda one: -one.probability)
    whole = sum(one.probability for one in components)
    shared = [Component(**{**vars(one), "probability": one.probability / whole}) for one in components]
    return ConcentrationSet(level, tuple(shared), float(found.squared.min()), 1.0)


def _highest(density: np.ndarray, mass: np.ndarray, level: float) -> np.ndarray:
    order = np.argsort(-density, kind="stable")
    before = np.concatenate([[0.0], np.cumsum(mass[order])[:-1]])
    inside = np.zeros(len(mass), dtype=bool)
    inside[order[before < level]] = True
    return inside


def _edges(points: np.ndarray) -> np.ndarray:
    return np.concatenate([points[:1], 0.5 * (points[1:] + points[:-1]), points[-1:]])
