"""`SpectralDataset` as xarray and as NetCDF-4 (HDF5), written whole or not at all."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from geonode.data.arguments import parted_source
from geonode.data.dataset import SpectralDataset
from geonode.errors import InputError, ReaderError
from geonode_runtime.files import write_atomically
from geonode_runtime.given_paths import as_path

if TYPE_CHECKING:
    import xarray as xr

FORMAT_NAME = "geonode spectra"
FORMAT_VERSION = 1


def to_xarray(data: SpectralDataset) -> xr.Dataset:
    """Dims (sample, wavelength) and, for several analytes, analyte; coords concentration, wavelength, group, name."""
    import xarray as xr

    shape = ("sample",) if data.dim == 1 else ("sample", "analyte")
    coords: dict[str, Any] = {
        "concentration": (shape, data.concentrations, {"units": data.concentration_unit}),
        "wavelength": ("wavelength", data.wavelengths, {"units": data.wavelength_unit}),
        "group": ("sample", data.groups),
        "name": ("sample", np.array(data.names, dtype=np.str_)),
        "analyte": ("analyte", np.array(data.analytes, dtype=np.str_)),
    }
    variables: dict[str, Any] = {
        "spectra": (("sample", "wavelength"), data.spectra, {"units": data.signal_unit, "signal": data.signal})
    }
    if data.mask.any():
        meaning = {"meaning": "1 where the value is unusable and spectra is NaN"}
        variables["mask"] = (("sample", "wavelength"), data.mask.astype(np.int8), meaning)
    attrs = {
        "format": FORMAT_NAME,
        "format_version": FORMAT_VERSION,
        "source": data.source,
        "files": json.dumps(list(data.files), ensure_ascii=False),
        "notes": json.dumps(list(data.notes), ensure_ascii=False),
    }
    return xr.Dataset(variables, coords=coords, attrs=attrs)


def from_xarray(stored: xr.Dataset) -> SpectralDataset:
    """The inverse of `to_xarray`; KeyError, TypeError or ValueError where ``stored`` is something else."""
    if stored.attrs.get("format") != FORMAT_NAME:
        raise ValueError("it has no attribute that says it is a geonode data set")
    version = int(stored.attrs["format_version"])
    if version != FORMAT_VERSION:
        raise ValueError(f"it is of format version {version}, and this release reads version {FORMAT_VERSION}")
    spectra = stored["spectra"]
    if spectra.dims != ("sample", "wavelength"):
        raise ValueError(f"its spectra have the dimensions {spectra.dims}")
    group = stored["group"].values
    source = str(stored.attrs["source"])
    files = json.loads(stored.attrs["files"]) if "files" in stored.attrs else parted_source(source)
    return SpectralDataset(
        spectra.values,
        stored["concentration"].values,
        stored["wavelength"].values,
        groups=group if group.dtype.kind in "iu" else [str(label) for label in group],
        concentration_unit=str(stored["concentration"].attrs["units"]),
        analytes=[str(name) for name in stored["analyte"].values],
        notes=[str(note) for note in json.loads(stored.attrs["notes"])],
        source=[str(file) for file in files],
        names=[str(name) for name in stored["name"].values],
        mask=stored["mask"].values.astype(bool) if "mask" in stored else None,
        signal=str(spectra.attrs["signal"]),
        signal_unit=str(spectra.attrs["units"]),
        wavelength_unit=str(stored["wavelength"].attrs["units"]),
        _copies_allowed=True,
    )


def save(data: SpectralDataset, path: str | os.PathLike[str]) -> None:
    """Write NetCDF-4 to a temporary name in the same folder, then rename. Numbers carry HDF5's checksum (Fletcher 32).

    Raises:
        InputError: the folder does not exist.
        OutputError: it cannot be written.
    """
    target = as_path(path, "the file of a data set")
    if not target.parent.is_dir():
        raise InputError(f"{target}: the folder {target.parent} does not exist; create it first.")
    stored = to_xarray(data)
    checked: Any = {name: {"fletcher32": True} for name, v in stored.variables.items() if v.dtype.kind in "fiu"}
    write_atomically(target, lambda name: stored.to_netcdf(name, engine="h5netcdf", format="NETCDF4", encoding=checked))


def load(path: str | os.PathLike[str]) -> SpectralDataset:
    """Read a file that `save` wrote.

    Raises:
        ReaderError: truncated, altered, foreign, or of a version this release cannot read.
    """
    import h5py
    import xarray as xr

    try:
        with h5py.File(path, "r") as file:
            file.attrs.get("_nc3_strict")  # where h5netcdf fails at this, it prints a traceback besides raising
        with xr.open_dataset(path, engine="h5netcdf", phony_dims="access") as stored:
            return from_xarray(stored.load())
    except InputError as error:
        raise ReaderError(f"{path}: {error}") from None
    except Exception as error:  # the HDF5 stack raises anything at all on damaged files
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ReaderError(
            f"{path}: HDF5, but not a complete geonode data set ({reason}); write it with SpectralDataset.save, or "
            "export the spectra as CSV."
        ) from None
