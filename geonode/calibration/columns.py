"""Wavelengths that tables bring along: the columns of a DataFrame, the coordinate of a DataArray.

scikit-learn compares the names of columns only where they are text. Spectra exported from long to short wavelengths, or
of another grid, would otherwise be taken as they come.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from geonode.data.given import numbers_of
from geonode.errors import InputError

_SAME = 1e-6
"""Relative difference of two wavelengths that files write alike."""


def wavelengths_of(X: Any) -> np.ndarray | None:
    """``[W]`` numbers that name the columns of a DataFrame or the last dimension of a DataArray, as numbers or as text
    (``pandas.read_csv`` gives text); None without.

    0, 1, …, W − 1 are no wavelengths but what pandas calls columns to which nobody gave names.
    """
    if hasattr(X, "dims") and hasattr(X, "coords"):  # xarray
        named = X.coords[X.dims[-1]].values if X.dims[-1] in X.coords else None
    else:
        named = getattr(X, "columns", None)
    if named is None:
        return None
    values = np.asarray(named)
    if values.dtype == object and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
        values = values.astype(float)  # what pandas makes of a mixture of integers and floats
    values = _numbers_of_text(values)
    if values.ndim != 1 or values.dtype.kind not in "iuf" or np.array_equal(values, np.arange(len(values))):
        return None
    return values.astype(float)


def _numbers_of_text(values: np.ndarray) -> np.ndarray:
    """Texts that are all finite numbers as these numbers; anything else as it is."""
    if values.ndim != 1 or not values.size or not all(isinstance(v, str) for v in values):
        return values
    numbers = numbers_of(values.tolist())
    return values if numbers is None or not np.isfinite(numbers).all() else numbers


def in_order_of(expected: np.ndarray | None, X: Any) -> Any:
    """``X`` with its columns in the order of the wavelengths ``expected [W]``; as it is where either has none.

    Raises:
        InputError: other wavelengths than those.
    """
    found = wavelengths_of(X)
    if expected is None or found is None:
        return X
    if len(found) != len(expected):
        raise InputError(
            f"the spectra have {len(found)} wavelengths, {_range(found)}, and the standards {len(expected)}, "
            f"{_range(expected)}; give those of the standards, or interpolate to them."
        )
    order = np.argsort(found, kind="stable")[np.argsort(np.argsort(expected, kind="stable"), kind="stable")]
    far = np.abs(found[order] - expected) > _SAME * np.abs(expected).max()
    if far.any():
        first = int(np.argmax(far))
        raise InputError(
            f"the spectra's wavelengths, {_range(found)}, are not those of the standards, {_range(expected)}: "
            f"{expected[first]:g} is missing; interpolate the spectra to the standards' wavelengths."
        )
    values = np.asarray(X)
    return values[..., order]


def _range(values: np.ndarray) -> str:
    return f"{values.min():g} to {values.max():g}"
