"""Predicted spectra with their coordinates and units."""

from __future__ import annotations

import math
from functools import partial
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


class Labels:
    """Labels means and standard deviations as `labelled` does, and keeps the coordinates of the last ones.

    Coordinates take longer to make than a prediction on a GPU: whoever asks at the same places again has a copy, and
    mean and standard deviation share theirs.

    Args:
        dataset, chain: as for `labelled`.
    """

    def __init__(self, dataset: SpectralDataset, chain: Preprocessing | None) -> None:
        self._made = partial(labelled, dataset, chain)
        self._last: xr.DataArray | None = None

    def __call__(
        self, concentrations: np.ndarray, mean: np.ndarray, std: np.ndarray, dof: float
    ) -> tuple[xr.DataArray, xr.DataArray]:
        """``mean`` and ``std`` [C, W] at ``concentrations`` [C]; ``dof`` as for `labelled`."""
        last = self._last
        known = last is not None and last.attrs["degrees_of_freedom"] == dof
        if last is None or not known or not np.array_equal(last["concentration"].values, concentrations):
            last = self._made(concentrations, mean, "mean", dof)
            last["extrapolated"].values.flags.writeable = False  # shared by all copies
            self._last = last
        first, second = (last.copy(deep=False, data=values) for values in (mean, std))
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
