"""Numbers as they are given to a function: what is none is one sentence that names the argument."""

from __future__ import annotations

from typing import Any

import numpy as np

from geonode_runtime.errors import InputError

_LONGEST = 40


def as_numbers(value: Any, what: str) -> np.ndarray:
    """``value`` as float64, of any shape; a tensor of any device too.

    Args:
        what: the argument, as a sentence begins with it.

    Raises:
        InputError: text that is no number, None, complex numbers, rows of several lengths, or no array at all.
    """
    detach = getattr(value, "detach", None)
    if callable(detach):
        value = detach().cpu().numpy()  # pyright: ignore[reportAttributeAccessIssue]
    try:
        given = np.asarray(value)
        if np.iscomplexobj(given):
            raise InputError(f"{what} must be real numbers, and complex ones were given; give their real part.")
        missing = given.dtype == object and any(one is None for one in given.ravel())
        if not missing:
            return given.astype(np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
    raise InputError(f"{what} must be a number, or numbers in a list or an array, but {_short(value)} was given.")


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
        raise InputError(f"{what} must be one number, but {_short(value)} was given.")
    return float(found.ravel()[0])


def _short(value: Any) -> str:
    said = " ".join(repr(value).split())
    return said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"
