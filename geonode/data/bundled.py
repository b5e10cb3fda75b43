"""A dataset as numbers and words: the form in which the standards travel inside a bundle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from geonode.data.arguments import parted_source
from geonode.data.dataset import SpectralDataset


def dataset_arrays(dataset: SpectralDataset) -> dict[str, np.ndarray]:
    """The numbers of a dataset."""
    return {
        "spectra": dataset.spectra,
        "concentrations": dataset.concentrations,
        "wavelengths": dataset.wavelengths,
    }


def dataset_metadata(dataset: SpectralDataset) -> dict[str, Any]:
    """The words of a dataset (JSON)."""
    units = dataset.units
    return {
        "groups": [str(g) for g in dataset.groups],
        "analytes": list(dataset.analytes),
        "concentration_unit": units["concentration"],
        "wavelength_unit": units["wavelength"],
        "signal": dataset.signal,
        "signal_unit": units["signal"],
        "names": list(dataset.names),
        "notes": list(dataset.notes),
        "source": dataset.source,
    }


def dataset_from(
    arrays: dict[str, np.ndarray], metadata: dict[str, Any], files: Sequence[str] | None = None
) -> SpectralDataset:
    """The inverse of `dataset_arrays` and `dataset_metadata`, from ``files``.

    Bundles written before these stood there (None) have them in one text.
    """
    source = parted_source(metadata["source"]) if files is None else files
    # a few wavelengths may agree by chance: what was checked when the file was read is not checked again
    return SpectralDataset(
        arrays["spectra"],
        arrays["concentrations"],
        arrays["wavelengths"],
        _copies_allowed=True,
        **{**metadata, "source": source},
    )
