"""Spectral error measures, predicted against measured, over the last axis (wavelength).

Every function takes ``predicted [..., W]`` and ``measured [..., W]`` and returns ``[...]``. Where a measure does not
exist (R² of a flat spectrum, the angle of an all-zero one) the value is NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

SID_FLOOR = 1e-6


def rmse(predicted: Any, measured: Any) -> np.ndarray:
    """Root mean squared error √(Σ (p − m)² / W), in units of the spectra."""
    return np.sqrt(np.mean(_difference(predicted, measured) ** 2, axis=-1))


def nrmse(predicted: Any, measured: Any, scale: float) -> np.ndarray:
    """RMSE ÷ ``scale``, dimensionless.

    ``evaluate`` passes the standard deviation of all level means of the dataset (over levels and wavelengths), so that
    levels of one series share one yardstick and a blank, whose own range is all noise, does not get a special one.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.asarray(rmse(predicted, measured) / scale)
    return np.where(np.isfinite(value), value, np.nan)


def mae(predicted: Any, measured: Any) -> np.ndarray:
    """Mean absolute error Σ |p − m| / W, in units of the spectra."""
    return np.mean(np.abs(_difference(predicted, measured)), axis=-1)


def r2(predicted: Any, measured: Any) -> np.ndarray:
    """Coefficient of determination 1 − Σ (p − m)² / Σ (m − m̄)², m̄ the mean of the measured spectrum."""
    measured = np.asarray(measured, dtype=np.float64)
    residual = np.sum(_difference(predicted, measured) ** 2, axis=-1)
    total = np.sum((measured - measured.mean(axis=-1, keepdims=True)) ** 2, axis=-1)
    return _ratio(total - residual, total)


def sam(predicted: Any, measured: Any) -> np.ndarray:
    """Spectral angle arccos(p·m / (|p| |m|)) in radians (Kruse et al. 1993, Remote Sens. Environ. 44, 145).

    Computed as 2 atan2(|p̂ − m̂|, |p̂ + m̂|), which keeps its digits for nearly parallel spectra where arccos does not.
    """
    p, m = np.broadcast_arrays(np.asarray(predicted, dtype=np.float64), np.asarray(measured, dtype=np.float64))
    lengths = [np.linalg.norm(x, axis=-1, keepdims=True) for x in (p, m)]
    with np.errstate(divide="ignore", invalid="ignore"):
        p, m = p / lengths[0], m / lengths[1]
        return 2.0 * np.arctan2(np.linalg.norm(p - m, axis=-1), np.linalg.norm(p + m, axis=-1))


def sid(predicted: Any, measured: Any) -> np.ndarray:
    """Spectral information divergence Σ (p − q) ln(p/q), nats (Chang 2000, IEEE Trans. Inf. Theory 46, 1927).

    p and q are the spectra divided by their sums, the symmetric Kullback–Leibler divergence of two distributions; that
    needs positive values. Absorbances touch zero, so every spectrum is first held at ``SID_FLOOR`` (1e-6) of its own
    largest value. A spectrum with no positive value has no SID (NaN).
    """
    p, q = (_distribution(np.asarray(x, dtype=np.float64)) for x in (predicted, measured))
    return np.sum((p - q) * np.log(p / q), axis=-1)


def peak_error(predicted: Any, measured: Any, wavelengths: Any) -> np.ndarray:
    """|position of the highest point, predicted − measured|, in units of ``wavelengths [W]``.

    Positions are refined to the vertex of the parabola through the highest point and its two neighbours (the grid may
    be uneven); at the end of the range the grid point itself is used.
    """
    wavelengths = np.asarray(wavelengths, dtype=np.float64)
    p, m = np.broadcast_arrays(np.asarray(predicted, dtype=np.float64), np.asarray(measured, dtype=np.float64))
    flat = [
        abs(peak_position(a, wavelengths) - peak_position(b, wavelengths))
        for a, b in zip(p.reshape(-1, p.shape[-1]), m.reshape(-1, m.shape[-1]), strict=True)
    ]
    return np.array(flat).reshape(p.shape[:-1])


def peak_position(spectrum: np.ndarray, wavelengths: np.ndarray) -> float:
    """Wavelength of the maximum of one spectrum ``[W]``; see :func:`peak_error`."""
    top = int(np.argmax(spectrum))
    if top in (0, len(spectrum) - 1):
        return float(wavelengths[top])
    x = wavelengths[top - 1 : top + 2] - wavelengths[top]
    y = spectrum[top - 1 : top + 2] - spectrum[top]
    # y = a x² + b x through the neighbours; a < 0 at a maximum unless the top is flat.
    a = (y[2] / x[2] - y[0] / x[0]) / (x[2] - x[0])
    b = y[2] / x[2] - a * x[2]
    return float(wavelengths[top] - (b / (2.0 * a) if a < 0.0 else 0.0))


def all_metrics(predicted: Any, measured: Any, wavelengths: Any, scale: float) -> dict[str, float | None]:
    """Every measure for one spectrum ``[W]``; None where a measure does not exist."""
    values = {
        "rmse": rmse(predicted, measured),
        "nrmse": nrmse(predicted, measured, scale),
        "r2": r2(predicted, measured),
        "mae": mae(predicted, measured),
        "sam": sam(predicted, measured),
        "sid": sid(predicted, measured),
        "peak_error": peak_error(predicted, measured, wavelengths),
    }
    return {name: float(value) if np.isfinite(value) else None for name, value in values.items()}


def _difference(predicted: Any, measured: Any) -> np.ndarray:
    return np.asarray(predicted, dtype=np.float64) - np.asarray(measured, dtype=np.float64)


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.asarray(numerator / denominator)
    return np.where(np.isfinite(value), value, np.nan)


def _distribution(spectrum: np.ndarray) -> np.ndarray:
    top = spectrum.max(axis=-1, keepdims=True)
    held = np.maximum(spectrum, SID_FLOOR * top)
    held = np.where(top > 0.0, held, np.nan)
    return held / held.sum(axis=-1, keepdims=True)
