"""The ways from a spectrum to its concentration."""

from __future__ import annotations

from geonode.errors import InputError

QUANTIFY_METHODS = ("profile", "posterior")
"""The likelihood of the curve, and the posterior learned on simulated unknowns."""


def check_method(method: str) -> None:
    """Refuse what is none of `QUANTIFY_METHODS`.

    Raises:
        InputError: naming them.
    """
    if method not in QUANTIFY_METHODS:
        raise InputError(f"method={method!r} is not known; choose from {', '.join(QUANTIFY_METHODS)}.")
