"""What is wrong with standards, in sentences that `geonode inspect`, `fit`, `evaluate` and the report share."""

from __future__ import annotations

from geonode.calibration.calibration import Calibration
from geonode.data.dataset import SpectralDataset


def dataset_warnings(dataset: SpectralDataset) -> list[str]:
    """Everything that speaks against the standards: a replicate that is not of its level, no response, wide limits, a
    level that contradicts the others. Nothing is said of several analytes.

    Raises:
        InputError: fewer than three levels, or every wavelength masked in some standard.
    """
    return Calibration.from_dataset(dataset).standing.warnings if dataset.dim == 1 else []
