"""What explains the misfit of an unknown of a calibration: the curve as measured, its noise, and the causes."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np

from geonode.calibration.assessment.match_limits import textbook_limits
from geonode.calibration.causes.registry import registered
from geonode.calibration.gp.geodesic_gp import GeodesicGP
from geonode.calibration.measurement_noise import whitening_variance
from geonode_runtime.causes.explainer import Explainer
from geonode_runtime.unknowns import Unknown

if TYPE_CHECKING:
    from geonode.calibration.calibration import Calibration

INVISIBLE = 0.02
"""A cause of which a preprocessing leaves less than this share of its effect cannot be seen behind it."""


def explainer_of(calibration: Calibration) -> Explainer:
    """What explains why spectra lie off the curve of ``calibration``.

    Causes act on spectra as measured, so they are fitted there. Those that the preprocessing takes away (an offset
    behind a derivative) may be there as well, and are not named. Standards that contradict the others have no part in
    the curve that spectra are held against.
    """
    measured, inverse, standing = calibration.measured, calibration.inverse, calibration.standing
    keep = standing.trusted_rows
    gp, deviations = measured.gp, _deviations(calibration)
    if not keep.all():
        gp = GeodesicGP().fit(calibration.concentrations[keep], measured.spectra[keep])
        index = np.unique(calibration.concentrations[keep], return_inverse=True)[1]
        deviations = measured.spectra[keep] - gp.level_means[index] if keep.sum() > len(gp.levels) else None
    return Explainer(
        wavelengths=measured.wavelengths,
        levels=gp.level_means,
        scale=np.sqrt(whitening_variance(gp.level_means, deviations)),
        grid=inverse.grid,
        weights=gp.predict_rows(inverse.grid),
        residual=gp.residual,
        centre=gp.column_mean,
        ignored=tuple(_invisible(calibration)),
        textbook=textbook_limits(inverse.rank, inverse.dof, calibration.spectra.shape[1])[0],
        silent=not standing.has_curve,
        fault=standing.fault,
        highest=calibration.range[1],
        usable=calibration.facts.rules.usable,
        wavelength_unit=_unit(calibration.wavelength_label),
        signal=signal_words(calibration.signal),
        unit=calibration.unit,
        kinds=registered(),
    )


class ExplainingCalibration:
    """How a `Calibration`, the only class that is one of these, explains why spectra lie off its curve."""

    @property
    def explainer(self) -> Explainer:
        """What explains it, by every cause that is registered now."""
        return replace(self._explainer, kinds=registered())

    @cached_property
    def _explainer(self) -> Explainer:
        return explainer_of(cast("Calibration", self))


def signal_words(signal: str) -> str:
    """What an axis calls the signal ("absorbance / AU"), as a sentence on spectra as measured does."""
    name = signal.split(" / ")[0].removeprefix("preprocessed ")
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
