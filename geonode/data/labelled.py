"""Predicted spectra with their coordinates and units."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geonode.data.dataset import SpectralDataset
from geonode.data.preprocessing import Preprocessing

if TYPE_CHECKING:
    import xarray as xr


def labelled(
    dataset: SpectralDataset, chain: Preprocessing | None, concentrations: np.ndarray, values: np.ndarray, name: str
) -> xr.DataArray:
    """``values [C, W]`` at ``concentrations [C]`` as an array that says what it is.

    Args:
        dataset: the standards, whose wavelengths and units are taken.
        chain: the preprocessing of the spectra, or None.
        concentrations: those outside the range of the standards are flagged ``extrapolated``.
        values: the spectra.
        name: of the array.
    """
    import xarray as xr

    units, levels = dataset.units, np.asarray(dataset.levels)
    attributes = {"units": units["signal"], "signal": dataset.signal}
    if chain is not None:
        attributes["preprocessing"] = str(chain)
    outside = (concentrations < levels.min()) | (concentrations > levels.max())
    return xr.DataArray(
        values,
        dims=("concentration", "wavelength"),
        coords={
            "concentration": ("concentration", concentrations, {"units": units["concentration"]}),
            "wavelength": ("wavelength", dataset.wavelengths, {"units": units["wavelength"]}),
            "extrapolated": ("concentration", outside),
        },
        name=name,
        attrs=attributes,
    )
