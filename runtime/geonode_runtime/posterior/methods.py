"""The ways from a spectrum to its concentration, and which of them answers."""

from __future__ import annotations

from geonode_runtime.errors import InputError
from geonode_runtime.wording import argument, either, stated

QUANTIFY_METHODS = ("posterior", "profile")
"""The posterior learned on simulated unknowns, and the likelihood of the curve."""


def check_method(method: str | None) -> None:
    """Refuse what is none of `QUANTIFY_METHODS`; None is the first that can answer.

    Raises:
        InputError: naming them.
    """
    if method is not None and method not in QUANTIFY_METHODS:
        raise InputError(f"{stated('method', method)} is not known; choose from {', '.join(QUANTIFY_METHODS)}.")


def chosen_method(method: str | None, unfit: str) -> tuple[str, tuple[str, ...]]:
    """The method that answers, and what must be said of that.

    Args:
        method: one of `QUANTIFY_METHODS`, None for the first that can answer.
        unfit: why the posterior cannot, empty where it can.

    Raises:
        InputError: no such method, or the posterior was asked for and cannot answer.
    """
    check_method(method)
    if not unfit:
        return method or "posterior", ()
    if method == "posterior":
        raise InputError(
            f"{argument('method', 'posterior')} cannot answer here: {unfit}; use {argument('method', 'profile')}."
        )
    if method is None:
        return "profile", (profile_instead(unfit),)
    return "profile", ()


def profile_instead(unfit: str) -> str:
    """What must be said where the profile answers because of ``unfit``."""
    way = either("--method profile", "method='profile'")  # of `quantify`, whichever command says it
    return f"answers are by the likelihood of the curve ({way}): {unfit}"
