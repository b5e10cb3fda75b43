"""What is wrong with standards, in sentences that `geonode inspect`, `fit`, `evaluate` and the report share."""

from __future__ import annotations

from geonode.calibration.assessment.standards_check import check_standards
from geonode.calibration.calibration import Calibration
from geonode.data.dataset import SpectralDataset


def standards_warnings(calibration: Calibration) -> list[str]:
    """Everything that speaks against the standards of ``calibration``: no response, wide limits, a level that
    contradicts the others."""
    flagged = [check.sentence(calibration.unit) for check in check_standards(calibration) if check.flagged]
    return [*calibration.notes, *flagged]


def dataset_warnings(dataset: SpectralDataset) -> list[str]:
    """The same of a data set of one analyte; nothing is said of several.

    Raises:
        InputError: fewer than three levels, or every wavelength masked in some standard.
    """
    return standards_warnings(Calibration.from_dataset(dataset)) if dataset.dim == 1 else []
