"""How spectra whose names almost say their concentration are to be called: the remedy in the names that are there."""

from __future__ import annotations

import re
from collections.abc import Sequence

from geonode.data.readers import text

_REPLICATE = re.compile(r"(\d+(?:[.,]\d+)?)(?:[ _\-](\d{1,2})|[ _\-]?([A-Za-z]))")
_BLANK = re.compile(r"(blank|blind|leer|blanc|blanco|bianco)(wert|probe)?s?[\s_\-]*\d*", re.I)


def how_to_head_replicates(names: Sequence[str]) -> str:
    """What to call columns such as ``0A, 0B, 2A, 2B`` or ``0_1, 0_2``; empty of names that are not all so."""
    found = [_REPLICATE.fullmatch(name.strip()) for name in names]
    levels = [match[1].replace(",", ".") for match in found if match]
    again = next((k for k, level in enumerate(levels) if level in levels[:k]), None)
    if len(levels) < len(names) or again is None or len(set(levels)) < 2:
        return ""
    first, level = levels.index(levels[again]), levels[again]
    pointed = level if "." in level else f"{level}.0"
    return (
        f"if '{names[first]}' and '{names[again]}' are replicates of {level}, head them '{pointed}.1' and "
        f"'{pointed}.2', and so all of them; or "
    )


def how_to_call_blanks(without: Sequence[str], unit: str) -> str:
    """What to call spectra that are named as blanks among others whose names say a concentration; else empty."""
    if not without or not all(_BLANK.fullmatch(name.strip()) for name in without):
        return ""
    zero = f"0 {unit}".rstrip()
    return f"if '{text.shorten(without[0])}' is a standard without the analyte, call it '{zero}'; else "


def parts_of_names(keys: Sequence[str], names: Sequence[str]) -> tuple[str, list[str]]:
    """The first key that two names or more only go on from, ``Std1`` of ``Std1A`` and ``Std1B``, with these names; an
    empty one where most names go on from none."""
    cells = [key for one in keys if (key := one.strip())]
    going_on = {
        key: [name for name in names if re.fullmatch(re.escape(key) + r"[\s_\-.]?([A-Za-z]|\(?\d{1,2}\)?)", name, re.I)]
        for key in cells
    }
    if 2 * len({name for several in going_on.values() for name in several}) < len(names):
        return "", []
    return next(((key, several) for key, several in going_on.items() if len(several) > 1), ("", []))
