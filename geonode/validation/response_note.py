"""Errors beside the response: what an evaluation must say where spectra hardly change with concentration."""

from __future__ import annotations

import numpy as np

from geonode.calibration.calibration import Calibration
from geonode.data.dataset import SpectralDataset
from geonode.errors import InputError
from geonode.validation.result import EvaluationReport


def response_notes(report: EvaluationReport, dataset: SpectralDataset, preprocessed: bool) -> list[str]:
    """Errors relative to what changes with concentration, and whether anything does.

    Args:
        report: with all its results. dataset: of the standards. preprocessed: spectra of the report are not those of
            the data set.
    """
    notes = []
    scale = report.response_scale
    medians = {name: float(np.median(result.rmse[1:-1])) for name, result in report.results.items()}
    if scale > 0.0 and medians:
        best = min(medians, key=lambda name: medians[name])
        factor = float(report.level_means.std()) / scale
        notes.append(
            f"relative to the response (what changes with concentration, not the shape of the spectra) errors are "
            f"{factor:.3g} times those of the table: interior median {100.0 * medians[best] / scale:.3g} % at best "
            f"({best})"
        )
    try:
        if preprocessed:
            calibration = Calibration(report.levels, report.level_means, report.wavelengths)
        else:
            calibration = Calibration.from_dataset(dataset)
    except InputError:
        return notes  # too few levels for a calibration, of which the table says enough
    if not calibration.response.responds:
        won = "the winner won by chance" if calibration.response.unordered else "the winner is the winner of noise"
        notes.insert(0, f"{calibration.response.sentence()}; {won}")
    return notes
