"""Does the calibration still hold today? A control sample of known concentration is measured as if it were unknown.

It passes where its known concentration lies in the 95 % set and its spectrum matches. The drift is read on the branch
of the response curve on which the known concentration lies: where a spectrum occurs at two concentrations, the set
knows nothing of which of them was prepared, but the analyst does. From the point of the 95 % set nearest to the nominal
concentration the squared distance d²(c) is followed downhill; where that ends, the control is found today.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from geonode.calibration.calibration import Calibration
from geonode.errors import InputError
from geonode_runtime.figures import figure
from geonode_runtime.given_numbers import as_number
from geonode_runtime.unknowns import Unknown


@dataclass(frozen=True)
class QualityCheck:
    """A control sample of known concentration, measured today.

    Attributes:
        passed: the nominal concentration lies in the 95 % set and the spectrum matches. Never with fewer than four
            standards, whose 95 % set is not claimed: ``reason`` then says that it is not decided.
        nominal: user units; found: where it is found on the nominal's own branch; low, high: the 95 % interval of the
            component of the set that holds ``found`` (or lies nearest to it), None where the data set no limit.
        drift: found − nominal, user units; drift_low, drift_high: its 95 % interval, the uncertainty of the nominal
            concentration included.
        branches: components of the 95 % set; more than one means that the spectrum alone would not tell.
        gain: factor by which the spectrum differs from the predicted one (1 = no change of sensitivity), gain_std: its
            standard deviation.
        verdict: of the calibration for the spectrum.
        reason: why it failed, empty where it passed.
        rests_on: what the limits rest on: ``"standards"`` where n/(n + 1) reaches 95 %, else the ``"model"``; None with
            fewer than four standards, where no limits can be claimed (they are None).
    """

    passed: bool
    nominal: float
    found: float
    low: float | None
    high: float | None
    drift: float
    drift_low: float | None
    drift_high: float | None
    branches: int
    gain: float
    gain_std: float
    verdict: str
    reason: str
    rests_on: str | None = "model"

    def sentence(self, unit: str = "") -> str:
        """The result in one line, with ``unit`` behind every concentration."""
        unit = f" {unit}" if unit else ""
        said = "pass" if self.passed else f"FAIL ({self.reason})"
        if self.rests_on is None:
            said = f"not decided ({self.reason})"
        ends = ["no limit" if end is None else f"{end:+.3g}" for end in (self.drift_low, self.drift_high)]
        by = "95 %" if self.rests_on == "standards" else "95 % by the model"
        limits = "no limits can be claimed" if self.rests_on is None else f"{by}: {ends[0]} to {ends[1]}"
        text = (
            f"{said}: {figure(self.found, unit)} found where {self.nominal:g}{unit} was prepared, drift "
            f"{self.drift:+.3g} ({limits}){unit}, sensitivity {100 * self.gain:.1f} ± {100 * self.gain_std:.1f} %"
        )
        if self.branches > 1:
            text += f"; {self.branches} concentrations would explain it, and drift is that of the prepared one"
        return text

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def quality_check(
    calibration: Calibration,
    spectra: Any,
    nominal: float,
    *,
    nominal_std: float = 0.0,
    wavelengths: Any = None,
    mask: Any = None,
    name: str = "the QC standard",
) -> QualityCheck:
    """Measure a standard of known concentration as if it were unknown.

    Args:
        calibration: fitted.
        spectra: ``[V]`` or ``[k, V]`` replicates. wavelengths: ``[V]``, None where they are those of the standards.
        nominal: its concentration, user units, within the calibrated range; nominal_std: standard uncertainty of that.
        mask: True where a value is unusable.
        name: for messages.

    Raises:
        InputError: a nominal concentration outside the calibrated range, or a spectrum that cannot be used.
    """
    check_nominal(calibration, nominal, name)
    if not (np.isfinite(nominal_std) and nominal_std >= 0.0):
        raise InputError(f"the uncertainty of the nominal concentration must not be negative, but is {nominal_std}.")
    result = calibration.quantify(spectra, wavelengths, replicates=True, level=0.95, mask=mask, name=name)
    slack = 1.96 * nominal_std
    inside = any(part.low - slack <= nominal <= part.high + slack for part in result.components)
    matches = result.verdict != "does not match"
    part = min(result.components, key=lambda c: max(c.low - nominal, nominal - c.high, 0.0))
    # Sensitivity is of what is measured (no preprocessing such as SNV leaves a change of it to see).
    measured = calibration.measured.aligned(spectra, wavelengths=wavelengths, mask=mask, name=name)
    found = part.estimate
    if result.posterior is None:
        unknown = calibration.measured.preprocessed(measured, name)
        found = _downhill(calibration, unknown, float(np.clip(nominal, part.low, part.high)))
    gain, gain_std = _gain(calibration, measured.usable, measured.spectra.mean(axis=0), nominal)
    rests_on = result.rests_on(result.level)
    reason = ""
    if rests_on is None:
        reason = f"{result.standards} standards are too few to claim the 95 % set that a control is held against"
    elif not matches:
        reason = "the spectrum is none that the calibration predicts"
    elif not inside:
        reason = "the nominal concentration lies outside the 95 % set"
    low = None if part.open_low or rests_on is None else part.low
    high = None if part.open_high or rests_on is None else part.high
    return QualityCheck(
        passed=not reason,
        nominal=float(nominal),
        found=found,
        low=low,
        high=high,
        drift=found - nominal,
        drift_low=None if low is None else low - slack - nominal,
        drift_high=None if high is None else high + slack - nominal,
        branches=len(result.components),
        gain=gain,
        gain_std=gain_std,
        verdict=result.verdict,
        reason=reason,
        rests_on=rests_on,
    )


def check_nominal(calibration: Calibration, nominal: float, name: str = "the QC standard") -> None:
    """Refuse a nominal concentration that no control can have.

    Raises:
        InputError: not finite, or outside the calibrated range.
    """
    low, high = calibration.range
    nominal = as_number(nominal, f"the concentration of {name}")
    if not (np.isfinite(nominal) and low <= nominal <= high):
        raise InputError(
            f"{name} must have a concentration within the standards' range {low:g} to {high:g}, not {nominal:g}."
        )


def _downhill(calibration: Calibration, unknown: Unknown, start: float) -> float:
    """The local minimum of d² to which ``start`` leads."""
    model = calibration.inverse
    usable = None if unknown.usable.all() else unknown.usable
    spectra, _ = calibration.standard_spectra.as_new(unknown.spectra, usable)
    coordinates, residual = model.projection.coordinates(spectra.mean(axis=0, keepdims=True), usable)
    distances = model.distances(coordinates, np.maximum(residual, 1.0), len(unknown.spectra))
    nearest, fractions = distances.nearest[0], distances.fractions[0]
    k = int(np.clip(np.searchsorted(model.grid, start) - 1, 0, len(nearest) - 1))
    while True:
        lower = min((j for j in (k - 1, k + 1) if 0 <= j < len(nearest)), key=lambda j: nearest[j])
        if nearest[lower] >= nearest[k]:
            return float(model.grid[k] + fractions[k] * (model.grid[k + 1] - model.grid[k]))
        k = lower


def _gain(calibration: Calibration, usable: np.ndarray, measured: np.ndarray, nominal: float) -> tuple[float, float]:
    """Weighted least-squares factor between the measured and the predicted spectrum, and its standard deviation."""
    expected = calibration.measured.gp.predict([nominal])
    weight = usable / np.maximum(expected.scale[0] ** 2, np.finfo(float).tiny)
    predicted = expected.mean[0]
    power = float((weight * predicted**2).sum())
    gain = float((weight * predicted * measured).sum()) / power
    # Wavelengths err together, so their number buys nothing: one effective degree of freedom per component.
    spread = float((weight * (measured - gain * predicted) ** 2).sum()) / max(float(weight.sum()), 1e-300)
    noise = spread * float((weight**2 * predicted**2).sum()) / power**2
    return gain, float(np.sqrt(noise * len(measured) / max(calibration.inverse.rank, 1)))
