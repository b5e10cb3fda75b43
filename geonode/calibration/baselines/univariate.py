"""What a lab does today: a straight line through one wavelength, or the ratio of two, with ISO 11843 limits.

ISO 11843-2:2000, linear calibration with constant standard deviation: with signals y = a + b x of I levels, J each
(N = I·J), residual standard deviation σ̂ with ν = N − 2, x̄ the mean and s_xx = Σ (x − x̄)² over all N, and K
measurements of the unknown,

    critical value    x_C = t_{0.95}(ν) σ̂/|b| √(1/K + 1/N + x̄²/s_xx)
    detection limit   x_D = δ(ν; 0.05; 0.05) σ̂/|b| √(…)      δ: noncentral t, about 2 t_{0.95}(ν)
    quantification    x_Q = 10 σ̂/|b| √(…)                    (IUPAC's 10 σ; not in ISO 11843)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import nctdtrinc, stdtrit

from geonode.calibration.baselines.selection import better_than_chance
from geonode.calibration.leave_out import leave_each_out
from geonode.calibration.measurement_noise import whitening_variance
from geonode.errors import InputError

ALPHA = 0.05
QUANTIFICATION_FACTOR = 10.0
LOUDEST = 3.0
"""Wavelengths whose noise is above this many times the median (the ends of the lamp) are not chosen from."""
WEAKEST = 0.1
"""Nor are those whose sensitivity ÷ noise is below this fraction of the best."""
STRAIGHT = 0.95
"""A line with a smaller R² is no calibration line."""
_MOST_WAVELENGTHS = 60  # of the ratio: pairs grow with the square


@dataclass(frozen=True)
class StraightLine:
    """Least-squares line through N calibration points and its ISO 11843-2 limits, user units.

    ``critical``, ``detection``, ``quantification`` hold for ``measurements`` = K of the unknown; None where they cannot
    be claimed (no blank among the standards).
    """

    intercept: float
    slope: float
    residual_std: float
    dof: int
    r2: float
    measurements: int
    critical: float | None
    detection: float | None
    quantification: float | None

    def concentration(self, signal: Any) -> np.ndarray:
        """(y − a)/b."""
        return (np.asarray(signal, dtype=np.float64) - self.intercept) / self.slope


@dataclass(frozen=True)
class UnivariateCalibration:
    """The best single wavelength, or ratio of two (``denominator`` not None): the smallest detection limit among those
    that are quiet (:data:`LOUDEST`) and sensitive (:data:`WEAKEST`).

    ``rmsecv``: user units, a level left out at a time with the wavelengths chosen anew each time. ``reasons``: what is
    wrong with the limits or the line, empty where nothing is.
    """

    wavelength: float
    denominator: float | None
    line: StraightLine
    rmsecv: float
    reasons: tuple[str, ...] = ()

    def unclaimed(self, reason: str) -> UnivariateCalibration:
        """The same without limits, for this ``reason``."""
        line = replace(self.line, critical=None, detection=None, quantification=None)
        return replace(self, line=line, reasons=(reason, *self.reasons))


def straight_line(concentrations: Any, signals: Any, measurements: int = 1) -> StraightLine:
    """Fit ``signals [N]`` against ``concentrations [N]`` by least squares.

    ``measurements``: how many of the unknown will be averaged, ≥ 1; its limits hold for that many (ISO 11843-2).

    Raises:
        InputError: fewer than three points, all at one concentration, or fewer than one measurement.
    """
    if measurements < 1:
        raise InputError(f"measurements must be at least 1, how many of the unknown are averaged; got {measurements}.")
    x, y = np.asarray(concentrations, dtype=np.float64), np.asarray(signals, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or len(x) < 3:
        raise InputError(
            f"a straight line needs three points (concentration, signal) or more; got {x.shape}, {y.shape}."
        )
    if np.ptp(x) == 0.0:
        raise InputError("a straight line needs at least two different concentrations.")
    fitted = _lines(x, y[:, None], measurements)
    return StraightLine(
        intercept=float(fitted.intercept[0]),
        slope=float(fitted.slope[0]),
        residual_std=float(fitted.residual[0]),
        dof=len(x) - 2,
        r2=float(fitted.r2[0]),
        measurements=measurements,
        critical=float(stdtrit(len(x) - 2, 1.0 - ALPHA) * fitted.unit[0]),
        detection=float(noncentrality(len(x) - 2) * fitted.unit[0]),
        quantification=float(QUANTIFICATION_FACTOR * fitted.unit[0]),
    )


def noncentrality(dof: int, alpha: float = ALPHA, beta: float = ALPHA) -> float:
    """δ(ν; α; β): the noncentrality at which P(T′ ≤ t_{1−α}(ν)) = β (ISO 11843-2, annex; about 2 t_{1−α})."""
    return float(nctdtrinc(dof, beta, stdtrit(dof, 1.0 - alpha)))


def single_wavelength(
    concentrations: Any, spectra: Any, wavelengths: Any, responds: bool = False
) -> UnivariateCalibration:
    """The wavelength whose straight line has the smallest detection limit.

    Args:
        concentrations: ``[N]``; spectra: ``[N, W]``; wavelengths: ``[W]``.
        responds: whether the whole spectra prove that the standards respond
            (`geonode.calibration.assessment.response.Response.proven`). Else limits are claimed only where a search
            among noise finds no line as straight, which four or five levels hardly show.

    Raises:
        InputError: as `straight_line`.
    """
    x, signals = np.asarray(concentrations, dtype=np.float64), np.asarray(spectra, dtype=np.float64)
    noise = _noise(x, signals)
    best = _best(x, signals, noise)

    def search(turned: np.ndarray) -> float:
        return float(_lines(x, turned[:, [_best(x, turned, noise)]]).unit[0])

    error = _cross_validated(x, signals, noise)
    found = bool(np.isfinite(error)) and (responds or better_than_chance(search, signals, x))
    line, reasons = _claimed(straight_line(x, signals[:, best]), x, error, found)
    wavelength = float(np.asarray(wavelengths, dtype=np.float64)[best])
    return UnivariateCalibration(wavelength, None, line, error, reasons)


def wavelength_ratio(
    concentrations: Any, spectra: Any, wavelengths: Any, responds: bool = False
) -> UnivariateCalibration | None:
    """The ratio of two wavelengths whose straight line has the smallest detection limit; None where no wavelength keeps
    away from zero at all levels (a denominator must stay above a tenth of the largest signal).

    Of many wavelengths, 60 evenly spaced ones are tried. Arguments as for `single_wavelength`.

    Raises:
        InputError: as `straight_line`.
    """
    x, y = np.asarray(concentrations, dtype=np.float64), np.asarray(spectra, dtype=np.float64)
    wavelengths = np.asarray(wavelengths, dtype=np.float64)
    chosen = np.unique(np.linspace(0, y.shape[1] - 1, min(_MOST_WAVELENGTHS, y.shape[1])).round().astype(int))
    y, wavelengths = y[:, chosen], wavelengths[chosen]
    divisors = np.flatnonzero(y.min(axis=0) > 0.1 * y.max())
    over, under = (part.ravel() for part in np.meshgrid(np.arange(y.shape[1]), divisors, indexing="ij"))
    over, under = over[over != under], under[over != under]
    if not len(over):
        return None
    ratios = y[:, over] / y[:, under]
    noise = _noise(x, y)
    loud = LOUDEST * np.median(noise)
    # First order: var(a/b) = (σ_a² + (a/b)² σ_b²)/b²; a loud wavelength is on neither side.
    scatter = np.sqrt(noise[over] ** 2 + (ratios.mean(axis=0) * noise[under]) ** 2) / y[:, under].mean(axis=0)
    scatter = np.where((noise[over] <= loud) & (noise[under] <= loud), scatter, np.inf)
    best = _best(x, ratios, scatter)

    def search(turned: np.ndarray) -> float:
        divided = turned[:, over] / turned[:, under]
        return float(_lines(x, divided[:, [_best(x, divided, scatter)]]).unit[0])

    error = _cross_validated(x, ratios, scatter)
    found = bool(np.isfinite(error)) and (responds or better_than_chance(search, y, x))
    line, reasons = _claimed(straight_line(x, ratios[:, best]), x, error, found)
    return UnivariateCalibration(
        float(wavelengths[over[best]]),
        float(wavelengths[under[best]]),
        line,
        error,
        reasons,
    )


def _claimed(line: StraightLine, x: np.ndarray, error: float, found: bool) -> tuple[StraightLine, tuple[str, ...]]:
    """The line with no more limits than can be claimed, and what is to be said of it; ``error``: RMSECV, wavelengths
    chosen anew; ``found``: whether the line is better than what a search among noise finds."""
    reasons = []
    if line.r2 < STRAIGHT:
        reasons.append(f"R² {line.r2:.2f}: no straight line, do not use it")
    if not (x == 0.0).any():
        reasons.append("no blank among the standards: no limit can be claimed")
        return replace(line, critical=None, detection=None, quantification=None), tuple(reasons)
    if not found:
        reasons.append(
            "a search among the wavelengths of standards without response finds lines as straight: no limit can be "
            "claimed"
            if np.isfinite(error)
            else "too few levels to leave one out of the choice of wavelengths: no limit can be claimed"
        )
        return replace(line, critical=None, detection=None, quantification=None), tuple(reasons)
    for name, value in (("detection", line.detection), ("quantification", line.quantification)):
        if value is not None and value > x.max():
            reasons.append(f"{name} limit above the highest standard: not reached by this calibration")
    return line, tuple(reasons)


def _noise(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Standard deviation of the measurement ``[W]``: from replicates where there are any, else from the roughness."""
    levels, index = np.unique(x, return_inverse=True)
    means = np.stack([y[index == i].mean(axis=0) for i in range(len(levels))])
    return np.sqrt(whitening_variance(means, y - means[index] if len(y) > len(levels) else None))


@dataclass(frozen=True)
class _Lines:
    intercept: np.ndarray
    slope: np.ndarray
    residual: np.ndarray
    r2: np.ndarray
    unit: np.ndarray  # σ̂/|b| √(1/K + 1/N + x̄²/s_xx)


def _lines(x: np.ndarray, y: np.ndarray, measurements: int = 1) -> _Lines:
    """Straight lines through every column of ``y [N, P]``."""
    mean = x.mean()
    sxx = float(((x - mean) ** 2).sum())
    slope = (x - mean) @ y / sxx
    intercept = y.mean(axis=0) - slope * mean
    residual = ((y - intercept - x[:, None] * slope) ** 2).sum(axis=0)
    total = ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    sigma = np.sqrt(residual / max(len(x) - 2, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = sigma / np.abs(slope) * np.sqrt(1.0 / measurements + 1.0 / len(x) + mean**2 / sxx)
        r2 = 1.0 - residual / total
    return _Lines(intercept, slope, sigma, r2, unit)


def _best(x: np.ndarray, y: np.ndarray, noise: np.ndarray) -> int:
    """Column of the smallest detection limit among the quiet and sensitive ones; the most sensitive where none has a
    limit. ``noise [P]``, infinite for a column that is not to be chosen."""
    lines = _lines(x, y)
    sensitivity = np.where(noise <= LOUDEST * np.median(noise), np.abs(lines.slope) / noise, 0.0)
    # An exactly flat or exactly straight column (σ̂ = 0) comes from repeated digits, not from chemistry.
    usable = np.isfinite(lines.unit) & (lines.residual > 0.0) & (sensitivity >= WEAKEST * sensitivity.max())
    return int(np.where(usable, lines.unit, np.inf).argmin()) if usable.any() else int(sensitivity.argmax())


def _cross_validated(x: np.ndarray, y: np.ndarray, noise: np.ndarray) -> float:
    """RMSE of predicted concentrations with each level left out, the column chosen anew; NaN for fewer than four."""
    if len(np.unique(x)) < 4:
        return float("nan")
    errors = []
    for train, left_out in leave_each_out(x):
        column = _best(x[train], y[train], noise)
        line = _lines(x[train], y[train][:, [column]])
        errors.append((y[left_out, column] - line.intercept[0]) / line.slope[0] - x[left_out])
    return float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))
