"""Amounts as people write them on a command line, and in words what was understood: 2%, 1:5, 1+4."""

from __future__ import annotations

import re

import numpy as np

from geonode.errors import InputError
from geonode_runtime.figures import figure

_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?"
WHOLE = 100.0
"""Percent of a concentration from which on nothing is known of it."""
_RATIO = re.compile(rf"({_NUMBER})\s*([:/+])\s*({_NUMBER})")


def dilution_factor(text: str) -> tuple[float, str]:
    """The factor by which a sample was diluted, and what was understood, in words; no words where it was not diluted.

    ``5`` and ``1:5`` are five volumes of one, and so is ``1+4``, one volume and four of the solvent.

    Raises:
        InputError: no such amount.
    """
    match = _RATIO.fullmatch(text.strip())
    if match:
        part, rest = float(match[1]), float(match[3])
        if part == 0.0:
            raise InputError(f"--dilution {text}: nothing of the sample; write 1:5, 1+4 or 5.")
        factor = (part + rest) / part if match[2] == "+" else rest / part
    else:
        factor = _number(text, "--dilution", "write 5, 1:5 or 1+4 for one volume in five")
    if factor == 1.0:
        return factor, ""
    said = f"dilution {text.strip()}: results are {factor:.6g} times what is in the cuvette"
    if 0.0 < factor < 1.0:
        inverse = figure(1 / factor)
        said += f", as of a sample concentrated {inverse}-fold; one diluted so is --dilution 1:{inverse}"
    return factor, said


def factor_uncertainty(text: str, factor: float) -> float:
    """The standard uncertainty of a factor, from ``0.1`` (its scale) or ``2%`` (of it).

    Raises:
        InputError: no such amount.
    """
    value = _number(text.strip().removesuffix("%"), "--dilution-std", "write 0.1 or 2%")
    return factor * value / 100.0 if text.strip().endswith("%") else value


def standard_uncertainty(text: str, levels: np.ndarray) -> np.ndarray:
    """``[n]`` standard uncertainty of each level from "0.5" (same for all) or "2%" (of each level's size).

    Raises:
        InputError: no such amount.
    """
    value = _number(text.strip().removesuffix("%"), "--standard-uncertainty", "write 0.5 or 2%", text)
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


def _number(text: str, option: str, remedy: str, whole: str = "") -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{option} {whole or text} is no number; {remedy}.") from None
