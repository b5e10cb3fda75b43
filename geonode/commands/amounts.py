"""Amounts as people write them on a command line, and in words what was understood: 2%, 15 µM."""

from __future__ import annotations

import numpy as np

from geonode.errors import InputError
from geonode_runtime.amounts import number
from geonode_runtime.figures import figure

WHOLE = 100.0
"""Percent of a concentration from which on nothing is known of it."""


def standard_uncertainty(text: str, levels: np.ndarray) -> np.ndarray:
    """``[n]`` standard uncertainty of each level from "0.5" (same for all) or "2%" (of each level's size).

    Raises:
        InputError: no such amount.
    """
    value = number(text.strip().removesuffix("%"), "--standard-uncertainty", "write 0.5 or 2%", text)
    share = text.strip().endswith("%")
    if not (np.isfinite(value) and value >= 0.0):
        raise InputError(f"--standard-uncertainty {text}: an uncertainty is no less than 0; write 0.5 or 2%.")
    if share and value >= WHOLE:
        raise InputError(
            f"--standard-uncertainty {text}: standards that are uncertain by all of what they are called tell nothing; "
            "write the standard uncertainty of one, such as 2%."
        )
    return np.abs(levels) * value / 100.0 if share else np.full(len(levels), value)


def concentration(text: str, option: str, unit: str) -> tuple[float, str]:
    """A concentration in the ``unit`` of the standards from ``15`` or ``15 µM``, and what was understood, in words; no
    words where the number was taken as it stands.

    Raises:
        InputError: no such amount, or a unit that does not convert to that of the standards.
    """
    from geonode.data.readers.names import is_unit, quantity_in, spelled, to_unit
    from geonode.data.readers.unit_words import beside_label

    try:
        return float(text), ""
    except ValueError:
        pass
    own = f"in {unit}, that of the standards" if unit else "without a unit: the standards state none"
    found = quantity_in(text.strip())
    if found is None and unit and (labelled := beside_label(text, unit)) is not None:
        return labelled, ""
    if found is None:
        point = " with a decimal point" if "," in text else ""
        raise InputError(
            f"{option} {text}: that is no concentration; give a number{point} {own}, such as {option} 1.5."
        )
    value, said = found
    moved = value if said == spelled(unit) else to_unit(value, said, spelled(unit)) if is_unit(unit) else None
    if moved is None:
        raise InputError(f"{option} {text}: {said} does not convert; give a number {own}.")
    return float(moved), "" if said == spelled(unit) else f"{option} {text} is {float(moved):g} {unit}"


def said_of_uncertainty(text: str, std: np.ndarray, unit: str) -> str:
    """What was understood by a standard uncertainty ``[n]``, in words."""
    unit = f" {unit}" if unit else ""
    if text.strip().endswith("%"):
        share = text.strip().removesuffix("%").strip()
        span = f"{figure(std.min())} to {figure(std.max(), unit)}"
        return f"standard uncertainty of the standards: {share} % of each, {span}"
    return (
        f"standard uncertainty of the standards: {figure(std.max(), unit)} for every level; for a share of each, write "
        f"{text.strip()}%"
    )
