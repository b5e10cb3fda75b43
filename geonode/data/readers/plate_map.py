"""Plate maps: concentrations laid out as the wells are, 8 × 12 or 16 × 24, or the part of a plate that was used.

    conc / µM   1     2     3
    A           0     0     0
    B           2.5   2.5
    C           10    10    unknown

Rows are lettered and columns numbered; a full plate of numbers needs neither. The unit stands in the corner, in a line
above, or in the cells. An empty cell is a well that was not used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from geonode.data.readers import names
from geonode.data.readers.dialect import Dialect

PLATES = ((4, 6), (8, 12), (16, 24), (32, 48))
"""Rows and columns of the plates that are sold."""
WELL, CONCENTRATION = "well", "concentration"
LETTERS = [*"ABCDEFGHIJKLMNOPQRSTUVWXYZ", *(f"A{letter}" for letter in "ABCDEF")]
"""What the rows of a plate are called."""

Line = tuple[int, list[str]]


@dataclass(frozen=True)
class PlateMap:
    """A map of a plate.

    Attributes:
        rows: ``well`` and ``concentration`` of each well that is not empty. lines: where each stands.
        unit: as the corner or a line above says it; empty where none does.
    """

    rows: list[dict[str, str]]
    lines: list[int]
    unit: str


def plate_map(lines: Sequence[tuple[int, str]], dialect: Dialect) -> PlateMap | None:
    """The map that a text is; None where it is none.

    Args:
        lines: number and text of each line that is not empty, marks of comment taken off.
        dialect: how its cells are parted.
    """
    split = [(number, dialect.split(line)) for number, line in lines]
    found = _labelled(split) or _bare(split, dialect)
    if found is None:
        return None
    words, columns, grid = found
    rows, places = [], []
    for letter, (number, cells) in grid:
        for column, cell in zip(columns, cells, strict=False):
            if cell:
                rows.append({WELL: f"{letter}{column}", CONCENTRATION: cell})
                places.append(number)
    unit = next((unit for word in words for unit in names.units_in(word)), "")
    return PlateMap(rows, places, unit) if rows else None


def _labelled(split: list[Line]) -> tuple[list[str], list[int], list[tuple[str, Line]]] | None:
    """A line of column numbers and lettered rows below it, all in order; and the words in its corner and above."""
    for first, (_, cells) in enumerate(split):
        body = split[first + 1 :]
        # where blanks part the cells an empty corner leaves no trace
        without_corner = bool(body) and len(body[0][1]) == len(cells) + 1
        columns = _numbers(cells if without_corner else cells[1:])
        if not columns:
            continue
        letters = [row[0].strip().upper() for _, row in body]
        known = bool(letters) and all(letter in LETTERS for letter in letters)
        ordered = known and letters == sorted(set(letters), key=LETTERS.index)
        if not ordered or any(any(row[len(columns) + 1 :]) for _, row in body):
            return None
        words = [cell for _, above in split[:first] for cell in above]
        grid = [(letter, (number, row[1:])) for letter, (number, row) in zip(letters, body, strict=True)]
        return [*([] if without_corner else cells[:1]), *words], columns, grid
    return None


def _bare(split: list[Line], dialect: Dialect) -> tuple[list[str], list[int], list[tuple[str, Line]]] | None:
    """A full plate of cells without letters and numbers; and the words in lines of one cell above it."""
    first = next((k for k, (_, cells) in enumerate(split) if len(cells) > 1), len(split))
    body = split[first:]
    height, width = len(body), max((len(cells) for _, cells in body), default=0)
    if (height, width) not in PLATES:
        return None
    cells = [cell for _, row in body for cell in row if not names.is_unknown(cell)]
    if not all(dialect.number(cell) is not None or names.quantity_in(cell) is not None for cell in cells):
        return None
    words = [cell for _, above in split[:first] for cell in above]
    return words, list(range(1, width + 1)), list(zip(LETTERS[:height], body, strict=True))


def _numbers(cells: Sequence[str]) -> list[int]:
    """Numbers of columns, one after the other; empty where the cells are none."""
    named = [cell.strip() for cell in cells]
    while named and not named[-1]:
        named.pop()
    if len(named) < 2 or not all(re.fullmatch(r"\d{1,2}", cell) for cell in named):
        return []
    numbers = [int(cell) for cell in named]
    in_order = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    return numbers if in_order and numbers[0] >= 1 and numbers[-1] <= PLATES[-1][1] else []
