"""One value that stands alone: a spike of the detector, or a decimal mark that slipped in one cell.

At a wavelength j a value stands off the line between its two neighbours by d_j. A spike is one that does so ten times
as far as any value of the same spectrum that is no neighbour of it, by a tenth of all that the other spectra reach
over, and fifty times as far as any of these does there: a sharp line of the analyte stands off in the other standards
too. Of 5 760 simulated unknowns one has one so defined, of 3 648 standards none.
"""

from __future__ import annotations

import numpy as np

from geonode_runtime.figures import figure

ALONE = 10.0
"""Times the next largest of the spectrum."""
LARGE = 0.1
"""Share of what the other spectra reach over, lowest to highest value."""
OTHERS = 0.02
"""The largest share of it that another spectrum may have there."""
FEWEST = 8
"""Of fewer wavelengths none can be said to stand alone."""


def spike_in(values: np.ndarray, others: np.ndarray) -> int | None:
    """The place of the spike of a spectrum ``[V]`` beside the ``others [n, V]`` at the same wavelengths; None where
    there is none."""
    if len(values) < FEWEST or not len(others):
        return None
    off = _off(values)
    k = int(off.argmax())
    rest = np.delete(off, np.arange(max(k - 1, 0), min(k + 2, len(off))))
    if off[k] < LARGE * float(np.ptp(others)) or off[k] <= ALONE * float(rest.max()):
        return None
    return None if float(_off(others)[:, k].max()) > OTHERS * off[k] else k


def spike_words(values: np.ndarray, wavelengths: np.ndarray, k: int, unit: str = "") -> str:
    """What a spectrum ``[V]`` is at its spike ``k`` and beside it, and what to do: the end of a sentence that begins
    with its name. ``unit`` of wavelengths, with its space."""
    beside = " and ".join(figure(float(values[j])) for j in (k - 1, k + 1) if 0 <= j < len(values))
    return (
        f"is {figure(float(values[k]))} at wavelength {wavelengths[k]:.10g}{unit} and {beside} beside it, and no other "
        "spectrum has anything of the kind there: a spike, or a decimal mark that slipped; repair that cell, or leave "
        "that wavelength out."
    )


def _off(values: np.ndarray) -> np.ndarray:
    """How far each value lies off the line between its neighbours, along the last axis, without a sign.

    At an end, off the line through the two before it, less what a spike of the one before would make of that (a steep
    edge is no spike, and one beside the end is not the end's).
    """
    bend = np.abs(np.diff(values, 2, axis=-1))  # twice what the inner values are off
    first = np.maximum(bend[..., :1] - 2.0 * bend[..., 1:2], 0.0)
    last = np.maximum(bend[..., -1:] - 2.0 * bend[..., -2:-1], 0.0)
    return np.concatenate([first, 0.5 * bend, last], axis=-1)
