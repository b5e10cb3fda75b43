"""What a lab does today: a straight line through one wavelength, or the ratio of two, with ISO 11843 limits.

ISO 11843-2:2000, linear calibration with constant standard deviation: with signals y = a + b x of I levels, J each
(N = I·J), residual standard deviation σ̂ with ν = N − 2, x̄ the mean and s_xx = Σ (x − x̄)² over all N, and K
measurements of the unknown,

    critical value    x_C = t_{0.95}(ν) σ̂/|b| √(1/K + 1/N + x̄²/s_xx)
    detection limit   x_D = δ(ν; 0.05; 0.05) σ̂/|b| √(…)      δ: noncentral t, about 2 t_{0.95}(ν)
    quantification    x_Q = 10 σ̂/|b| √(…)                    (IUPAC's 10 σ; not in ISO 11843)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import nctdtrinc, stdtrit

from geonode.errors import InputError

ALPHA = 0.05
QUANTIFICATION_FACTOR = 10.0
_MOST_WAVELENGTHS = 60  # of the ratio: pairs grow with the square


@dataclass(frozen=True)
class StraightLine:
    """Least-squares line through N calibration points and its ISO 11843-2 limits, user units.

    ``critical``, ``detection``, ``quantification`` hold for ``measurements`` = K of the unknown.
    """

    intercept: float
    slope: float
    residual_std: float
    dof: int
    r2: float
    measurements: int
    critical: float
    detection: float
    quantification: float

    def concentration(self, signal: Any) -> np.ndarray:
        """(y − a)/b."""
        return (np.asarray(signal, dtype=np.float64) - self.intercept) / self.slope


@dataclass(frozen=True)
class UnivariateCalibration:
    """The best single wavelength, or ratio of two (``denominator`` not None), chosen by the smallest detection limit.

    ``rmsecv``: user units, a level left out at a time with the wavelengths chosen anew each time.
    """

    wavelength: float
    denominator: float | None
    line: StraightLine
    rmsecv: float


def straight_line(concentrations: Any, signals: Any, measurements: int = 1) -> StraightLine:
    """Fit ``signals [N]`` against ``concentrations [N]``.

    Raises:
        InputError: fewer than three points, or all at one concentration.
    """
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


def single_wavelength(concentrations: Any, spectra: Any, wavelengths: Any) -> UnivariateCalibration:
    """The wavelength whose straight line has the smallest detection limit.

    Args:
        concentrations: ``[N]``; spectra: ``[N, W]``; wavelengths: ``[W]``.
    """
    x, signals = np.asarray(concentrations, dtype=np.float64), np.asarray(spectra, dtype=np.float64)
    best = _best(x, signals)
    wavelengths = np.asarray(wavelengths, dtype=np.float64)
    return UnivariateCalibration(
        float(wavelengths[best]), None, straight_line(x, signals[:, best]), _cross_validated(x, signals)
    )


def wavelength_ratio(concentrations: Any, spectra: Any, wavelengths: Any) -> UnivariateCalibration | None:
    """The ratio of two wavelengths whose straight line has the smallest detection limit; None where no wavelength keeps
    away from zero at all levels (a denominator must stay above a tenth of the largest signal).

    Of many wavelengths, 60 evenly spaced ones are tried.
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
    best = _best(x, ratios)
    return UnivariateCalibration(
        float(wavelengths[over[best]]),
        float(wavelengths[under[best]]),
        straight_line(x, ratios[:, best]),
        _cross_validated(x, ratios),
    )


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


def _best(x: np.ndarray, y: np.ndarray) -> int:
    lines = _lines(x, y)
    # An exactly flat or exactly straight column (σ̂ = 0) comes from repeated digits, not from chemistry.
    usable = np.isfinite(lines.unit) & (lines.residual > 0.0)
    return int(np.where(usable, lines.unit, np.inf).argmin()) if usable.any() else int(np.nanargmax(lines.r2))


def _cross_validated(x: np.ndarray, y: np.ndarray) -> float:
    """RMSE of predicted concentrations with each level left out, the column chosen anew; NaN for fewer than four."""
    levels = np.unique(x)
    if len(levels) < 4:
        return float("nan")
    errors = []
    for level in levels:
        train = x != level
        column = _best(x[train], y[train])
        line = _lines(x[train], y[train][:, [column]])
        errors.append((y[~train, column] - line.intercept[0]) / line.slope[0] - level)
    return float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))
