"""Dilutions as people write them on a command line, and in words what was understood: 2%, 1:5, 1+4."""

from __future__ import annotations

import re

from geonode_runtime.answers import check_options
from geonode_runtime.errors import InputError
from geonode_runtime.figures import figure

_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?"
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
        factor = number(text, "--dilution", "write 5, 1:5 or 1+4 for one volume in five")
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
    value = number(text.strip().removesuffix("%"), "--dilution-std", "write 0.1 or 2%")
    return factor * value / 100.0 if text.strip().endswith("%") else value


def diluted(dilution: str, dilution_std: str, level: float) -> tuple[float, float, str]:
    """The factor of dilution, its standard uncertainty, and what was understood, in words; none where not diluted.

    Raises:
        InputError: no such amounts, or a factor, an uncertainty or a ``level`` out of range.
    """
    factor, understood = dilution_factor(dilution)
    factor_std = factor_uncertainty(dilution_std, factor)
    check_options(level, factor, factor_std)
    return factor, factor_std, understood


def number(text: str, option: str, remedy: str, whole: str = "") -> float:
    """``text`` as a number.

    Args:
        text: what was written for the ``option``. remedy: what to write. whole: of which ``text`` is a part.

    Raises:
        InputError: no number.
    """
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{option} {whole or text} is no number; {remedy}.") from None
