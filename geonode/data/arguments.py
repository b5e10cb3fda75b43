"""What a data set is made from, in the shape in which it is kept: names, groups, masks, selections."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geonode.data.checks import Floats, format_level
from geonode.errors import InputError
from geonode_runtime.given_numbers import as_number, mask_of, short

DEFAULT_ANALYTE = "concentration"


def check_shapes(y: Floats, c: Floats, x: Floats, where: str) -> None:
    if y.shape[0] == 0 or y.shape[1] == 0:
        raise InputError(f"{where}: no spectrum, or no wavelength (spectra of shape {y.shape}).")
    if len(c) != len(y):
        raise InputError(f"{where}: {len(y)} spectra but {len(c)} concentrations; give one for each spectrum.")
    if len(x) != y.shape[1]:
        raise InputError(f"{where}: spectra have {y.shape[1]} values each but there are {len(x)} wavelengths.")
    if c.shape[1] == 0:
        raise InputError(f"{where}: concentrations of shape {c.shape} name no analyte.")


def as_files(source: str | Sequence[str]) -> tuple[str, ...]:
    """The files that spectra are from: one name, or a list of them; a name may hold commas."""
    return tuple(filter(None, [source] if isinstance(source, str) else source))


def parted_source(source: str) -> list[str]:
    """The files of a ``source`` in one text, as it was written before files stood in a list: a comma and a blank part
    them."""
    return source.split(", ")


def unit_of_axis(wavelengths: object, unit: str | None, where: str) -> tuple[str, tuple[str, ...]]:
    """The unit of wavelengths as it is given, else as they say themselves (the name of a pandas Index or Series, the
    attributes of an xarray.DataArray), else nm; and notes on what they say."""
    if unit is not None:
        return unit, ()
    if not isinstance(getattr(wavelengths, "name", None), str) and not getattr(wavelengths, "attrs", None):
        return "nm", ()
    from geonode.data.named_axis import axis_of_values, unit_of  # readers stand on this module

    found, note = unit_of(axis_of_values(wavelengths, where), np.asarray(wavelengths, dtype=np.float64), where)
    return found, (note,) if note else ()


def picked(length: int, index: ArrayLike | slice) -> NDArray[np.intp]:
    """Positions that an index of any kind selects; an empty list selects none."""
    if not isinstance(index, slice):
        index = np.asarray(index)
        index = index.astype(np.intp) if index.size == 0 else index
    try:
        return np.atleast_1d(np.arange(length)[index])
    except IndexError as error:
        raise InputError(f"the selection does not fit {length} entries ({error}).") from None


def label_samples(names: Sequence[str] | None, c: Floats, where: str) -> list[str]:
    if names is None:
        seen: dict[str, int] = {}
        labels = []
        for row in c:
            level = format_level(row)
            seen[level] = seen.get(level, -1) + 1
            labels.append(level if seen[level] == 0 else f"{level} replicate {seen[level]}")
        return labels
    if len(names) != len(c):
        raise InputError(f"{where}: {len(c)} spectra but {len(names)} names; give one for each spectrum.")
    return [str(name) for name in names]


def as_mask(mask: ArrayLike | None, spectra: ArrayLike, shape: tuple[int, ...], where: str) -> NDArray[np.bool_]:
    """``mask`` and that of ``spectra`` themselves, a numpy masked array, together."""
    result = np.zeros(shape, dtype=np.bool_) if mask is None else np.array(mask, dtype=np.bool_)
    if result.shape != shape:
        raise InputError(f"{where}: the mask has shape {result.shape}, the spectra {shape}.")
    return mask_of(spectra, shape, result)


def level_number(level: Any, levels: Floats, where: str) -> int:
    """The number of one of ``levels`` ``[n, D]``, from 0; a negative one counts from the end.

    Raises:
        InputError: no whole number, such as a concentration, or none of theirs.
    """
    last = len(levels) - 1
    try:
        number = None if isinstance(level, bool) else operator.index(level)
    except TypeError:
        number = None
    if number is not None and -last - 1 <= number <= last:
        return number % len(levels)
    said = f"there is no level {number}" if number is not None else f"{short(level)} is not the number of a level"
    try:
        same = np.flatnonzero((levels == np.array(level, dtype=np.float64)).all(axis=1))
    except (TypeError, ValueError):
        same = np.zeros(0, dtype=int)
    told = same.size == 1 and not isinstance(level, str | bool | np.bool_)
    meant = f"; the concentration {level} is level {same[0]}" if told else ""
    raise InputError(f"{where}: {said}; give the number of the level, 0 to {last}{meant}.")


def span(low: Any, high: Any) -> tuple[float, float]:
    """The ends of a range of wavelengths.

    Raises:
        InputError: what is no number.
    """
    return as_number(low, "the lower end of a range of wavelengths"), as_number(high, "its upper end")


def as_groups(groups: Sequence[Any] | NDArray[Any], n: int, where: str) -> NDArray[Any]:
    result = np.array(groups)
    if result.shape != (n,) or result.dtype.kind not in "iuUS":
        raise InputError(f"{where}: groups must be {n} whole numbers or strings, one for each spectrum.")
    return result


def name_analytes(analytes: Sequence[str] | None, dim: int, where: str) -> tuple[str, ...]:
    if analytes is None:
        return (DEFAULT_ANALYTE,) if dim == 1 else tuple(f"analyte {i + 1}" for i in range(dim))
    result = (analytes,) if isinstance(analytes, str) else tuple(str(name) for name in analytes)
    if len(result) != dim or len(set(result)) != dim:
        raise InputError(f"{where}: {dim} analyte(s) need {dim} distinct name(s), got {list(result)}.")
    return result
