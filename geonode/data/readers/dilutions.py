"""A factor of dilution beside a concentration: whose concentration it is, before or after, is asked and never assumed.

In many a note ``concentration`` is what was pipetted and ``dilution factor`` what was done to it; in as many others the
concentration is that in the cuvette, and the factor tells how it was made. Both look alike, and the answers differ by
the factor. A table whose numbers themselves show which it is, concentration × factor being one stock throughout, is
taken as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from geonode_runtime.wording import argument

_DILUTION = re.compile(
    r"(?<![^\W_])(dil(ut(ions?|ed|ion))?|verd(ü|ue)nn(ung(en|s)?|t)?([^\W_]*faktor)?|vf|df|[\dnx]*[\s-]?(fold|fach))(?![^\W_])",
    re.I,
)
_STOCK = re.compile(r"stock|stamm|(?<![^\W_])(initial|undiluted|unverd(ü|ue)nnt)(?![^\W_])", re.I)
_RATIO = re.compile(r"(\d+(?:[.,]\d+)?)\s*([:/+])\s*(\d+(?:[.,]\d+)?)")
_ALIKE = 0.01
"""Relative; products of what is written to three figures agree so well."""

Number = Callable[[str], float | None]
"""How a number is read."""


def number_in(cell: str) -> float | None:
    """A number as a cell has it, with a decimal point or a decimal comma; None where it is none."""
    try:
        return float(cell.replace(",", "."))
    except ValueError:
        return None


def is_dilution(column: str) -> bool:
    """Whether a column's name says that it tells a dilution: ``dilution factor``, ``Verdünnung``, ``DF``, ``fold``."""
    return bool(_DILUTION.search(column)) and not re.search(r"conc|konz", column, re.I)


def factor(cell: str, number: Number) -> float | None:
    """The factor of a cell, ``5``, ``5x``, ``1:5``, ``1/5`` or ``1+4``; None where it tells none."""
    cell = cell.strip()
    match = _RATIO.fullmatch(cell)
    if match:
        part, rest = (float(match[k].replace(",", ".")) for k in (1, 3))
        found = None if not part else (part + rest) / part if match[2] == "+" else rest / part
    else:
        found = number(cell.removesuffix("x").removesuffix("×").removesuffix("-fold").strip())
    return found if found is not None and found > 0.0 else None


def tells_dilutions(column: str, cells: Sequence[str], number: Number) -> bool:
    """Whether a column is called a dilution and holds nothing but factors."""
    return is_dilution(column) and all(factor(cell, number) is not None for cell in cells)


def untold_dilution(
    concentration: str,
    values: Sequence[float | None],
    others: Mapping[str, Sequence[str]],
    number: Number,
    named: bool = False,
    chosen: bool = True,
) -> str:
    """Why a concentration beside a factor of dilution cannot be told, with the remedy of either reading; empty where it
    can: nothing was diluted, or the products are one stock.

    Args:
        concentration: the name of its column. values: its numbers, None for an unknown.
        others: the cells of every other column, by name. number: how a number is read.
        named: whoever reads named the column: one whose numbers differ is then taken as it stands.
        chosen: whether the column can be named at all, as one of a file can.
    """
    rows = [k for k, value in enumerate(values) if value]
    constant = len({values[k] for k in rows}) == 1
    for name, cells in others.items():
        told = [factor(cells[k], number) for k in rows] if is_dilution(name) else []
        factors = [one for one in told if one is not None]
        if not factors or len(factors) < len(told) or set(factors) == {1.0}:
            continue
        series = len(set(factors)) > 1
        if named and not (constant and series):
            continue
        stock = bool(_STOCK.search(concentration)) or (constant and series)
        products = [float(values[k] or 0.0) * one for k, one in zip(rows, factors, strict=True)]
        if series and not stock and max(products) - min(products) <= _ALIKE * max(products):
            continue  # one stock, and what each dilution left of it
        return _which(concentration, name, [cells[k] for k in rows], factors, stock, constant, chosen)
    return ""


def _which(
    concentration: str,
    name: str,
    cells: Sequence[str],
    factors: Sequence[float],
    stock: bool,
    constant: bool,
    chosen: bool,
) -> str:
    shown = _shown(cells)
    sign = "×" if max(factors) <= 1.0 else "÷"
    divided = f"a column of concentrations '{concentration}' {sign} '{name}' in place of both"
    if stock:
        why = "is the same in every row" if constant else "is that of a stock"
        return (
            f"the column '{name}' ({shown}) tells a dilution, and '{concentration}' {why}, so that it is no "
            f"concentration in the cuvette; give {divided}."
        )
    choice = f" or say {argument('column', concentration)}" if chosen else ""
    return (
        f"the column '{name}' ({shown}) tells a dilution, and nothing says whether '{concentration}' is before it or "
        f"after; if it is that in the cuvette, take '{name}' out{choice}; if it is that of a stock, give {divided}."
    )


def unused_dilutions(beside: Sequence[Mapping[str, str]], number: Number) -> list[str]:
    """What to say of factors of dilution that stand ``beside`` the spectra of one unknown, the cells of each by column:
    they are not used. Nothing of columns in which nothing was diluted."""
    said = []
    for column in dict.fromkeys(name for one in beside for name in one if is_dilution(name)):
        cells = [one[column] for one in beside if column in one]
        factors = [one for cell in cells if (one := factor(cell, number)) not in (None, 1.0)]
        if factors:
            said.append(
                f"the column '{column}' ({_shown(cells)}) tells a dilution and was not used: only a factor that is "
                f"said ({argument('dilution', f'{factors[0]:g}', literal=True)}) is undone in the result"
            )
    return said


def _shown(cells: Sequence[str]) -> str:
    different = list(dict.fromkeys(cells))
    return ", ".join(different[:4]) + (" …" if len(different) > 4 else "")
