"""Which words are units of concentration: any may be given, one that nobody uses is told."""

from __future__ import annotations

import re

from geonode.data.readers.names import is_unit

_LITRE = r"(?:[µμumdc]?[Ll]|[mcd]?m[3³]|cc)"
_MASS = r"(?:[nµμumk]?g)"
_COUNT = r"(?:cells?|particles?|copies|cfu|pfu|beads?|molecules?|NPs?)"
_AMOUNT = rf"(?:{_MASS}|[pfa]g|[pnµμum]?mol|[pnµμumk]?I?U|[mµμun]?[Ee]q|[nµμum]?kat|{_COUNT}|{_LITRE})"
_RATIO = re.compile(rf"{_AMOUNT}\s*(?:/| per )\s*(?:{_LITRE}|{_MASS}|[mk]?mol)", re.I)
_POWER = re.compile(rf"{_AMOUNT}[ _·.]*(?:{_LITRE}|{_MASS})(?:-1|⁻¹|\^-1)", re.I)
_PERCENT = re.compile(r"(?:wt|vol|v|w|m|mol|at)?\.?[ -]?%|%\s*\(?(?:[wvm]/[wvm])\)?|[wvm]/[wvm]\s*%?|‰", re.I)
_WORDS = {
    "m", "fm", "am", "ppq", "pptv", "ppbv", "ppmv", "ph", "pka", "poh", "mol", "od", "ntu", "fnu", "fau", "°bx", "brix",
    "°p", "n", "meq", "molar", "mm", "um", "nm", "equiv", "equiv.", "eq", "eq.", "x", "fold", "°c", "k", "psu", "°dh",
    "°fh", "mol%", "a.u.", "arb. u.", "u", "iu", "g", "mg", "µg", "s", "min", "h", "d", "cells",
}  # fmt: skip
_NAMED = "M, mM, µM, nM, mg/L, µg/mL, ng/µL, %, ppm, ppb, IU/mL, pH"


def is_concentration(unit: str) -> bool:
    """Whether ``unit`` is one of those that concentrations, and what stands in their place, are given in."""
    word = unit.strip()
    return is_unit(word) or word.lower() in _WORDS or any(one.fullmatch(word) for one in (_RATIO, _POWER, _PERCENT))


def unknown_unit(unit: str) -> str:
    """What to tell of another."""
    return f"'{unit}' is no unit of concentration that is known (such as {_NAMED}); it was taken as it is written"
