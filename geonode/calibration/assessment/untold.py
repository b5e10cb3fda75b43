"""Levels that the others do not tell: each left out, its spectrum is missed by more than half of the response.

Where two labels are exchanged in a response that folds, other orders of the levels make a curve as well, so that no
exchange stands out and no standard contradicts the others. What is left to see is that the curve is not borne out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from geonode.calibration.calibration import Calibration

MISSED = 0.5
"""A spectrum left out that is missed by a larger share of the response is told even where no check found anything: of
459 genuine simulated assays of families left out of training, with errors below 30 % of the response, 2.2 % are told
(benchmarks/results/genuine_standards_fresh.md)."""


def response_size(calibration: Calibration) -> float:
    """What changes with concentration: root mean square, over levels and wavelengths, of the level means less their
    mean. Errors of spectra are told as shares of it, not of the spectra, whose shape is no response."""
    return float(np.sqrt(np.mean(calibration.gp.residual**2)))


def missed_by(calibration: Calibration) -> np.ndarray:
    """``[m]`` root mean square of each left-out level's error of the predicted spectrum ÷ that of the response, in the
    order of ``held_out.left_out``; infinite where there is no response."""
    size, residual = response_size(calibration), calibration.held_out.residual
    errors = np.sqrt((residual**2).mean(axis=1))
    return errors / size if size > 0.0 else np.full(len(errors), np.inf)


def untold_levels(calibration: Calibration) -> list[float]:
    """The levels between others that are missed by more than `MISSED`, ascending."""
    levels, last = calibration.levels, len(calibration.levels) - 1
    shares = zip(calibration.held_out.left_out, missed_by(calibration), strict=True)
    return [float(levels[i]) for i, share in shares if 0 < i < last and share > MISSED]


def untold_sentence(levels: list[float], unit: str = "") -> str:
    """What to say of such ``levels``; empty where there are none."""
    if not levels:
        return ""
    unit = f" {unit}" if unit else ""
    return (
        f"with {' or '.join(f'{one:g}' for one in levels)}{unit} left out its spectrum is missed by more than half of "
        "the response: a label may be wrong, there or beside it, or standards are missing between"
    )
