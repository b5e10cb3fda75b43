"""An answer that can explain itself: the spectrum beside the curve's, and why it lies off."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from geonode_runtime.causes.explainer import Explainer, Explaining
from geonode_runtime.figures import figure
from geonode_runtime.unknowns import Unknown
from geonode_runtime.verdicts import Quantification

if TYPE_CHECKING:
    from geonode.calibration.calibration import Calibration


@dataclass(frozen=True)
class Overlay:
    """A spectrum and what the curve gives, both as measured.

    Attributes:
        wavelengths, measured, predicted: ``[V]``; measured is the mean of the replicates, NaN where masked.
        half: ``[V]`` half the width of the band that holds 80 % of further spectra there.
        concentration: that of the prediction, in the cuvette (dilution not undone).
        wavelength_label, signal: what axes are called.
    """

    wavelengths: np.ndarray
    measured: np.ndarray
    predicted: np.ndarray
    half: np.ndarray
    concentration: float
    wavelength_label: str
    signal: str

    @property
    def residual(self) -> np.ndarray:
        """Measured less predicted, ``[V]``."""
        return self.measured - self.predicted


@dataclass(frozen=True)
class Explained(Explaining):
    """A `Quantification` that can explain itself and show its spectrum beside the curve's.

    Attributes:
        calibration: that answered.
    """

    calibration: Calibration = field(kw_only=True, repr=False, compare=False)

    @classmethod
    def of(cls, found: Quantification, calibration: Calibration, unknown: Unknown, name: str) -> Self:
        """``found`` with what it needs to explain itself; arguments as the attributes."""
        kept = {one.name: getattr(found, one.name) for one in fields(Quantification)}
        return cls(**kept, calibration=calibration, unknown=unknown, name=name)

    @property
    def explainer(self) -> Explainer:
        """Of the calibration."""
        return self.calibration.explainer

    def place(self, unit: str = "") -> str:
        """The concentration of the `overlay` as it is written, ``unit`` as it is behind it."""
        found = self.explanation
        beside = self.components[0].size / self.dilution if found is None else found.finest
        return figure(self.overlay.concentration, unit, beside=beside)

    @cached_property
    def overlay(self) -> Overlay:
        """The spectrum and the curve's at the nearest concentration, or at that which `explanation` has it at."""
        measured = self.calibration.measured
        c = self.nearest / self.dilution if self.explanation is None else self.explanation.concentration
        predicted = measured.gp.predict(np.array([c]))
        return Overlay(
            wavelengths=measured.wavelengths,
            measured=np.where(self.unknown.usable, self.unknown.spectra.mean(axis=0), np.nan),
            predicted=predicted.mean[0],
            half=np.ravel(0.5 * np.subtract(*reversed(predicted.interval(0.8)))),
            concentration=float(c),
            wavelength_label=self.calibration.wavelength_label,
            signal=self.calibration.signal.removeprefix("preprocessed "),
        )
