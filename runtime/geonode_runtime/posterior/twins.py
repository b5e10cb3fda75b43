"""Twins: other concentrations whose predicted spectrum the unknown does not refute, and that the network left out.

Where a response rises and falls, two concentrations may give one spectrum. The network that makes the posterior saw
few such assays; there it decides by how the simple methods interpolate, which says nothing of the sample. So the minima
of the curve's distance are compared once more, by what is left of the spectrum beside the curve (across it, in standard
deviations of the noise), against what was left of the assay's own levels beside the curve without them: its error of
interpolation, that of the levels around a minimum where it is larger than that of most. Minima that differ by no more,
with the curve's own uncertainty and without, are as likely as each other, and the network leaves none of them out. The
same holds of what lies above the standards where the curve of a response that has turned back, carried straight on
beyond the highest, comes back to the spectrum.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from geonode_runtime.distributions import student_cumulative
from geonode_runtime.posterior.cells import Cells, dof_of
from geonode_runtime.posterior.density import Posterior
from geonode_runtime.posterior.standards import PosteriorStandards

STARVED = 0.2
"""Less than this share of what the spectrum gives a minimum is taken for left out by the network."""
HELD = 0.5
"""The others must hold so much of the probability: where they do not, the network follows no minimum of the curve."""
MOST = 0.5
"""They are given no more than this: what the network holds is not left out for them either."""
_REACH = 4.0
"""So many standard deviations around a minimum belong to it."""
_FAR = 0.5  # of what a curve that has turned back gives concentrations above the standards: beyond what was searched
_BESIDE = 2  # segments of the curve to either side of a minimum in which the distance across it is looked for


def with_twins(known: PosteriorStandards, one: Posterior, cells: Cells, row: int) -> Posterior:
    """The posterior with what it left out though the spectrum does not refute it.

    Args:
        known: of the standards. one: of the unknown, which is this ``row`` of ``cells``.
    """
    every = cells.minima[row]
    distinct = np.array([c not in every[:k] for k, c in enumerate(every)])
    where, wide = every[distinct], cells.scale[row, distinct] / np.sqrt(known.power)
    held = one.below_of(where + _REACH * wide) - one.below_of(where - _REACH * wide)
    # beyond the standards nothing is told apart
    held += (where > known.levels[-1]) * one.above + (where < known.levels[0]) * one.below
    if held.min() >= STARVED and not 0.0 < _beyond(known, cells.at[row])[0] <= known.span:
        return one  # of most spectra: no share is more than all of it, and none lies above the standards
    share = _shares(known, cells, row, distinct, wide)
    held = np.append(held, one.above / _FAR)
    starved = held < STARVED * share
    # what a minimum holds whose reach covers the starved one's place lies there as well as anywhere
    apart = np.ones((len(held), len(held)), dtype=bool)
    apart[:-1, :-1] = np.abs(where[:, None] - where) > _REACH * wide
    starved &= (apart & ~starved) @ held >= HELD
    if not starved.any():
        return one
    share = share * min(1.0, MOST / float(share[starved].sum()))
    kept = 1.0 - float(share[starved].sum())
    mass, below, above = kept * one.mass, kept * one.below, kept * one.above
    for k in np.flatnonzero(starved):
        if k == len(where):
            at = _cumulative_above(known, one.edges, cells.at[row])
        else:
            at = student_cumulative(dof_of(known), (one.edges - where[k]) / wide[k])
        mass = mass + share[k] * np.diff(at)
        below, above = below + share[k] * float(at[0]), above + share[k] * float(1.0 - at[-1])
    if one.floor:
        mass[0] += below
        below = 0.0
    return replace(one, mass=mass, below=below, above=above)


def _shares(known: PosteriorStandards, cells: Cells, row: int, distinct: np.ndarray, wide: np.ndarray) -> np.ndarray:
    """``[k + 1]`` what the spectrum gives each of the k ``distinct`` minima (standard deviations ``wide``), and
    concentrations above the standards; they add up to 1."""
    a, noise, where = cells.at[row], cells.noise[row], cells.minima[row, distinct]
    across = _across(known, a, where) / noise
    turned = where[across.argmin()] < known.levels[-2]
    along, left = _beyond(known, a)
    beyond = left / noise if turned and 0.0 < along <= known.span else float("inf")
    interior = (known.left_out > 0) & (known.left_out < len(known.levels) - 1)
    error = known.left_out_distance[interior] if interior.any() else known.left_out_distance
    poor = np.maximum(1.0, np.maximum(_missed(known, where), float(np.median(error))) / known.rank)
    # beyond the standards, where noise is forgiven more, nothing is more likely than within them
    more = np.maximum(np.append(across, beyond) - across.min(), 0.0) / poor
    more[:-1] = np.maximum(more[:-1], cells.excess[row, distinct])
    likely = (1.0 + more / known.dof) ** (-0.5 * (known.dof + 1.0))
    # half uniform in concentration, half in distance along the curve, as the profile's prior
    prior = 0.5 * np.append(wide / wide.sum() + 1.0 / len(wide), 1.0 / len(wide))
    return likely * prior / (likely * prior).sum()


def _missed(known: PosteriorStandards, where: np.ndarray) -> np.ndarray:
    """``[k + 1]`` square distance from the curve without them of the levels on either side of each of ``where [k]``,
    the larger of two, and of those before the top: what the curve may be off by there, as no median over all levels
    says. Of the ends, to which it only extrapolates, nothing is said."""
    n = len(known.levels)
    missed = np.zeros(n)
    missed[known.left_out] = known.left_out_distance
    missed[[0, -1]] = 0.0
    after = np.searchsorted(known.levels, np.append(where, known.levels[-1])).clip(1, n - 1)
    return np.maximum(missed[after], missed[after - 1])


def _across(known: PosteriorStandards, a: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Square distance ``[k]`` of ``a [r]`` from the curve around each of ``where [k]``."""
    (step, length), gap = known.segments, a - known.mean[:-1]
    t = np.clip((gap * step).sum(1) / length, 0.0, 1.0)
    distance = ((gap - t[:, None] * step) ** 2).sum(1)
    at = np.clip(np.searchsorted(known.places, where, side="right") - 1, 0, len(step) - 1)
    return np.array([distance[max(k - _BESIDE, 0) : k + _BESIDE + 1].min() for k in at])


def _beyond(known: PosteriorStandards, a: np.ndarray) -> tuple[float, float]:
    """Of the curve carried straight on beyond the highest standard: how far beyond, in concentration, it comes nearest
    to ``a [r]``, and the square distance there. What noise the two points of the curve bring counts as it does there
    (`geonode_runtime.shapes.Shapes.carried_noise`)."""
    end, step, far = known.carried_on
    gap, square = a - end, float(step @ step)
    along = float(gap @ step) / square if square > 0.0 else 0.0
    left = float(((gap - along * step) ** 2).sum()) / (0.5 * (1.0 + (1.0 + along) ** 2 + along**2))
    return along * far, left


def _cumulative_above(known: PosteriorStandards, edges: np.ndarray, a: np.ndarray) -> np.ndarray:
    """``[K + 1]`` probability below each of the ``edges`` of a concentration above the standards, where the curve
    carried on comes to ``a [r]``: for one half a Student t, as wide as that is far, of which only what lies above them
    counts; for the other beyond what was searched, for such a curve levels off before it has come back."""
    far, top = _beyond(known, a)[0], float(known.levels[-1])
    ends = np.append(edges, top)
    found = student_cumulative(dof_of(known), (ends - top - far) / far)
    return (1.0 - _FAR) * np.maximum(found[:-1] - found[-1], 0.0) / (1.0 - found[-1])
