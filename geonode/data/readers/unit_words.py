"""Which words are units of concentration. Any other may be given too: it is a label, which stands beside every number
as it was written, and nothing is converted to it or from it."""

from __future__ import annotations

import re

from geonode.data.readers.names import is_unit

_LITRE = r"(?:[µμumdc]?[Ll]|[mcd]?m[3³]|cc)"
_MASS = r"(?:[nµμumk]?g)"
_COUNT = r"(?:cells?|particles?|copies|cfu|pfu|beads?|molecules?|NPs?)"
_AMOUNT = rf"(?:{_MASS}|[pfa]g|[pnµμum]?mol|[pnµμumk]?I?U|[mµμun]?[Ee]q|[nµμum]?kat|{_COUNT}|{_LITRE})"
_RATIO = re.compile(rf"{_AMOUNT}\s*(?:/| per )\s*(?:10{{1,3}}\s*)?(?:{_LITRE}|{_MASS}|[mk]?mol)", re.I)
_POWER = re.compile(rf"{_AMOUNT}[ _·.]*(?:{_LITRE}|{_MASS})(?:-1|⁻¹|\^-1)", re.I)
_PERCENT = re.compile(r"(?:wt|vol|v|w|m|mol|at)?\.?[ -]?%|%\s*\(?(?:[wvm]/[wvm])\)?|[wvm]/[wvm]\s*%?|‰", re.I)
_WORDS = {
    "m", "fm", "am", "ppq", "pptv", "ppbv", "ppmv", "ph", "pka", "poh", "mol", "od", "ntu", "fnu", "fau", "°bx", "brix",
    "°p", "n", "meq", "molar", "mm", "um", "nm", "equiv", "equiv.", "eq", "eq.", "x", "fold", "°c", "k", "psu", "°dh",
    "°fh", "mol%", "a.u.", "arb. u.", "u", "iu", "g", "mg", "µg", "s", "min", "h", "d", "cells", "relative", "1",
}  # fmt: skip
_NAMED = "M, mM, µM, nM, mg/L, µg/mL, ng/µL, %, ppm, ppb, IU/mL, pH"


def is_concentration(unit: str) -> bool:
    """Whether ``unit`` is one of those that concentrations, and what stands in their place, are given in."""
    word = unit.strip()
    return is_unit(word) or word.lower() in _WORDS or any(one.fullmatch(word) for one in (_RATIO, _POWER, _PERCENT))


def label_notes(unit: str) -> list[str]:
    """What to tell of a unit, or of one for each analyte with commas between, that nothing is known of."""
    labels = [one.strip() for one in unit.split(",") if one.strip() and not is_concentration(one)]
    return [
        f"'{one}' is no unit of concentration that is known (such as {_NAMED}); it was taken as a label: nothing is "
        "converted to it or from it"
        for one in labels
    ]


def beside_label(text: str, label: str) -> float | None:
    """The number of ``5 drops``, ``5 (drops)``, ``pH 5`` or ``pH=5`` where the label is that; None of anything else.

    A comma before three digits may part thousands, so that such a number is none here.
    """
    word = re.escape(label.strip())
    number = r"(?P<{}>[-+]?(?:\d+\.?\d*|\.\d+|\d+,(?!\d{{3}}(?!\d))\d+|0,\d+)(?:[eE][-+]?\d{{1,3}})?)"
    before, behind = number.format("before"), number.format("behind")
    match = re.fullmatch(rf"\s*(?:{before}[\s_]*[(\[]?{word}[)\]]?|{word}[\s_]*=?[\s_]*{behind})\s*", text)
    return float((match["before"] or match["behind"]).replace(",", ".")) if match else None
