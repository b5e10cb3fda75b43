"""The misfit of an unknown of a calibration: what was measured, what the curve gives, and the causes tried on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geonode.calibration.causes.explanation import Explanation, explain, ignored_by
from geonode.calibration.causes.fitting import FIRST, Problem
from geonode.calibration.measurement_noise import whitening_variance
from geonode_runtime.unknowns import Unknown

if TYPE_CHECKING:
    from geonode.calibration.calibration import Calibration

INVISIBLE = 0.02
"""A cause of which a preprocessing leaves less than this share of its effect cannot be seen behind it."""


def explain_unknown(calibration: Calibration, unknown: Unknown) -> Explanation | None:
    """Why ``unknown``, aligned but not preprocessed, lies off the curve; None where there are too few wavelengths.

    Causes act on spectra as measured, so they are fitted there. Those that the preprocessing takes away (an offset
    behind a derivative) may be there as well, and are not named.
    """
    usable, measured = unknown.usable, calibration.measured
    if usable.sum() < 8:
        return None
    wavelengths = measured.wavelengths[usable]
    deviations = calibration.deviations if measured.preprocessing is None else _deviations(calibration)
    scale = np.sqrt(whitening_variance(measured.gp.level_means, deviations)[usable] / len(unknown.spectra))
    low, high = calibration.inverse.low, calibration.inverse.high
    spread = np.interp(
        np.linspace(0.0, 1.0, FIRST), np.linspace(0.0, 1.0, len(calibration.inverse.grid)), calibration.inverse.grid
    )
    problem = Problem(
        unknown.spectra.mean(axis=0)[usable],
        wavelengths,
        scale,
        lambda c: measured.gp.predict_mean(c)[:, usable],
        np.unique(np.clip(spread, low, high)),
        ignored_by(_invisible(calibration)),
    )
    return explain(problem, _unit(calibration.wavelength_label), signal_words(calibration.signal))


def signal_words(signal: str) -> str:
    """What an axis calls the signal ("absorbance / AU"), as a sentence does."""
    name = signal.split(" / ")[0]
    return "the signal" if name in ("", "signal") else name


def _unit(label: str) -> str:
    return f" {label.split(' / ')[-1]}" if " / " in label else ""


def _deviations(calibration: Calibration) -> np.ndarray | None:
    if calibration.deviations is None:
        return None
    return calibration.measured.spectra - calibration.measured.gp.level_means[calibration.level_index]


def _invisible(calibration: Calibration) -> list[str]:
    """Which of offset, tilt and scale the preprocessing takes away, found by trying it on the standards."""
    measured = calibration.measured
    if measured.preprocessing is None:
        return []
    means, every = measured.gp.level_means, np.ones(len(measured.wavelengths), dtype=bool)
    span = float(np.ptp(means)) or 1.0
    line = np.linspace(-1.0, 1.0, len(measured.wavelengths))
    changed = {"offset": means + 0.1 * span, "tilt": means + 0.1 * span * line, "scale": 1.1 * means}
    plain = measured.preprocessed(Unknown(means, every, ())).spectra
    size = float(np.ptp(plain)) or 1.0
    found = []
    for name, spectra in changed.items():
        seen = np.abs(measured.preprocessed(Unknown(spectra, every, ())).spectra - plain).max() / size
        if seen < INVISIBLE * np.abs(spectra - means).max() / span:
            found.append(name)
    return found
