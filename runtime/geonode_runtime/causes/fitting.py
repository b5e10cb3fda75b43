"""The fit of one cause: concentration and settings by trial on grids that close in, coefficients by least squares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from geonode_runtime.causes.cause import Cause

ROUNDS = 4
"""Grids, each a third as wide as the one before."""
FIRST, LATER = 33, 9
"""Concentrations of the first grid and of the later ones; SETTINGS: values of a setting on the later ones."""
SETTINGS = 7
SAME = 1e-9
"""Values of a grid no further apart than this share of it are one."""


@dataclass(frozen=True)
class Problem:
    """What is to be explained.

    Attributes:
        spectrum, wavelengths: ``[W]``. scale: ``[W]`` standard deviation of the noise.
        curve: concentrations ``[C]`` → spectra of the standards' curve ``[C, W]``.
        concentrations: the grid to begin with, ascending.
        ignored: causes with coefficients alone that leave no trace behind the preprocessing; they may be there as well.
        highest: the highest standard, beyond which the curve is carried on; None where it is not known.
    """

    spectrum: np.ndarray
    wavelengths: np.ndarray
    scale: np.ndarray
    curve: Callable[[np.ndarray], np.ndarray]
    concentrations: np.ndarray
    ignored: Sequence[Cause] = ()
    highest: float | None = None


@dataclass(frozen=True)
class Fit:
    """The best that a cause can do.

    Attributes:
        concentration: where on the curve. settings, coefficients: of the cause.
        rss: sum of squares of what is left, in units of the noise.
        left: ``[W]`` what is left, in units of the signal.
    """

    concentration: float
    settings: tuple[float, ...]
    coefficients: tuple[float, ...]
    rss: float
    left: np.ndarray


def fit(problem: Problem, cause: Cause) -> Fit:
    """The smallest sum of squares that ``cause`` leaves."""
    c = problem.concentrations
    axes = [axis.values for axis in cause.axes(problem.wavelengths)]
    free = [axis.between for axis in cause.axes(problem.wavelengths)]
    best: Fit | None = None
    for number in range(ROUNDS):
        found, i, at = _trial(problem, cause, c, axes)
        if best is None or found.rss <= best.rss:
            best = found
        if len(c) == 1 and all(len(v) == 1 or not f for v, f in zip(axes, free, strict=True)):
            break  # there is nothing to close in on
        last = number == ROUNDS - 1
        c = c if last else _closer(c, i, LATER)
        axes = [_closer(v, k, SETTINGS) if f else v[k : k + 1] for v, k, f in zip(axes, at, free, strict=True)]
    assert best is not None
    return best


def _closer(values: np.ndarray, k: int, points: int) -> np.ndarray:
    """A grid between the neighbours of the k-th value that holds that value too; within the first grid's ends."""
    low, high = values[max(k - 1, 0)], values[min(k + 1, len(values) - 1)]
    if low == high:
        return values[k : k + 1]
    grid = np.linspace(low, high, points)
    there = np.abs(grid - values[k]).min() <= SAME * (high - low)
    return grid if there else np.sort(np.append(grid, values[k]))


def _trial(problem: Problem, cause: Cause, c: np.ndarray, axes: list[np.ndarray]) -> tuple[Fit, int, list[int]]:
    """The best on one grid, and its place there."""
    settings = np.array(list(product(*axes))) if axes else np.zeros((1, 0))
    weight = 1.0 / problem.scale
    curve, x = problem.curve(c), problem.wavelengths
    left = (problem.spectrum - cause.base(curve, x, settings)) * weight
    nuisance = [v * weight for other in problem.ignored for v in other.columns(curve, x, np.zeros((1, 0)))]
    own = [v * weight for v in cause.columns(curve, x, settings)]
    rss = np.broadcast_to(np.einsum("ctw,ctw->ct", left, left), (len(c), len(settings))).copy()
    basis = _orthonormal([*nuisance, *own])
    for v in basis:
        rss -= _inner(left, v) ** 2
    if cause.positive and len(own) == 1:
        rest = left
        for v in basis[:-1]:
            rest = rest - _inner(rest, v)[..., None] * v
        useless = _inner(rest, basis[-1]) <= 0.0
        rss = np.where(useless, rss + _inner(left, basis[-1]) ** 2, rss)
    i, t = np.unravel_index(int(rss.argmin()), rss.shape)
    found = _solved(problem, cause, c[i], settings[t])
    return found, int(i), [int(k) for k in np.unravel_index(int(t), [len(v) for v in axes])] if axes else []


def _inner(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Inner products along the wavelengths, ``[C | 1, T | 1]``."""
    if b.shape[:2] == (1, 1):
        return a @ b[0, 0]
    if a.shape[1] == 1 and b.shape[0] == 1:
        return a[:, 0] @ b[0].T
    return np.einsum("ctw,ctw->ct", *np.broadcast_arrays(a, b))


def _orthonormal(columns: list[np.ndarray]) -> list[np.ndarray]:
    """Gram and Schmidt; a column that the earlier ones hold already becomes zero."""
    made: list[np.ndarray] = []
    for column in columns:
        size = np.sqrt(_inner(column, column))
        for v in made:
            column = column - _inner(column, v)[..., None] * v
        norm = np.sqrt(np.maximum(_inner(column, column), 0.0))
        inverse = np.where(norm > 1e-9 * size, 1.0 / np.maximum(norm, 1e-300), 0.0)
        made.append(column * inverse[..., None])
    return made


def _solved(problem: Problem, cause: Cause, c: float, settings: np.ndarray) -> Fit:
    """The fit at one concentration and one choice of settings, with its coefficients."""
    curve, x = problem.curve(np.array([c])), problem.wavelengths
    rows = settings[None]
    base = cause.base(curve, x, rows)[0, 0]
    others = [v[0, 0] for other in problem.ignored for v in other.columns(curve, x, np.zeros((1, 0)))]
    own = [v[0, 0] for v in cause.columns(curve, x, rows)]
    solution, left = _least_squares([*others, *own], problem.spectrum - base, problem.scale)
    coefficients = solution[len(others) :]
    if cause.positive and (coefficients <= 0.0).any():
        coefficients = np.zeros(len(own))
        _, left = _least_squares(others, problem.spectrum - base, problem.scale)
    rss = float(np.sum((left / problem.scale) ** 2))
    return Fit(float(c), tuple(settings.tolist()), tuple(coefficients.tolist()), rss, left)


def _least_squares(columns: list[np.ndarray], target: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of ``columns`` ``[W]`` each, and what they leave of ``target [W]``; a column that the earlier ones
    hold already has none."""
    white = [column / scale for column in columns]
    basis = [v[0, 0] for v in _orthonormal([column[None, None] for column in white])]
    rest = target / scale
    solution = np.zeros(len(columns))
    shares = np.array([v @ rest for v in basis])
    for k in reversed(range(len(columns))):  # the triangle of Gram and Schmidt, from its end
        pivot = float(basis[k] @ white[k])
        if pivot > 0.0:
            later = sum(solution[m] * float(basis[k] @ white[m]) for m in range(k + 1, len(columns)))
            solution[k] = (shares[k] - later) / pivot
    left = target.copy()
    for size, column in zip(solution, columns, strict=True):
        left = left - size * column
    return solution, left


class Nothing(Cause):
    """No cause at all: the curve as it is. Not registered, since it explains nothing."""

    parameters = 0
    remedy = ""


def plain(problem: Problem) -> Fit:
    """The fit of the curve as it is."""
    return fit(replace(problem), Nothing())
