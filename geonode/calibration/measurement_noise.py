"""Measurement noise of spectra: from replicates where there are any, else from roughness along the wavelength."""

from __future__ import annotations

from typing import Any

import numpy as np

# No wavelength counts as quieter than this fraction of the mean noise variance: instruments round their readings, and
# a silent region of equal digits would otherwise weigh infinitely.
QUIETEST = 0.05


def noise_variance(level_means: Any, replicate_deviations: Any, levels: int) -> tuple[np.ndarray, str]:
    """Noise variance of one spectrum at every wavelength.

    With replicates: the pooled within-level variance Σ dev² / (N − n). Without: second differences along the
    wavelength, e_i = x_{i−1} − 2x_i + x_{i+1}, whose variance is 6σ² for white noise; pooled over levels and over
    a window of wavelengths, so that spectral structure narrower than three points counts as noise.

    Args:
        level_means: ``[n, W]``.
        replicate_deviations: ``[N, W]`` spectra less their level mean (NaN where masked), or None.
        levels: n, the number of levels the deviations were taken from.

    Returns:
        ``[W]`` variances (squared units of the spectra) and where they come from: "replicates" or
        "second differences".
    """
    means = np.asarray(level_means, dtype=np.float64)
    if replicate_deviations is not None:
        deviations = np.asarray(replicate_deviations, dtype=np.float64)
        if len(deviations) > levels:
            # Masked (NaN) values of single spectra count as absent at that wavelength.
            known = np.isfinite(deviations)
            squares = np.where(known, deviations, 0.0) ** 2
            freedom = np.maximum(known.sum(axis=0) - levels, 1)
            return squares.sum(axis=0) / freedom, "replicates"
    return second_difference_variance(means), "second differences"


def second_difference_variance(spectra: np.ndarray, window: int = 21) -> np.ndarray:
    """``[N, W]`` → ``[W]``: running mean over ``window`` wavelengths of e²/6, pooled over the spectra."""
    width = spectra.shape[1]
    if width < 3:
        return np.zeros(width)
    squared = ((spectra[:, :-2] - 2.0 * spectra[:, 1:-1] + spectra[:, 2:]) ** 2).mean(axis=0) / 6.0
    squared = np.concatenate([squared[:1], squared, squared[-1:]])
    window = min(window, width)
    # Sums by convolution with "same" keep the length of the longer input, which is the spectrum.
    total = np.convolve(squared, np.ones(window), mode="same")
    return total / np.convolve(np.ones(width), np.ones(window), mode="same")


def whitening_variance(level_means: np.ndarray, deviations: np.ndarray | None = None) -> np.ndarray:
    """D ``[W]`` of one spectrum, by which wavelengths are made comparable; never below ``QUIETEST`` of its mean.

    Second differences, of the replicate deviations ``[N, W]`` where there are any (rescaled by N/(N − n)), else of the
    level means ``[n, W]``. Spectra without any roughness have nothing to go by and get equal weights: a millionth of
    the largest signal, squared.
    """
    if deviations is None:
        variance = second_difference_variance(level_means)
    else:
        spare = len(deviations) - len(level_means)
        variance = second_difference_variance(deviations) * len(deviations) / spare
    signal = float(np.abs(level_means - level_means.mean(axis=0)).max())
    floor = max(QUIETEST * float(variance.mean()), (1e-6 * signal) ** 2)
    return np.maximum(variance, floor if floor > 0.0 else 1.0)
