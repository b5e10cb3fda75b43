"""Standards as people have them in Python: a file, a DataFrame, a DataArray with its concentrations, or a data set."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from geonode.data.dataset import SpectralDataset
from geonode.data.flat_tops import flat_tops
from geonode.data.given import GivenSpectra, axis_column, given_spectra, is_of, sample_name
from geonode.data.named_axis import unit_of
from geonode.data.readers import load_standards
from geonode.data.readers.concentration_table import split_unit
from geonode.data.readers.dilutions import number_in, untold_dilution
from geonode.data.readers.names import doubts, is_unit, quantity_in
from geonode.data.readers.transposed import both_readings
from geonode.errors import InputError
from geonode_runtime.wording import argument, either

_CONCENTRATION = re.compile(r"conc(entrations?|\.)?([ _]*[(\[/].*)?|concentrations?_\w+|levels?|y", re.I)
_REPLICATE = re.compile(r"\s*([-+]?\d+\.\d+)\.\d+\s*")
"""A repeated level as files of standards head it: ``5.0.1``."""
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(\.\d{3})+|[1-9]\d{0,2}(,\d{3})+")
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
    """The dataset as models take it: one analyte, three levels, no masked wavelength; noted where it is cut flat.

    Raises:
        InputError: several analytes, or fewer than three levels.
    """
    if dataset.dim != 1:
        two = either("`geonode fit` with a --column for each and `geonode quantify`", "geonode.analytes.fit_plane")
        raise InputError(
            f"this takes one analyte, and the data set has {dataset.dim} ({', '.join(dataset.analytes)}); select the "
            "samples in which only one of them varies "
            f"({argument('select')}), or calibrate two at once: {two} "
            "(docs/howto/two_analytes.md, examples/two_analytes/run.py)."
        )
    found = dataset.require_levels(3).without_masked()
    flat = flat_tops(found.spectra, found.concentrations, found.wavelengths)
    return found.with_metadata(notes=(*found.notes, flat)) if flat and flat not in found.notes else found


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
    rows = labels == [sample_name(one) for one in frame.index]
    called = columns[0] if columns else frame.index.name if rows else frame.columns.name
    if given.wavelengths is not None:
        _require_upright(labels, given.wavelengths, given.unit)
    written = (*frame.columns, *frame.index, *(frame[columns[0]] if columns else ()))
    texts = {one for one in written if isinstance(one, str)}
    _require_no_doubt([label for label in labels if label in texts])
    values, unit = _concentrations(labels)
    _require_told(str(called or "concentration"), values, given)
    stated = _unit_in(called)
    if unit and stated and unit != stated:
        raise InputError(f"{_WHERE}: concentrations are in {unit} and their column says {stated}; give one unit.")
    return _dataset(given, values, unit or stated)


def _require_told(called: str, values: np.ndarray, given: GivenSpectra) -> None:
    """Refuse concentrations of which a factor of dilution beside them leaves open what they are of, as of a file.

    Raises:
        InputError: with both readings.
    """
    beside = {column: [one[column] for one in given.beside] for column in (given.beside[0] if given.beside else ())}
    if said := untold_dilution(called, values.tolist(), beside, number_in, chosen=False):
        raise InputError(f"{_WHERE}: {said}")


def _require_upright(labels: Sequence[str], wavelengths: np.ndarray, unit: str) -> None:
    """Refuse a DataFrame whose levels are an axis of wavelengths, and whose wavelengths are the levels.

    Raises:
        InputError: beyond doubt it lies on its side; both readings are named.
    """
    said = both_readings(labels, wavelengths, unit or "wavelength")
    if said:
        raise InputError(
            f"{_WHERE} look transposed: as the DataFrame is named {said}. If that is meant, name the axes the other "
            "way round: 'concentration' what is called 'wavelength', or the reverse."
        )


def _unit_in(name: Any) -> str:
    """The unit that the name of the concentrations states: ``concentration (mM)``, ``c / mM``, ``conc_mM``."""
    unit = split_unit(str(name or "").replace("_", " "))[1]
    return unit if is_unit(unit) else ""


def _require_no_doubt(labels: Sequence[str]) -> None:
    """Refuse levels written as text that may be read in two ways.

    Raises:
        InputError: thousands or decimals, or a level that may be what pandas makes of a column that stands twice.
    """
    wholes = {label for label in labels if label.isdecimal()}
    for label in labels:
        if (wholes or "," in label) and _THOUSANDS.fullmatch(label):
            pointed = label.replace(",", ".")
            raise InputError(
                f"{_WHERE}: '{label}' is {pointed.replace('.', '')} or {pointed}; name the samples by numbers, or "
                "write the level without a separator between thousands."
            )
    repeated = [label for label in labels if "." in label]
    if repeated and all(_may_repeat(label, wholes, labels) for label in repeated):
        first = repeated[0]
        whole = first.partition(".")[0]
        raise InputError(
            f"{_WHERE}: '{first}' is {first}, or what pandas makes of a second column '{whole}'; head a level and its "
            f"replicates '{whole}.0', '{whole}.0.1', or name the columns by numbers."
        )
    if found := doubts(labels):
        raise InputError(f"{_WHERE}: {found[0]}; write it in one way.")


def _of_dataarray(array: Any) -> SpectralDataset:
    given = given_spectra(array, name=_WHERE)
    coordinate = array.coords.get("concentration")
    if given.one or coordinate is None or coordinate.ndim != 1:
        raise InputError(
            f"{_WHERE} are a DataArray without concentrations; add the coordinate 'concentration' along its samples."
        )
    return _dataset(given, np.asarray(coordinate.values, dtype=np.float64), str(coordinate.attrs.get("units", "")))


def _may_repeat(label: str, wholes: set[str], labels: Sequence[str]) -> bool:
    """Whether ``5.2`` may be the second that pandas calls so beside ``5``: ``5.1`` is there too."""
    level, _, count = label.partition(".")
    counts = count.isdecimal() and len(count) < 4 and not count.startswith("0")
    return level in wholes and counts and all(f"{level}.{k}" in labels for k in range(1, int(count)))


def _concentrations(labels: Sequence[str]) -> tuple[np.ndarray, str]:
    """Concentrations from labels such as ``5``, ``5.0.1`` (a replicate of ``5.0``) or ``5 µM``, and their unit."""
    values, found = [], set()
    for label in labels:
        repeated = _REPLICATE.fullmatch(label)
        label = repeated[1] if repeated else label
        quantity = quantity_in(label)
        if quantity is None and not _NUMBER.fullmatch(label) and label != "nan":  # 1_5 is 15 to Python
            raise InputError(
                f"{_WHERE}: '{label}' is no concentration; name the samples by their concentrations, or give a column "
                "'concentration'."
            )
        values.append(float(label) if quantity is None else float(quantity[0]))
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
