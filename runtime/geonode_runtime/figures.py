"""How a number is written for a reader: a few significant digits, and "0" where it is nothing beside its neighbours."""

from __future__ import annotations

import math

DIGITS = 4
"""Of concentrations in answers."""
_LARGE = 1e7
"""From here on numbers are written with a power of ten."""


def figure(value: float, unit: str = "", *, beside: float = 0.0, digits: int = DIGITS) -> str:
    """``value`` with ``digits`` significant digits, and ``unit`` as it is behind it.

    Args:
        beside: the largest number that it stands beside (the ends of its interval). What lies below half of that one's
            third digit is written as 0: of an estimate of 5.5e-06 in an interval from 0 to 0.31 nothing is known but
            that it is nothing.
    """
    if math.isfinite(beside) and beside != 0.0:
        third = 10.0 ** (math.floor(math.log10(abs(beside))) - 2)
        value = 0.0 if abs(value) < 0.5 * third else value
    text = f"{value + 0.0:.{digits}g}"  # + 0.0: no minus before a zero
    if "e+" in text and abs(value) < _LARGE:
        text = f"{float(text):.0f}"
    return text + unit
