"""Predicted spectra with their coordinates and units."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from geonode.data.dataset import SpectralDataset
from geonode.data.preprocessing import Preprocessing
from geonode.errors import InputError

if TYPE_CHECKING:
    import xarray as xr


def labelled(
    dataset: SpectralDataset,
    chain: Preprocessing | None,
    concentrations: np.ndarray,
    values: np.ndarray,
    name: str,
    dof: float,
) -> xr.DataArray:
    """``values [C, W]`` at ``concentrations [C]`` as an array that says what it is.

    Args:
        dataset: the standards, whose wavelengths and units are taken.
        chain: the preprocessing of the spectra, or None.
        concentrations: those outside the range of the standards are flagged ``extrapolated``.
        values: the spectra.
        name: of the array.
        dof: degrees of freedom of the prediction's Student t; kept as the attribute ``degrees_of_freedom``, from which
            `half_width` makes a band.
    """
    import xarray as xr

    units, levels = dataset.units, np.asarray(dataset.levels)
    attributes: dict[str, Any] = {"units": units["signal"], "signal": dataset.signal, "degrees_of_freedom": float(dof)}
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


def labelled_pair(
    dataset: SpectralDataset,
    chain: Preprocessing | None,
    concentrations: np.ndarray,
    mean: np.ndarray,
    std: np.ndarray,
    dof: float,
) -> tuple[xr.DataArray, xr.DataArray]:
    """``mean`` and ``std`` [C, W] as `labelled` names them; they share their coordinates, which take longest to make.

    Args:
        dataset, chain, concentrations, dof: as for `labelled`.
        mean, std: the values.
    """
    first = labelled(dataset, chain, concentrations, mean, "mean", dof)
    second = first.copy(deep=False, data=std)
    second.name = "std"
    return first, second


def half_width(std: xr.DataArray, level: float = 0.8) -> np.ndarray:
    """Half the width ``[C, W]`` of the central interval that holds ``level`` of further measured spectra.

    A Student t of ν degrees of freedom has the standard deviation scale · √(ν/(ν − 2)), so the interval is t · std ·
    √((ν − 2)/ν) on either side of the mean. With few standards ν is small, and 1.28 · std would be far too wide.

    Args:
        std: from `geonode.model.GeodesicModel.predict_spectra`.
        level: between 0 and 1.

    Raises:
        InputError: a level that is none, or an array without the attribute ``degrees_of_freedom``.
    """
    if not 0.0 < level < 1.0:
        raise InputError(f"level={level!r} must lie between 0 and 1.")
    dof = std.attrs.get("degrees_of_freedom")
    if dof is None:
        raise InputError("std has no attribute degrees_of_freedom; give the one that predict_spectra gave.")
    return std.values * stdtrit(dof, 0.5 + 0.5 * level) * math.sqrt((dof - 2.0) / dof)
