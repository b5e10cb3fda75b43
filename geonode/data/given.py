"""Spectra as people have them in Python: arrays, tensors, xarray, pandas, data sets. Rows are samples, and what has
wavelengths of its own keeps them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geonode.data.axis_units import in_unit_of, names_axis, no_such_axis
from geonode.data.checks import Floats, as_floats
from geonode.data.dataset import SpectralDataset
from geonode.data.frame_labels import Beside, numbers_of, wavelengths_across, without_labels
from geonode.data.named_axis import NAMELESS, NamedAxis, axis_of_values, named_axis, names_other_axis
from geonode.data.readers import units
from geonode.errors import InputError
from geonode_runtime.given_numbers import masked_in

GROUP = "group"
"""Name of a coordinate, index or column that says which spectra are replicates of one sample."""


@dataclass(frozen=True)
class GivenSpectra:
    """Spectra with everything that came with them.

    Attributes:
        values: ``[k, V]``, one sample a row. one: they were given as one spectrum ``[V]``.
        wavelengths: ``[V]`` of their own; None where they have none. axis: what their name says of them.
        names: ``k`` names. groups: ``k`` labels of replicates; None where nothing says which are.
        mask: ``[k, V]``, True where a value is unusable; None where nothing says so. notes: on what was left out.
        beside: ``k`` times what stood beside a spectrum, column → cell; empty where nothing did.
    """

    values: Floats
    one: bool
    wavelengths: Floats | None = None
    axis: NamedAxis = NAMELESS
    names: tuple[str, ...] = ()
    groups: tuple[str, ...] | None = None
    mask: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    beside: tuple[dict[str, str], ...] = ()

    @property
    def unit(self) -> str:
        """Of the wavelengths, empty where it is not said."""
        return self.axis.unit or ""

    def in_unit(self, unit: str, standards: Floats, name: str) -> tuple[Floats | None, str]:
        """Their wavelengths in the ``unit`` of the standards, which lie at ``standards [W]``, and what was done.

        Raises:
            InputError: another unit that cannot be converted, or in which the numbers cannot be.
        """
        if self.wavelengths is None:
            return None, ""
        if self.axis.note and unit and self.unit != unit:
            raise InputError(
                f"{self.axis.note}, and the standards' are in {unit}; give {name} over the standards' wavelengths, or "
                "correct what is said of its axis."
            )
        if self.unit and unit and self.unit != unit:
            moved = in_unit_of(standards, unit, self.wavelengths, self.unit, name)
            if moved is None:
                raise InputError(no_such_axis(name, self.unit, unit))
            return moved, f"wavelengths were converted from {self.unit} to {unit}"
        return self.wavelengths, self.axis.note


def given_spectra(spectra: Any, wavelengths: Any = None, name: str = "the unknown") -> GivenSpectra:
    """Spectra of any kind that Python has.

    Args:
        spectra: ``[V]`` or ``[k, V]`` as numbers, a torch tensor, an xarray.DataArray (its dimension of wavelengths
            named so, or its last), a pandas Series (index: wavelengths), a pandas DataFrame (see below), or a
            `SpectralDataset`; a list of any of them with the same wavelengths. Values that numpy masks are unusable.
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
    said = axis_of_values(wavelengths, f"the wavelengths of {name}")
    return replace(found, wavelengths=axis, axis=found.axis if said == NAMELESS else said)


def _own(spectra: Any, name: str) -> GivenSpectra:
    if isinstance(spectra, GivenSpectra):
        return spectra
    if isinstance(spectra, SpectralDataset):
        mask = spectra.mask if spectra.mask.any() else None
        values, axis = np.array(spectra.spectra), np.array(spectra.wavelengths)
        return GivenSpectra(values, False, axis, NamedAxis(spectra.wavelength_unit), spectra.names, None, mask)
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
    mask = masked_in(spectra)
    return GivenSpectra(np.atleast_2d(values), values.ndim == 1, mask=None if mask is None else np.atleast_2d(mask))


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
    axis = _axis_of_dataarray(array, name)
    array = array.transpose(..., axis)
    own = array.coords.get(axis)
    wavelengths = None if own is None else _values_of(own.values, f"the wavelengths of {name}", 1)
    said = NAMELESS if own is None else named_axis(axis, name, own.attrs)
    values = _values_of(array.values, name, (1, 2))
    if array.ndim == 1:
        return GivenSpectra(values[None], True, wavelengths, said)
    sample = array.dims[0]
    labels = {str(key): coord for key, coord in array.coords.items() if coord.dims == (sample,)}
    names = next((labels[key].values for key in ("name", str(sample)) if key in labels), ())
    groups = tuple(str(one) for one in labels[GROUP].values) if GROUP in labels else None
    return GivenSpectra(values, False, wavelengths, said, tuple(sample_name(one) for one in names), groups)


def _axis_of_dataarray(array: Any, name: str) -> Any:
    """The dimension along which the spectra run: named as wavelengths are, or with an attribute that is; else the only
    one, or the only one that names an axis of another kind."""

    def says_so(dim: Any) -> bool:
        attributes = array.coords[dim].attrs if dim in array.coords else {}
        words = (dim, *(attributes.get(key, "") for key in ("units", "long_name", "standard_name")))
        return any(names_axis(str(word)) for word in words)

    named = [dim for dim in array.dims if says_so(dim)]
    if not named and array.ndim == 1:
        return array.dims[-1]
    if not named:
        named = [dim for dim in array.dims if _names_axis_of_spectra(dim)]
    if len(named) != 1:
        raise InputError(
            f"{name} has the dimensions {' and '.join(map(str, array.dims))}, and it cannot be told which of them is "
            "that of wavelengths; rename it to 'wavelength'."
        )
    return named[0]


def sample_name(label: Any) -> str:
    """The name of a sample that an index or the columns of a DataFrame label so."""
    return f"{label:g}" if isinstance(label, float | np.floating) else str(label)


def _of_series(series: Any, name: str) -> GivenSpectra:
    axis = numbers_of(series.index)
    if axis is None and not is_of(series.index, "pandas", "RangeIndex"):
        raise InputError(
            f"the index of {name} must be its wavelengths, as numbers; it begins with {series.index[0]!r}."
        )
    if is_of(series.index, "pandas", "RangeIndex"):
        axis = None  # the numbers of rows, which pandas gives where nobody gave an index
    said = NAMELESS if axis is None else named_axis(series.index.name, name)
    return GivenSpectra(_values_of(series.to_numpy(), name, 1)[None], True, axis, said)


def _of_frame(frame: Any, name: str) -> GivenSpectra:
    groups = None
    if GROUP in frame.columns:
        groups, frame = tuple(str(one) for one in frame[GROUP]), frame.drop(columns=GROUP)
    column = axis_column(frame)
    frame, notes = _with_axis_as_index(frame, column, name)
    if column is None and not names_axis(str(frame.index.name or "")):
        frame, labels = without_labels(frame, name)
    else:
        labels = Beside()
    across = numbers_of(frame.columns)
    down = named_axis(frame.index.name, name) if column is not None or _runs_down(frame, across, name) else None
    if down is not None:
        axis = numbers_of(frame.index)
        if axis is None or groups is not None:
            raise InputError(f"the wavelengths of {name} (its '{frame.index.name}') must be numbers, one a row.")
        names = tuple(map(sample_name, frame.columns))
        return GivenSpectra(_values_of(frame.to_numpy().T, name, 2), False, axis, down, names, None, None, notes)
    if across is None:
        raise InputError(
            f"{name} is a DataFrame in which no wavelengths are found: name its columns by wavelength (one sample a "
            "row), or call its index or one column 'wavelength' (one sample a column)."
        )
    said = named_axis(frame.columns.name, name)
    if np.array_equal(across, np.arange(len(across))):  # so pandas counts unnamed columns
        across, said = None, NAMELESS
    elif said.unit is None and not said.note and units.counts(across):
        raise InputError(
            f"the columns of {name} only count ({across[0]:g}, {across[1]:g}, {across[2]:g}, and so on); name them by "
            "wavelength."
        )
    return GivenSpectra(
        _values_of(frame.to_numpy(), name, 2),
        False,
        across,
        said,
        labels.names or tuple(map(sample_name, frame.index)),
        groups,
        None,
        (*notes, *labels.notes),
        labels.cells,
    )


def axis_column(frame: Any) -> str | None:
    """The column of a DataFrame that is the axis of its spectra, one a column: the only one named as wavelengths are,
    or the first, where it names another axis and no other column is headed by a wavelength."""
    titles = [column for column in frame.columns if isinstance(column, str)]
    named = [column for column in titles if names_axis(column)]
    if named:
        return named[0] if len(named) == 1 else None
    if not titles or frame.columns[0] != titles[0] or not names_other_axis(titles[0]):
        return None
    return None if wavelengths_across(frame.columns[1:]) else titles[0]


def _with_axis_as_index(frame: Any, column: str | None, name: str) -> tuple[Any, tuple[str, ...]]:
    """The frame with its ``column`` of wavelengths as index, and without columns beside it that are no spectra."""
    if column is None:
        return frame, ()
    frame, notes = frame.set_index(column), []
    for beside in [one for one in frame.columns if isinstance(one, str)]:
        steps = np.diff(frame[beside].to_numpy(dtype=np.float64)) if units.is_counter(beside) else np.zeros(1)
        if units.is_temperature(beside) or (steps == 1.0).all():
            why = "a temperature" if units.is_temperature(beside) else "it counts"
            notes.append(f"column '{beside}' of {name} left out: {why}, and no spectrum")
            frame = frame.drop(columns=beside)
    return frame, tuple(notes)


def _names_axis_of_spectra(name: Any) -> bool:
    """Whether a name is one of another axis than wavelengths along which spectra run: concentrations are samples'."""
    return names_other_axis(name) and not str(name).lower().startswith("conc")


def _runs_down(frame: Any, across: Floats | None, name: str) -> bool:
    """Whether the index is the axis of the spectra.

    Raises:
        InputError: it names an axis that is none of wavelengths, and the columns may be samples or wavelengths.
    """
    index, columns = frame.index.name, frame.columns.name
    if names_axis(str(index or "")):
        return not names_axis(str(columns or ""))
    if not _names_axis_of_spectra(index):
        return False
    if across is None:
        return True
    if names_axis(str(columns or "")) or names_other_axis(columns) or units.is_plausible_nm(across):
        return False
    raise InputError(
        f"{name} is a DataFrame whose index is '{index}' and whose columns run from {across[0]:g} to {across[-1]:g}: "
        "it cannot be told which of the two are samples; give the columns the name 'wavelength' (frame.columns.name), "
        "or the samples names that are no numbers ('5 µM')."
    )


def _of_several(spectra: Sequence[Any], name: str) -> GivenSpectra:
    parts = [_own(one, f"{name} ({k + 1})") for k, one in enumerate(spectra)]
    first = parts[0]
    for k, part in enumerate(parts):
        both = part.wavelengths is not None and first.wavelengths is not None
        same = both and part.axis == first.axis and np.array_equal(part.wavelengths, first.wavelengths)  # pyright: ignore
        if not same and not (part.wavelengths is None and first.wavelengths is None):
            raise InputError(
                f"{name}: the first and number {k + 1} of the list have different wavelengths; ask for one at a time."
            )
    names = tuple(n for k, part in enumerate(parts) for n in (part.names or [str(k + 1)] * len(part.values)))
    masks = [np.zeros(p.values.shape, dtype=bool) if p.mask is None else p.mask for p in parts]
    values = np.concatenate([part.values for part in parts])
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    return GivenSpectra(values, False, first.wavelengths, first.axis, names, None, np.concatenate(masks), notes)
