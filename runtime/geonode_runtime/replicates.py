"""Are replicates of one sample, or different samples that came together?

An average of different samples is the concentration of none of them. Replicates differ by noise, and a little by path
and placement; samples differ in what is asked for. So replicates are refused where both of two things hold: what each
of two of them says alone, its 95 % set, has nothing in common with what the other says and lies more than
:data:`APART` of the concentration away; and they scatter, along what the standards show, more than :data:`EXCESS` times
(as variance) as the standards' own noise and replicates explain.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from geonode_runtime.answers import Measurer, replicate_excess
from geonode_runtime.errors import InputError
from geonode_runtime.figures import figure
from geonode_runtime.sets import Component, ConcentrationSet, concentration_sets
from geonode_runtime.verdicts import VERDICT_LEVEL
from geonode_runtime.wording import either

APART = 0.2
"""Of the concentration itself (of the calibrated range, where zero lies more than a range away, as with pH)."""
EXCESS = 9.0
"""Three standard deviations of what the standards' own replicates scatter."""


def require_one_sample(
    curve: Measurer,
    calibrated: tuple[float, float],
    spectra: np.ndarray,
    usable: np.ndarray | None,
    name: str,
    unit: str = "",
    labels: Sequence[str] = (),
) -> None:
    """Refuse replicates that are plainly different samples.

    Args:
        curve: of the calibration. calibrated: its lowest and highest standard.
        spectra: ``[k, W]``, preprocessed as the standards were. usable: ``[W]``, None where all are.
        name: of the unknown. unit: of concentrations. labels: ``k`` names of the spectra; without them they are
            counted.

    Raises:
        InputError: two of them say concentrations that have nothing to do with each other.
    """
    if len(spectra) < 2 or replicate_excess(curve, spectra, usable) < EXCESS:
        return
    distances, _ = curve.compare(spectra, usable, 1.0)
    found = concentration_sets(curve, distances, VERDICT_LEVEL)
    worst = max(combinations(range(len(found)), 2), key=lambda pair: _gap(calibrated, found, pair))
    if _gap(calibrated, found, worst) <= 0.0:
        return
    unit = f" {unit}" if unit else ""
    first, second = (figure(found[k].best.estimate, unit, beside=found[k].best.size) for k in worst)
    one, other = (f"'{labels[k]}'" if len(labels) == len(spectra) else f"number {k + 1}" for k in worst)
    raise InputError(
        f"{name}: {taken_together(len(spectra))} are of different ones: {one} is found at {first} and {other} at "
        f"{second}, further apart than replicates of the standards scatter; {ask_each()}."
    )


def taken_together(count: int) -> str:
    """What was done to ``count`` spectra, and why: on a command line nobody need have said that they are replicates."""
    return either(
        f"the {count} spectra were taken as replicates of one sample, as several files given together are without "
        "--each, and",
        f"the {count} spectra given as replicates of one sample",
    )


def ask_each() -> str:
    """The remedy: an answer to every spectrum."""
    return either("ask for an answer to each of them (--each)", "ask for an answer to each (without replicates=True)")


def _gap(calibrated: tuple[float, float], found: Sequence[ConcentrationSet], pair: tuple[int, int]) -> float:
    """How far the nearest pieces of two sets lie apart beyond what :data:`APART` allows; negative where they do not."""
    low, high = calibrated
    amounts = 0.0 <= low <= high - low
    gaps = []
    for one in found[pair[0]].components:
        for other in found[pair[1]].components:
            size = max(one.estimate, other.estimate) if amounts else high - low
            apart = min(_between(one, other), abs(one.estimate - other.estimate) - APART * size)
            gaps.append(apart)
    return float(min(gaps))


def _between(one: Component, other: Component) -> float:
    """The distance between two pieces, negative where they overlap."""
    return max(other.low - one.high, one.low - other.high)
