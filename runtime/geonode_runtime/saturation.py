"""Saturated values of an unknown: which are masked, and when a limit leaves too little of the spectrum."""

from __future__ import annotations

import math

import numpy as np

from geonode_runtime.errors import InputError
from geonode_runtime.wording import argument

# A detector at its limit repeats one value; so many equal neighbours at the top of a spectrum, above what any standard
# reaches there, are taken for that.
_PLATEAU = 3
_ABOVE_STANDARDS = 1.1
_MOST_TAKEN = 0.9
"""Of what changes between the standards, in squares, a limit below their own values may take so much.

On 1892 simulated unknowns of families left out of training, 95 % sets under such limits hold the truth in 93 % of cases
where a fifth or more is left (95 % without a limit), 90 % between a tenth and a fifth, 66 % below a tenth, 44 % below
0.2 %: values chosen for being small are no sample of a spectrum."""


def saturated(
    values: np.ndarray,
    standards: np.ndarray,
    saturation: float | None,
    wavelengths: np.ndarray,
    usable: np.ndarray,
    notes: list[str],
    name: str,
) -> np.ndarray:
    """``[k, W]`` True where a value is at or above the limit, or stands on a plateau above the standards; noted.

    Args:
        values: ``[k, W]``. standards: ``[n, W]`` level means. usable: ``[W]``, False where something else masks.
        saturation: the limit; None looks for a plateau.

    Raises:
        InputError: a limit below the standards that leaves hardly anything of what changes between them.
    """
    found = np.zeros(values.shape, dtype=bool)
    if saturation is not None:
        _require_response(values.max(axis=0), standards, saturation, usable, name)
    for row, spectrum in enumerate(values):
        if saturation is not None:
            found[row] = spectrum >= saturation
        elif len(spectrum) >= _PLATEAU:
            at_top = spectrum == spectrum.max()
            runs = np.convolve(at_top, np.ones(_PLATEAU), mode="same") >= _PLATEAU
            ceiling = _ABOVE_STANDARDS * np.maximum(standards.max(axis=0), 0.0)
            if (runs & (spectrum > ceiling)).any():
                found[row] = at_top
    columns = np.flatnonzero(found.any(axis=0))
    if columns.size:
        notes.append(
            f"{columns.size} saturated wavelengths were masked (between {wavelengths[columns[0]]:g} and "
            f"{wavelengths[columns[-1]]:g})"
        )
    return found


def _require_response(top: np.ndarray, standards: np.ndarray, saturation: float, usable: np.ndarray, name: str) -> None:
    """Refuse a limit that the standards themselves exceed over nearly all that changes between them.

    A detector that saturates there would have cut the standards off too. Above them all a spectrum may lose whatever it
    loses: it is beyond the calibrated range, and said to be.
    """
    share = np.where(usable, standards.var(axis=0), 0.0)
    total = share.sum()
    if total <= 0.0:
        return
    share = share / total
    reached = np.minimum(top, standards.max(axis=0))  # a limit takes a wavelength where both lie above it
    taken = float(share[reached >= saturation].sum())
    if taken <= _MOST_TAKEN:
        return
    order = np.argsort(-reached, kind="stable")
    least = float(reached[order][int(np.argmax(np.cumsum(share[order]) > _MOST_TAKEN))])
    raise InputError(
        f"{argument('saturation', saturation)} masks {int((usable & (top >= saturation)).sum())} of "
        f"{int(usable.sum())} wavelengths of {name}, which hold {100.0 * taken:.3g} % of what changes between the "
        f"standards, and these exceed it themselves (up to {standards.max():.4g}): a fit to the rest would mislead; "
        f"give {_above(least):.10g} or more, the value at which the detector saturates, or leave it out."
    )


def _above(value: float) -> float:
    """The next number of three digits above ``value``."""
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 2) if value else 1e-3
    return float(f"{(math.floor(value / step) + 1) * step:.10g}")
