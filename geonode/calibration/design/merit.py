"""Figures of merit of predicted against true concentrations.

Every function takes ``predicted [N]`` and ``true [N]`` in user units. Which errors go in decides the name: the
standards under the calibration that was fitted to them (RMSEC), the standards each left out with its level (RMSECV,
Q²), samples the calibration never saw (RMSEP). The terms are those of Olivieri 2014 (Chem. Rev. 114, 5358) and ASTM
E1655.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from geonode.errors import InputError


def rmse(predicted: Any, true: Any) -> float:
    """√(Σ (ĉ − c)² / N): RMSEC, RMSECV or RMSEP by what went in."""
    error = _errors(predicted, true)
    return float(np.sqrt((error**2).mean()))


def bias(predicted: Any, true: Any) -> float:
    """Σ (ĉ − c) / N."""
    return float(_errors(predicted, true).mean())


def sep(predicted: Any, true: Any) -> float:
    """Standard error of prediction, bias taken out: √(Σ (ĉ − c − bias)² / (N − 1)); NaN for one sample (Næs et al.
    2002, *Multivariate Calibration and Classification*, ch. 13). RMSEP² = bias² + SEP² (N − 1)/N."""
    error = _errors(predicted, true)
    return float(error.std(ddof=1)) if len(error) > 1 else float("nan")


def r2(predicted: Any, true: Any) -> float:
    """Coefficient of determination 1 − Σ (ĉ − c)² / Σ (c − c̄)²; with predictions of left-out samples it is Q². NaN
    where all true values are equal."""
    error = _errors(predicted, true)
    true = np.asarray(true, dtype=np.float64)
    total = float(((true - true.mean()) ** 2).sum())
    return 1.0 - float((error**2).sum()) / total if total > 0.0 else float("nan")


def rpd(predicted: Any, true: Any) -> float:
    """Ratio of performance to deviation, SD(c)/SEP, SD with N − 1 (Williams & Norris 1987, *Near-Infrared Technology in
    the Agricultural and Food Industries*); NaN for one sample."""
    true = np.asarray(true, dtype=np.float64)
    return _quotient(float(true.std(ddof=1)) if len(true) > 1 else float("nan"), sep(predicted, true))


def rpiq(predicted: Any, true: Any) -> float:
    """Ratio of performance to interquartile range, (Q₃ − Q₁)/SEP, quartiles by linear interpolation (Bellon-Maurel et
    al. 2010, Trends Anal. Chem. 29, 1073): for concentrations that are not spread normally, as standards never are."""
    low, high = np.percentile(np.asarray(true, dtype=np.float64), [25, 75])
    return _quotient(float(high - low), sep(predicted, true))


def summary(predicted: Any, true: Any) -> dict[str, float]:
    """All of them by name: rmse, bias, sep, r2, rpd, rpiq."""
    functions = {"rmse": rmse, "bias": bias, "sep": sep, "r2": r2, "rpd": rpd, "rpiq": rpiq}
    return {name: function(predicted, true) for name, function in functions.items()}


def _errors(predicted: Any, true: Any) -> np.ndarray:
    p, t = np.asarray(predicted, dtype=np.float64), np.asarray(true, dtype=np.float64)
    if p.ndim != 1 or p.shape != t.shape or len(p) == 0:
        raise InputError(f"figures of merit need two lists of equal length, but got shapes {p.shape} and {t.shape}.")
    return p - t


def _quotient(numerator: float, denominator: float) -> float:
    if np.isnan(numerator) or np.isnan(denominator):
        return float("nan")
    return numerator / denominator if denominator > 0.0 else float("inf")
