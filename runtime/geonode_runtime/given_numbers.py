"""Numbers as they are given to a function: what is none is one sentence that names the argument."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from geonode_runtime.errors import InputError

_LONGEST = 40


def as_numbers(value: Any, what: str) -> np.ndarray:
    """``value`` as float64, of any shape; a tensor of any device too. NaN where numpy masks it.

    Args:
        what: the argument, as a sentence begins with it.

    Raises:
        InputError: text, None, complex numbers, true and false, rows of several lengths, or no array at all.
    """
    try:
        if not isinstance(value, str | bytes):
            found, given = floats_in(value, what)
            if given.dtype != object or not any(one is None for one in given.ravel()):
                return found
    except InputError:  # a ValueError too, and it says more
        raise
    except (TypeError, ValueError):
        pass
    raise InputError(f"{what} must be a number, or numbers in a list or an array, but {short(value)} was given.")


def floats_in(value: Any, what: str) -> tuple[np.ndarray, np.ndarray]:
    """``value`` as float64 of any shape, NaN where numpy masks it, and as the array that it was.

    Raises:
        InputError: complex numbers; true and false, which are a mask or a comparison and nothing measured.
        TypeError, ValueError: what else is no number.
    """
    detach = getattr(value, "detach", None)
    if callable(detach):
        value = detach().cpu().numpy()  # pyright: ignore[reportAttributeAccessIssue]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Warning: converting a masked element to nan", UserWarning)
        given = np.asarray(value)
    if np.iscomplexobj(given):
        raise InputError(f"{what} must be real numbers, and complex ones were given; give their real part.")
    if given.dtype.kind == "b":
        raise InputError(f"{what} must be numbers, and true or false was given; give what was measured.")
    found = np.array(given, dtype=np.float64)
    masked = masked_in(value)
    if masked is not None:
        found[masked] = np.nan
    return found, given


def masked_in(value: Any) -> np.ndarray | None:
    """Where numpy masks ``value``, a masked array or a list that holds one, in its shape; None of anything else."""
    if isinstance(value, np.ma.MaskedArray):
        return np.ma.getmaskarray(value)
    if not isinstance(value, list | tuple):
        return None
    parts = [masked_in(one) for one in value]
    if all(part is None for part in parts):
        return None
    rows = zip(parts, value, strict=True)
    return np.stack([np.zeros(np.shape(one), dtype=bool) if part is None else part for part, one in rows])


def mask_of(value: Any, shape: tuple[int, ...], mask: Any = None) -> np.ndarray:
    """``mask``, brought to ``shape``, and where numpy masks ``value`` besides; True where a value is unusable."""
    own = masked_in(value)
    found = np.zeros(shape, dtype=bool) | (False if mask is None else np.asarray(mask, dtype=bool))
    return found if own is None else found | own


def as_number(value: Any, what: str) -> float:
    """One number, as `as_numbers`.

    Raises:
        InputError: as there, or several.
    """
    try:
        found = as_numbers(value, what)
    except InputError:
        found = np.zeros(0)
    if found.size != 1:
        raise InputError(f"{what} must be one number, but {short(value)} was given.")
    return float(found.ravel()[0])


def short(value: Any) -> str:
    """``value`` as Python writes it, cut where it is long."""
    said = " ".join(repr(value).split())
    return said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"
