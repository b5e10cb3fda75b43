"""Spectra as people have them in Python: arrays, tensors, xarray, pandas, data sets. Rows are samples, and what has
wavelengths of its own keeps them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from geonode.data.axis_units import axis_unit, convert_axis, mistaken_unit, names_axis
from geonode.data.checks import Floats, as_floats
from geonode.data.dataset import SpectralDataset
from geonode.errors import InputError

GROUP = "group"
"""Name of a coordinate, index or column that says which spectra are replicates of one sample."""


@dataclass(frozen=True)
class GivenSpectra:
    """Spectra with everything that came with them.

    Attributes:
        values: ``[k, V]``, one sample a row. one: they were given as one spectrum ``[V]``.
        wavelengths: ``[V]`` of their own, in ``unit`` (empty where it is not said); None where they have none.
        names: ``k`` names. groups: ``k`` labels of replicates; None where nothing says which are.
        mask: ``[k, V]``, True where a value is unusable; None where nothing says so.
    """

    values: Floats
    one: bool
    wavelengths: Floats | None = None
    unit: str = ""
    names: tuple[str, ...] = ()
    groups: tuple[str, ...] | None = None
    mask: np.ndarray | None = None

    def in_unit(self, unit: str, standards: Floats, name: str) -> tuple[Floats | None, str]:
        """Their wavelengths in the ``unit`` of the standards, which lie at ``standards [W]``, and what was done.

        Raises:
            InputError: another unit that cannot be converted, or numbers that can only be of another unit.
        """
        if self.wavelengths is None:
            return None, ""
        if self.unit and unit and self.unit != unit:
            moved = convert_axis(self.wavelengths, self.unit, unit)
            if moved is None:
                raise InputError(
                    f"the wavelengths of {name} are in {self.unit} and those of the standards in {unit}, and they "
                    f"cannot be converted; give them in {unit}."
                )
            return moved, f"wavelengths were converted from {self.unit} to {unit}"
        other = "" if self.unit else mistaken_unit(self.wavelengths, standards, unit)
        if other:
            low, high = self.wavelengths.min(), self.wavelengths.max()
            raise InputError(
                f"the wavelengths of {name} run from {low:.4g} to {high:.4g} and those of the standards from "
                f"{standards.min():.4g} to {standards.max():.4g} {unit}: they seem to be in {other}; give them in "
                f"{unit}, or say their unit (attribute units='{other}' of an xarray coordinate)."
            )
        return self.wavelengths, ""


def given_spectra(spectra: Any, wavelengths: Any = None, name: str = "the unknown") -> GivenSpectra:
    """Spectra of any kind that Python has.

    Args:
        spectra: ``[V]`` or ``[k, V]`` as numbers, a torch tensor, an xarray.DataArray (its dimension of wavelengths
            named so, or its last), a pandas Series (index: wavelengths), a pandas DataFrame (see below), or a
            `SpectralDataset`; a list of any of them with the same wavelengths.
        wavelengths: ``[V]``, where ``spectra`` have none of their own.
        name: of the unknown, for messages.

    A DataFrame has one sample a row where its columns are wavelengths; one a column where its index, or a column, is
    named as wavelengths are (``wavelength``, ``nm``, …), as ``pandas.read_csv`` gives a file of spectra.

    Raises:
        InputError: nothing that could be spectra, wavelengths given twice that disagree, dimensions that cannot be
            told apart.
    """
    found = _own(spectra, name)
    if wavelengths is None:
        return found
    axis = _values_of(wavelengths, f"the wavelengths of {name}", 1)
    if found.wavelengths is not None and (
        found.wavelengths.shape != axis.shape or not np.allclose(found.wavelengths, axis, rtol=1e-9, atol=0.0)
    ):
        raise InputError(
            f"{name} has wavelengths of its own, {_ends(found.wavelengths)}, and others were given, {_ends(axis)}; "
            "leave one of the two out."
        )
    unit = axis_unit(str(getattr(wavelengths, "attrs", {}).get("units", ""))) or found.unit
    return GivenSpectra(found.values, found.one, axis, unit, found.names, found.groups, found.mask)


def _own(spectra: Any, name: str) -> GivenSpectra:
    if isinstance(spectra, GivenSpectra):
        return spectra
    if isinstance(spectra, SpectralDataset):
        mask = spectra.mask if spectra.mask.any() else None
        values, axis = np.array(spectra.spectra), np.array(spectra.wavelengths)
        return GivenSpectra(values, False, axis, spectra.wavelength_unit, spectra.names, None, mask)
    if is_of(spectra, "xarray", "DataArray"):
        return _of_dataarray(spectra, name)
    if is_of(spectra, "xarray", "Dataset"):
        raise InputError(f"{name} is an xarray.Dataset; give the variable of it that holds the spectra.")
    if is_of(spectra, "pandas", "Series"):
        return _of_series(spectra, name)
    if is_of(spectra, "pandas", "DataFrame"):
        return _of_frame(spectra, name)
    if isinstance(spectra, list | tuple) and any(_has_axis(one) for one in spectra):
        return _of_several(spectra, name)
    values = _values_of(spectra, name, (1, 2))
    return GivenSpectra(np.atleast_2d(values), values.ndim == 1)


def is_of(value: Any, package: str, kind: str) -> bool:
    """Whether a value is of a class of an optional package; where that was not imported, nothing is."""
    module = sys.modules.get(package)
    return module is not None and isinstance(value, getattr(module, kind))


def _has_axis(value: Any) -> bool:
    return isinstance(value, GivenSpectra | SpectralDataset) or any(
        is_of(value, package, kind)
        for package, kind in (("xarray", "DataArray"), ("pandas", "Series"), ("pandas", "DataFrame"))
    )


def _values_of(values: Any, what: str, ndim: int | tuple[int, ...]) -> Floats:
    return as_floats(values, "values", ndim, what)


def _ends(axis: Floats) -> str:
    return f"{axis[0]:.6g} … {axis[-1]:.6g}" if axis.size else "none"


def _of_dataarray(array: Any, name: str) -> GivenSpectra:
    if array.ndim not in (1, 2):
        raise InputError(
            f"{name} must have one or two dimensions, got {array.ndim} ({', '.join(map(str, array.dims))})."
        )
    named = [d for d in array.dims if names_axis(str(d))]
    if len(named) > 1 or (array.ndim == 2 and not named):
        raise InputError(
            f"{name} has the dimensions {' and '.join(map(str, array.dims))}, and it cannot be told which of them is "
            "that of wavelengths; rename it to 'wavelength'."
        )
    axis = named[0] if named else array.dims[-1]
    array = array.transpose(..., axis)
    own = array.coords.get(axis)
    wavelengths = None if own is None else _values_of(own.values, f"the wavelengths of {name}", 1)
    unit = "" if own is None else axis_unit(str(own.attrs.get("units", ""))) or axis_unit(str(axis))
    values = _values_of(array.values, name, (1, 2))
    if array.ndim == 1:
        return GivenSpectra(values[None], True, wavelengths, unit)
    sample = array.dims[0]
    labels = {str(key): coord for key, coord in array.coords.items() if coord.dims == (sample,)}
    names = next((labels[key].values for key in ("name", str(sample)) if key in labels), ())
    groups = tuple(str(one) for one in labels[GROUP].values) if GROUP in labels else None
    return GivenSpectra(values, False, wavelengths, unit, tuple(_name(one) for one in names), groups)


def _name(label: Any) -> str:
    return f"{label:g}" if isinstance(label, float | np.floating) else str(label)


def _of_series(series: Any, name: str) -> GivenSpectra:
    axis = _numbers(series.index)
    if axis is None and not is_of(series.index, "pandas", "RangeIndex"):
        raise InputError(
            f"the index of {name} must be its wavelengths, as numbers; it begins with {series.index[0]!r}."
        )
    if is_of(series.index, "pandas", "RangeIndex"):
        axis = None  # the numbers of rows, which pandas gives where nobody gave an index
    return GivenSpectra(
        _values_of(series.to_numpy(), name, 1)[None], True, axis, axis_unit(str(series.index.name or ""))
    )


def _of_frame(frame: Any, name: str) -> GivenSpectra:
    groups = None
    if GROUP in frame.columns:
        groups, frame = tuple(str(one) for one in frame[GROUP]), frame.drop(columns=GROUP)
    axes = [column for column in frame.columns if isinstance(column, str) and names_axis(column)]
    if len(axes) == 1:
        frame = frame.set_index(axes[0])
    across = _numbers(frame.columns)
    if names_axis(str(frame.index.name or "")) and not names_axis(str(frame.columns.name or "")):
        axis, unit = _numbers(frame.index), axis_unit(str(frame.index.name))
        if axis is None or groups is not None:
            raise InputError(f"the wavelengths of {name} (its '{frame.index.name}') must be numbers, one a row.")
        return GivenSpectra(
            _values_of(frame.to_numpy().T, name, 2), False, axis, unit, tuple(map(_name, frame.columns)), None
        )
    if across is None:
        raise InputError(
            f"{name} is a DataFrame in which no wavelengths are found: name its columns by wavelength (one sample a "
            "row), or call its index or one column 'wavelength' (one sample a column)."
        )
    unit = axis_unit(str(frame.columns.name or ""))
    return GivenSpectra(
        _values_of(frame.to_numpy(), name, 2),
        False,
        None if np.array_equal(across, np.arange(len(across))) else across,  # so pandas counts unnamed columns
        unit,
        tuple(map(_name, frame.index)),
        groups,
    )


def _numbers(index: Any) -> Floats | None:
    try:
        return np.array([float(label) for label in index], dtype=np.float64)
    except (TypeError, ValueError):
        return None


def _of_several(spectra: Sequence[Any], name: str) -> GivenSpectra:
    parts = [_own(one, f"{name} ({k + 1})") for k, one in enumerate(spectra)]
    first = parts[0]
    for k, part in enumerate(parts):
        both = part.wavelengths is not None and first.wavelengths is not None
        same = both and part.unit == first.unit and np.array_equal(part.wavelengths, first.wavelengths)  # pyright: ignore
        if not same and not (part.wavelengths is None and first.wavelengths is None):
            raise InputError(
                f"{name}: the first and number {k + 1} of the list have different wavelengths; ask for one at a time."
            )
    names = tuple(n for k, part in enumerate(parts) for n in (part.names or [str(k + 1)] * len(part.values)))
    masks = [np.zeros(p.values.shape, dtype=bool) if p.mask is None else p.mask for p in parts]
    values = np.concatenate([part.values for part in parts])
    return GivenSpectra(values, False, first.wavelengths, first.unit, names, None, np.concatenate(masks))
