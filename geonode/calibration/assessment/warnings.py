"""What is wrong with standards, in sentences that `geonode inspect`, `fit`, `evaluate` and the report share."""

from __future__ import annotations

from geonode.calibration.calibration import Calibration
from geonode.data.checks import negative_levels
from geonode.data.dataset import SpectralDataset
from geonode.data.flat_tops import flat_tops


def dataset_warnings(dataset: SpectralDataset) -> list[str]:
    """Everything that speaks against the standards: a level below zero, spectra that are cut flat, a replicate that is
    not of its level, no response, wide limits, a level that contradicts the others. Nothing of several analytes.

    Raises:
        InputError: fewer than three levels, or every wavelength masked in some standard.
    """
    if dataset.dim != 1:
        return []
    # Standards of a unit that is an amount were refused before.
    below = negative_levels(dataset.levels, dataset.units["concentration"], False, dataset.source or "spectra")
    flat = flat_tops(dataset.spectra, dataset.concentrations, dataset.wavelengths)
    return [*filter(None, (below, flat)), *Calibration.from_dataset(dataset).standing.warnings]
