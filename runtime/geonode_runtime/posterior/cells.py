"""Unknowns as the network sees them: cells of concentration, dense where any method puts the unknown.

Every candidate (up to three minima of the curve's distance, and the point estimates of :data:`METHODS`) is a Student t
around its estimate with the scale of its left-out error. Cells end at quantiles of these and of the curve's profile
likelihood, so that they are as fine as the sharpest candidate wherever it may lie. Nothing here has a unit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geonode_runtime.distributions import student_cumulative, student_quantile
from geonode_runtime.posterior.standards import METHODS, PosteriorStandards, nearest_on

CELLS = 104
MINIMA = 3
ALL_MINIMA = 8
"""So many minima of the curve's distance are kept for what no network decides (`geonode_runtime.posterior.twins`)."""
_PEAK = (0.001, 0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 0.999)
_FLANK = (0.01, 0.08, 0.3, 0.5, 0.7, 0.92, 0.99)
_BROAD = 10
_FLANKED = tuple(k for k, name in enumerate(METHODS) if name != "pcr")  # which is next to PLS as a rule
_COARSE = CELLS + 1 - MINIMA * len(_PEAK) - len(_FLANKED) * len(_FLANK) - _BROAD
_NARROWEST = 1e-7  # of the searched range: a cell's least width
CELL_FEATURES = 10 + MINIMA + len(METHODS)
GLOBAL_FEATURES = 26 + 5 * len(METHODS) + 2 * MINIMA
ERRORS = slice(26, 26 + len(METHODS))
"""Among the features of the whole unknown: half the logarithm of every method's error, as a share of the range."""


@dataclass(frozen=True)
class Cells:
    """U unknowns of one assay.

    Attributes:
        edges: ``[U, CELLS + 1]`` ascending, user units, over the searched range.
        base: ``[U, CELLS + 2]`` log mass of the candidates' mixture in every cell, below and above.
        values: ``[U, CELLS, CELL_FEATURES]``. whole: ``[U, GLOBAL_FEATURES]``.
        odd: ``[U]`` a start for the log odds that none of the concentrations explains the spectrum.
        stray: ``[U, 2]`` Q and T²: misfit outside and inside the standards' span ÷ the worst left-out standard's.
        estimates: ``[U, 7]`` of :data:`METHODS`.
        at: ``[U, r]`` coordinates in the directions kept. noise: ``[U]`` their variance.
        minima, scale, excess: ``[U, ALL_MINIMA]`` the curve's, the deepest first, their standard deviations, and how
            far (square) each lies above the deepest; fewer minima: the deepest again. The network sees three of them.
    """

    edges: np.ndarray
    base: np.ndarray
    values: np.ndarray
    whole: np.ndarray
    odd: np.ndarray
    stray: np.ndarray
    estimates: np.ndarray
    at: np.ndarray
    noise: np.ndarray
    minima: np.ndarray
    scale: np.ndarray
    excess: np.ndarray


def unknown_cells(
    known: PosteriorStandards, spectra: np.ndarray, replicates: np.ndarray, usable: np.ndarray | None = None
) -> Cells:
    """Cells of unknowns ``[U, W]``, each the mean of ``replicates [U]`` spectra."""
    a_all, outside = known.white.coordinates(spectra, usable)
    x, _ = known.plain.coordinates(spectra, usable)
    dropped = np.delete(np.arange(a_all.shape[1]), known.keep)
    rest = (a_all[:, dropped] ** 2).sum(1)
    width = len(known.white.scale)
    q = (outside * max(width - a_all.shape[1], 1) + rest) / max(width - known.rank, 1) * replicates
    phi = np.maximum(q, 1.0)
    a = a_all[:, known.keep]
    full, steps = _distances(known, a, phi / replicates)
    plain = ((a[:, None] - known.mean) ** 2).sum(-1) / (phi / replicates)[:, None]
    every, closest = _minima(known, full, steps)
    minima, scale, excess = (values[:, :MINIMA] for values in every)
    estimates, near_curve = _estimates(known, a, x)
    error = known.error_of_unknown(estimates, phi, replicates)
    inflation = np.maximum(1.0, closest / max(known.rank - 1, 1))
    power = -0.5 * (known.dof + 1.0)
    likelihood = power * np.log1p((full - closest[:, None]).clip(0.0) / (known.dof * inflation[:, None]))
    profile = _profile(known.places, likelihood)
    edges = _edges(known, minima, scale, estimates, error, profile)
    base = _base(known, edges, minima, scale, excess, estimates, error, profile)
    ridge = known.ridge(a_all, outside, replicates)
    stray_q = ridge / max(float(known.left_out_ridge.max()), 1.0)
    stray_t = (near_curve * replicates / phi + known.rank) / (float(known.left_out_distance.max()) + known.rank)
    values = _values(known, edges, base, likelihood, plain, phi / replicates, minima, scale, estimates, error)
    whole = _whole(
        known, replicates, q, closest, near_curve * replicates, ridge, minima, scale, excess, estimates, error, base
    )
    odd = np.clip(np.log(np.maximum(stray_q, 1e-3)), 0, None) + np.clip(np.log(stray_t), 0, None) - 3.0
    stray = np.stack([stray_q, stray_t], 1)
    return Cells(edges, base, values, whole, odd, stray, estimates, a, phi / replicates, *every)


def _distances(known: PosteriorStandards, a: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """d² of unknowns ``a [U, r]`` to the places ``[U, K]`` with the curve's covariance and
    ``noise [U]``; and the squared steps of the curve between places in the same metric ``[U, K − 1]``."""
    values, vectors = known.spread_values, known.spread_vectors
    inverse = 1.0 / (np.maximum(values, 0.0)[None] + noise[:, None, None])  # [U, K, r]
    turned = np.matmul(a[None], vectors) - np.matmul(known.mean[:, None], vectors)  # [K, U, r]
    squared = np.einsum("kur,ukr->uk", turned**2, inverse, optimize=True)
    step = np.einsum("kr,krs->ks", np.diff(known.mean, axis=0), vectors[:-1]) ** 2
    return squared, np.einsum("kr,ukr->uk", step, inverse[:, :-1])


def _minima(
    known: PosteriorStandards, full: np.ndarray, steps: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """The deepest minima of d²: concentration, local standard deviation, excess over the deepest ``[U, ALL_MINIMA]``;
    and the deepest ``[U]``. Fewer minima: the deepest again, with a large excess."""
    left, right, steps = full[:, :-1], full[:, 1:], np.maximum(steps, 1e-12)
    t = np.clip(0.5 + (left - right) / (2.0 * steps), 0.0, 1.0)
    nearest = np.maximum((1.0 - t) * left + t * right - t * (1.0 - t) * steps, 0.0)
    padded = np.pad(nearest, ((0, 0), (1, 1)), constant_values=np.inf)
    lowest = (nearest < padded[:, :-2]) & (nearest <= padded[:, 2:])
    ranked = np.where(lowest, nearest, np.inf)
    order = np.argsort(ranked, axis=1, kind="stable")[:, :ALL_MINIMA]
    row = np.arange(len(full))[:, None]
    depth = ranked[row, order]
    order = np.where(np.isfinite(depth), order, order[:, :1])
    gap = np.diff(known.places)[order]
    where = known.places[order] + t[row, order] * gap
    scale = np.clip(gap / np.sqrt(steps[row, order]), 1e-6 * known.span, known.span)
    excess = np.where(np.isfinite(depth), depth - depth[:, :1], 60.0)
    return (where, scale, np.minimum(excess, 60.0)), depth[:, 0]


def _estimates(known: PosteriorStandards, a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``[U, 7]`` estimates of :data:`METHODS`, and the square distance from the curve ``[U]``."""
    _, distance = nearest_on(known.mean, a, known.places)
    curves = [nearest_on(curve, x, known.places)[0] for curve in (known.plain_mean, known.pchip)]
    found = np.column_stack([*curves, known.regression_estimates(x), known.process_estimates(x)])
    return np.concatenate([found, found @ known.stack[:, None]], 1), distance


def _profile(places: np.ndarray, likelihood: np.ndarray) -> np.ndarray:
    """Cumulative mass ``[U, K]`` of the profile likelihood, a twentieth of it even over the searched range."""
    density = np.exp(likelihood)
    part = 0.5 * (density[:, 1:] + density[:, :-1]) * np.diff(places)
    total = part.sum(1, keepdims=True)
    part = 0.95 * part / np.maximum(total, 1e-300) + 0.05 * np.diff(places) / (places[-1] - places[0])
    return np.concatenate([np.zeros((len(part), 1)), np.cumsum(part / part.sum(1, keepdims=True), 1)], 1)


def _edges(known: PosteriorStandards, minima, scale, estimates, error, profile) -> np.ndarray:
    low, high = known.low, known.high
    peak, flank = (np.array([student_quantile(dof_of(known), p) for p in which]) for which in (_PEAK, _FLANK))
    own = (minima[..., None] + scale[..., None] * peak).reshape(len(minima), -1)
    methods = (estimates[:, _FLANKED, None] + error[:, _FLANKED, None] * flank).reshape(len(minima), -1)
    quantiles = (np.arange(_COARSE) + 0.5) / _COARSE
    coarse = np.stack([np.interp(quantiles, one, known.places) for one in profile])
    broad = np.concatenate([np.linspace(low, high, _BROAD - 2), known.levels[[0, -1]]])
    edges = np.concatenate([own, methods, coarse, np.broadcast_to(broad, (len(minima), _BROAD))], 1)
    edges = np.sort(np.clip(edges, low, high), 1)
    # equal edges are spread evenly from both ends, so that every cell has some width
    room = _NARROWEST * (high - low)
    count = np.arange(CELLS + 1)
    edges = np.maximum.accumulate(edges - room * count, 1) + room * count
    ceiling = high - room * count[::-1]
    return np.minimum(edges, ceiling)


def dof_of(known: PosteriorStandards) -> int:
    """Degrees of freedom of the Student t around candidates."""
    return int(min(max(len(known.levels) - 1, 2), 8))


def _base(known: PosteriorStandards, edges, minima, scale, excess, estimates, error, profile) -> np.ndarray:
    """Log mass of the candidates' mixture."""
    dof, span = dof_of(known), known.span
    own = np.exp(-0.5 * excess)
    own = 0.35 * own / own.sum(1, keepdims=True)
    weights = (error[:, :-1] / span) ** -1.0
    weights = np.concatenate([0.25 * weights / weights.sum(1, keepdims=True), np.full((len(error), 1), 0.2)], 1)
    where = np.concatenate([minima, estimates], 1)
    width = np.concatenate([np.hypot(scale, 0.3 * error[:, :1]), error], 1)
    share = np.concatenate([own, weights], 1)
    cumulative = student_cumulative(dof, (edges[:, :, None] - where[:, None]) / width[:, None])
    mass = (np.diff(cumulative, axis=1) * share[:, None]).sum(-1)
    below = (cumulative[:, 0] * share).sum(-1)
    above = ((1.0 - cumulative[:, -1]) * share).sum(-1)
    coarse = np.stack([np.interp(e, known.places, one) for e, one in zip(edges, profile, strict=True)])
    mass = mass + 0.15 * np.diff(coarse, axis=1)
    mass = mass + 0.05 * np.diff(edges, axis=1) / (known.high - known.low)
    if known.levels[0] >= 0.0 and known.low == 0.0:
        # what the candidates put below nothing is at nothing, or a little above
        mass[:, 0] += below
        below = np.full_like(below, 1e-12)
    total = np.concatenate([mass, below[:, None] + 1e-12, above[:, None] + 1e-12], 1)
    return np.log(np.maximum(total / total.sum(1, keepdims=True), 1e-12))


def _values(
    known: PosteriorStandards, edges, base, likelihood, plain, noise, minima, scale, estimates, error
) -> np.ndarray:
    span, levels, places = known.span, known.levels, known.places
    c = 0.5 * (edges[:, 1:] + edges[:, :-1])
    width = np.diff(edges, axis=1)
    at = np.stack([np.interp(one, places, row) for one, row in zip(c, likelihood, strict=True)])
    bare = plain - plain.min(1, keepdims=True)
    bare = np.stack([np.interp(one, places, row) for one, row in zip(c, bare, strict=True)])
    resolution = np.sqrt(noise)[:, None] / np.interp(c, places, np.maximum(known.slope * span, 1e-9))
    doubt = np.interp(c, places, known.doubt)
    rank = known.rank_of(c)
    left = np.clip(np.searchsorted(levels, c, side="right") - 1, 0, len(levels) - 1)
    gap = np.abs(c[..., None] - levels).min(-1) / span
    local = np.diff(levels)[np.clip(left, 0, len(levels) - 2)] / span
    parts = [
        at / 4.0,
        np.arcsinh(bare) / 4.0,
        base[:, :CELLS] - np.log(width / span),
        np.log(resolution + 1e-6),
        np.log(doubt + 1e-6),
        np.log(gap + 1e-4),
        np.log(local),
        np.clip(rank, -1.0, None) / max(len(levels) - 1, 1),
        (c < levels[0]) * 1.0 - (c > levels[-1]) * 1.0,
        np.log(width / span),
    ]
    z = [(c - minima[:, k, None]) / scale[:, k, None] for k in range(MINIMA)]
    z += [(c - estimates[:, k, None]) / error[:, k, None] for k in range(len(METHODS))]
    return np.stack([np.clip(p, -12.0, 12.0) for p in parts] + [np.arcsinh(one) for one in z], -1)


def _whole(
    known: PosteriorStandards, replicates, q, closest, near, ridge, minima, scale, excess, estimates, error, base
) -> np.ndarray:
    span, n, rms = known.span, len(known.levels), known.typical
    ones = np.ones(len(q))
    distance, mixes = known.left_out_distance + known.rank, known.left_out_ridge + 0.1
    middle = estimates[:, -1:]
    assay = [
        np.log(n) - 2.0,
        np.log(known.replicates),
        float(known.levels[0] >= 0.0),
        float(known.levels[0] == 0.0),
        float(known.low == 0.0),
        0.3 * np.log(known.signal + 1e-3),
        known.rank / 12.0,
        np.log(np.diff(known.levels).max() / span * (n - 1)),
        0.3 * np.log(np.median(distance)),
        0.3 * np.log(distance.max()),
        0.5 * np.log(np.median(mixes)),
        0.5 * np.log(mixes.max()),
        known.declared,
    ]
    own = [
        np.log(replicates),
        0.5 * np.log(q + 0.1),
        0.3 * np.log(closest + 1.0),
        0.3 * np.log(near + 1.0),
        0.3 * np.log((near + known.rank) / np.median(distance)),
        0.3 * np.log((near + known.rank) / distance.max()),
        0.5 * np.log(ridge + 0.1),
        0.5 * np.log((ridge + 0.1) / np.median(mixes)),
        0.5 * np.log((ridge + 0.1) / mixes.max()),
        (middle[:, 0] - known.levels[0]) / span,
        known.rank_of(middle[:, 0]) / (n - 1),
        0.3 * base[:, CELLS],
        0.3 * base[:, CELLS + 1],
    ]
    table = [np.broadcast_to(np.asarray(v, dtype=float), ones.shape) for v in (*assay, *own)]
    order = np.argsort(np.argsort(rms, kind="stable")) / (len(METHODS) - 1.0)
    table += [np.log(error[:, k] / span) / 2.0 for k in range(len(METHODS))]
    table += [np.log(rms[k] / span) / 2.0 * ones for k in range(len(METHODS))]
    table += [order[k] * ones for k in range(len(METHODS))]
    table += [np.arcsinh((estimates[:, k] - middle[:, 0]) / error[:, k]) for k in range(len(METHODS))]
    table += [np.log(np.abs(estimates[:, k] - middle[:, 0]) / span + 1e-5) / 2.0 for k in range(len(METHODS))]
    table += [np.log(scale[:, k] / span) / 2.0 for k in range(MINIMA)]
    table += [np.log1p(excess[:, k]) for k in range(MINIMA)]
    return np.clip(np.stack(table, 1), -8.0, 8.0)
