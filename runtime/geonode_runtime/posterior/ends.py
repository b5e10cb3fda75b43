"""An end standard, measured again: its sets end where the search did.

Of a spectrum at an end of the range the posterior keeps some probability beyond what was searched, for nothing is known
there. Where the spectrum is that of the end standard itself, a concentration out there would need a curve that comes
back to the same spectrum after at least a quarter of the range; that is not believed, and the sets are closed there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from geonode_runtime.posterior.density import Posterior
from geonode_runtime.posterior.standards import PosteriorStandards
from geonode_runtime.sets import ConcentrationSet

NEAR = 0.1
"""So near to the end standard, in lengths of the step from it to the next one (in the directions that are more than
noise), a spectrum is that standard's."""
FROM_LEVEL = 0.8
"""A set of that level must have the end by itself: so much probability beyond the search is believed, for the curve
stands still there, or turns back."""


def ended(
    known: PosteriorStandards,
    posterior: Posterior,
    spectrum: np.ndarray,
    usable: np.ndarray | None,
    sets: tuple[ConcentrationSet, ConcentrationSet],
) -> tuple[tuple[ConcentrationSet, ConcentrationSet], str]:
    """The sets, closed where the search ended if ``spectrum [W]`` is an end standard's, and the note that says so.

    Args:
        known: of the standards. posterior: of the unknown. usable: ``[W]``, None where all wavelengths are.
        sets: the reported one and that of 95 %.
    """
    if not any(_open(one, True, True) for one in sets):
        return sets, ""
    least = posterior.highest(FROM_LEVEL).components
    low, high = _at_ends(known, spectrum, usable)
    low = low and not any(piece.open_low for piece in least)
    high = high and not any(piece.open_high for piece in least)
    if not any(_open(one, low, high) for one in sets):
        return sets, ""
    first, second = (_closed(one, low, high) if _open(one, low, high) else one for one in sets)
    which = "lowest and that of the highest" if low and high else "lowest" if low else "highest"
    return (first, second), (
        f"the spectrum is that of the {which} standard, nearer to it than a tenth of the step to the next one: "
        "its sets end where the search did"
    )


def _open(one: ConcentrationSet, low: bool, high: bool) -> bool:
    """Whether a set is one piece with an end out of reach that may be closed."""
    piece, several = one.best, len(one.components) > 1
    return one.level > FROM_LEVEL and not several and ((piece.open_low and low) or (piece.open_high and high))


def _closed(one: ConcentrationSet, low: bool, high: bool) -> ConcentrationSet:
    piece = one.best
    return replace(
        one,
        components=(replace(piece, open_low=piece.open_low and not low, open_high=piece.open_high and not high),),
    )


def _at_ends(known: PosteriorStandards, spectrum: np.ndarray, usable: np.ndarray | None) -> tuple[bool, bool]:
    """Whether a spectrum ``[W]`` is that of the lowest and that of the highest standard."""
    at, points = known.white.coordinates(spectrum[None], usable)[0][0, known.keep], known.points[:, known.keep]
    low, high = (
        float(((at - points[end]) ** 2).sum()) <= NEAR**2 * float(((points[end] - points[beside]) ** 2).sum())
        for end, beside in ((0, 1), (-1, -2))
    )
    return low, high
