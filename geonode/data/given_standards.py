"""Standards as people have them in Python: a file, a DataFrame, a DataArray with its concentrations, or a data set."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from geonode.data.dataset import SpectralDataset
from geonode.data.given import GivenSpectra, axis_column, given_spectra, is_of
from geonode.data.named_axis import unit_of
from geonode.data.readers import load_standards
from geonode.data.readers.names import quantity_in
from geonode.errors import InputError

_CONCENTRATION = re.compile(r"conc(entrations?|\.)?([ _]*[(\[/].*)?|concentrations?_\w+|levels?|y", re.I)
_REPLICATE = re.compile(r"\s*([-+]?\d+\.\d+)\.\d+\s*")
"""A repeated level as files of standards head it: ``5.0.1``."""
_WHERE = "the standards"


def given_standards(standards: Any) -> SpectralDataset:
    """A data set of standards from anything that holds one.

    Args:
        standards: a `SpectralDataset`, as it is; a file or a list of files, read as `geonode.load_standards` does; a
            pandas DataFrame with one sample a row, its columns wavelengths and its index (or a column) named
            ``concentration``, or with one sample a column, headed by its concentration, and an index or a column named
            ``wavelength``; an xarray.DataArray with a coordinate ``concentration``; the xarray.Dataset of
            `SpectralDataset.xarray`.

    Raises:
        ReaderError: a file that cannot be read as standards.
        InputError: no concentrations or wavelengths in it, or what is no set of standards at all.
    """
    if isinstance(standards, SpectralDataset):
        return standards
    if isinstance(standards, str | os.PathLike):
        return load_standards(standards)
    if isinstance(standards, Sequence) and standards and all(isinstance(p, str | os.PathLike) for p in standards):
        return load_standards(list(standards))
    if is_of(standards, "pandas", "DataFrame"):
        return _of_frame(standards)
    if is_of(standards, "xarray", "DataArray"):
        return _of_dataarray(standards)
    stored: Any = standards
    if is_of(stored, "xarray", "Dataset") and "spectra" in stored and "concentration" in stored.coords:
        return _of_dataarray(stored["spectra"])
    raise InputError(
        f"{type(standards).__name__} is no set of standards; give a SpectralDataset, a file, a DataFrame, or a "
        "DataArray with a coordinate 'concentration'; arrays go into SpectralDataset(spectra, concentrations, "
        "wavelengths)."
    )


def prepared(dataset: SpectralDataset) -> SpectralDataset:
    """The dataset as models take it: one analyte, three levels, no masked wavelength.

    Raises:
        InputError: several analytes, or fewer than three levels.
    """
    if dataset.dim != 1:
        raise InputError(
            f"this takes one analyte, and the data set has {dataset.dim} ({', '.join(dataset.analytes)}); select the "
            "samples in which only one of them varies (--select), or calibrate two at once: `geonode fit` with a "
            "--column for each and `geonode quantify`, in Python geonode.analytes.fit_plane "
            "(docs/howto/two_analytes.md, examples/two_analytes/run.py)."
        )
    return dataset.require_levels(3).without_masked()


def _of_frame(frame: Any) -> SpectralDataset:
    columns = [column for column in frame.columns if isinstance(column, str) and _CONCENTRATION.fullmatch(column)]
    if len(columns) > 1:
        raise InputError(
            f"{_WHERE}: the columns {' and '.join(columns)} may both be concentrations; leave one of them out."
        )
    if columns:
        given = given_spectra(frame.drop(columns=columns[0]), name=_WHERE)
        labels = [str(one) for one in frame[columns[0]]]
    elif is_of(frame.index, "pandas", "RangeIndex") and axis_column(frame) is None:
        raise InputError(
            f"{_WHERE} are a DataFrame without concentrations; set them as its index, or add a column 'concentration'."
        )
    else:
        given = given_spectra(frame, name=_WHERE)
        labels = list(given.names)
    return _dataset(given, *_concentrations(labels))


def _of_dataarray(array: Any) -> SpectralDataset:
    given = given_spectra(array, name=_WHERE)
    coordinate = array.coords.get("concentration")
    if given.one or coordinate is None or coordinate.ndim != 1:
        raise InputError(
            f"{_WHERE} are a DataArray without concentrations; add the coordinate 'concentration' along its samples."
        )
    return _dataset(given, np.asarray(coordinate.values, dtype=np.float64), str(coordinate.attrs.get("units", "")))


def _concentrations(labels: Sequence[str]) -> tuple[np.ndarray, str]:
    """Concentrations from labels such as ``5``, ``5.0.1`` (a replicate of ``5.0``) or ``5 µM``, and their unit."""
    values, found = [], set()
    for label in labels:
        repeated = _REPLICATE.fullmatch(label)
        label = repeated[1] if repeated else label
        quantity = quantity_in(label)
        try:
            values.append(float(label) if quantity is None else float(quantity[0]))
        except ValueError:
            raise InputError(
                f"{_WHERE}: '{label}' is no concentration; name the samples by their concentrations, or give a column "
                "'concentration'."
            ) from None
        found.add("" if quantity is None else quantity[1])
    if len(found) > 1:
        said = " and ".join(sorted(unit or "none" for unit in found))
        raise InputError(f"{_WHERE}: concentrations are given in several units ({said}); give all in one.")
    return np.array(values), found.pop()


def _dataset(given: GivenSpectra, concentrations: np.ndarray, unit: str) -> SpectralDataset:
    if given.wavelengths is None:
        raise InputError(f"{_WHERE} have no wavelengths; give them as columns, index or coordinate 'wavelength'.")
    wavelength_unit, note = unit_of(given.axis, given.wavelengths, _WHERE)
    return SpectralDataset(
        given.values,
        concentrations,
        given.wavelengths,
        concentration_unit=unit,
        mask=given.mask,
        wavelength_unit=wavelength_unit,
        notes=(*given.notes, *([note] if note else [])),
    )
