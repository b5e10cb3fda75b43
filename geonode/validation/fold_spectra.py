"""What the folds of an evaluation see of the standards: their level means, preprocessed by steps that know no more than
the fold does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from geonode.calibration.leave_out import NestedSplits
from geonode.data.preprocessing import Preprocessing
from geonode.errors import InputError


@dataclass(frozen=True)
class FoldSpectra:
    """Level means as every training set sees them (levels ascend).

    Attributes:
        wavelengths: ``[W]``.
        whole: ``[n, W]`` level means, preprocessed by steps fitted on all standards: for scales and figures.
        index: ``[N]`` level of every spectrum.
        means: per training set ``[n, W]``: all levels, those left out too, by steps fitted on the training set alone.
        deviations: per training set ``[N, W]`` spectra less their level mean.
        shared: whether all training sets see the same (no step learns).
    """

    wavelengths: np.ndarray
    whole: np.ndarray
    index: np.ndarray
    means: list[np.ndarray]
    deviations: list[np.ndarray]
    shared: bool


def as_measured(
    means: np.ndarray, deviations: np.ndarray, index: np.ndarray, wavelengths: np.ndarray, splits: NestedSplits
) -> FoldSpectra:
    """Without preprocessing every training set sees the same ``means [n, W]`` and ``deviations [N, W]``."""
    count = len(splits.training)
    return FoldSpectra(wavelengths, means, index, [means] * count, [deviations] * count, True)


def preprocessed(dataset: Any, index: np.ndarray, chain: Preprocessing, splits: NestedSplits) -> FoldSpectra:
    """Spectra preprocessed one by one, by steps fitted anew on every training set where any of them learns.

    Args:
        dataset: standards of one analyte without masked values, wavelengths ascending.
        index: ``[N]`` level of every spectrum, levels ascending. chain: not fitted.

    Raises:
        InputError: masked values, or steps that cannot be done.
    """
    spectra = np.asarray(dataset.spectra, dtype=np.float64)
    if not np.isfinite(spectra).all():
        raise InputError("preprocessing needs complete spectra; drop masked wavelengths first.")
    fitted = chain.fresh()
    everything, wavelengths = fitted.fit_arrays(
        spectra, dataset.wavelengths, getattr(dataset, "source", "") or "spectra"
    )
    n = splits.levels
    whole = _level_means(everything, index, n)
    if not chain.learns:
        return as_measured(whole, everything - whole[index], index, wavelengths, splits)
    means, deviations = [], []
    for training in splits.training:
        seen = fitted.fitted_without(~np.isin(index, training))
        means.append(_level_means(seen, index, n))
        deviations.append(seen - means[-1][index])
    return FoldSpectra(wavelengths, whole, index, means, deviations, False)


def _level_means(spectra: np.ndarray, index: np.ndarray, n: int) -> np.ndarray:
    return np.stack([spectra[index == i].mean(axis=0) for i in range(n)])
