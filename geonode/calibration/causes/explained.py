"""An answer that can explain itself: the spectrum beside the curve's, and why it lies off."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from geonode.calibration.assessment.match_limits import textbook_limits
from geonode.calibration.causes.explanation import Explanation
from geonode.calibration.causes.of_calibration import explain_unknown
from geonode_runtime.posterior.rules import ODD, STRANGE
from geonode_runtime.unknowns import Unknown
from geonode_runtime.verdicts import Quantification

if TYPE_CHECKING:
    from geonode.calibration.calibration import Calibration

NEARLY_ALL = 0.9
"""Of a spectrum that is not refused, a cause is told only where it explains this share of the misfit."""
LARGER = 1.3
"""A refused spectrum this many times as large as every standard's may be of a sample too concentrated."""


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
class Explained(Quantification):
    """A `Quantification` that can explain itself.

    Attributes:
        calibration: that answered. unknown: what it was asked, aligned, not preprocessed. name: of the unknown.
    """

    calibration: Calibration = field(kw_only=True, repr=False, compare=False)
    unknown: Unknown = field(kw_only=True, repr=False, compare=False)
    name: str = field(kw_only=True, compare=False)

    @classmethod
    def of(cls, found: Quantification, calibration: Calibration, unknown: Unknown, name: str) -> Self:
        """``found`` with what it needs to explain itself; arguments as the attributes."""
        kept = {one.name: getattr(found, one.name) for one in fields(Quantification)}
        return cls(**kept, calibration=calibration, unknown=unknown, name=name)

    @cached_property
    def explanation(self) -> Explanation | None:
        """Where and why the spectrum lies off the curve.

        Always there for "does not match", unless the standards themselves make no curve. For other verdicts only where
        the spectrum is further from the standards' span than noise, and one cause explains nearly all of that; never
        beyond the calibrated range, where the curve is carried on and not known, nor where the standards contradict
        each other or do not respond: then it is as likely the curve that is off.
        """
        calibration = self.calibration
        if calibration.curve_check.pls_is_better or self.verdict == "outside calibrated range":
            return None
        if not calibration.response.responds or calibration.standing.contradictions:
            return None
        refused = self.verdict == "does not match"
        if not refused and not self._strange:
            return None
        found = explain_unknown(calibration, self.unknown)
        if refused or (found is not None and found.cause is not None and found.explained >= NEARLY_ALL):
            return found
        return None

    @property
    def _strange(self) -> bool:
        """Whether the spectrum holds more that the standards do not than noise explains."""
        if self.posterior is not None:
            return self.posterior.strange > STRANGE or self.q > ODD
        inverse = self.calibration.inverse
        return self.q > textbook_limits(inverse.rank, inverse.dof, self.calibration.spectra.shape[1])[0]

    @property
    def why(self) -> tuple[str, ...]:
        """The sentences of `explanation`; none where there is nothing to explain. Of a spectrum that is refused and far
        larger than every standard's the first thing to think of is a sample too concentrated for the range or for the
        detector."""
        said = () if self.explanation is None else self.explanation.sentences(self.calibration.unit)
        larger = self._larger if self.verdict == "does not match" else 1.0
        if larger < LARGER:
            return said
        return (
            f"the spectrum is {larger:.2g} times as large as that of any standard: the sample may be too concentrated, "
            "or the detector at its limit; dilute it and measure again",
            *said,
        )

    @property
    def _larger(self) -> float:
        """Size (root mean square) of the spectrum as measured ÷ that of the largest standard's."""
        usable, measured = self.unknown.usable, self.calibration.measured
        sizes = np.linalg.norm(measured.spectra[:, usable], axis=1)
        size = float(np.linalg.norm(self.unknown.spectra.mean(axis=0)[usable]))
        return size / float(sizes.max()) if sizes.max() > 0.0 else 1.0

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
            signal=self.calibration.signal,
        )
