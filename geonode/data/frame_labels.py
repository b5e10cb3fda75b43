"""What stands beside the spectra in the rows of a DataFrame: names of samples, factors of dilution, temperatures.

A file with such columns is read (:mod:`geonode.data.readers.spectratable`), and so is a DataFrame of the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from geonode.data.checks import Floats
from geonode.data.readers import units
from geonode.data.readers.dilutions import is_dilution

_FEWEST_WAVELENGTHS = 3


@dataclass(frozen=True)
class Beside:
    """Columns that are no spectra.

    Attributes:
        names: ``k`` names of the samples; none where no column names them. cells: ``k`` times column → cell.
        notes: on columns of numbers that were left out.
    """

    names: tuple[str, ...] = ()
    cells: tuple[dict[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def numbers_of(labels: Sequence[Any]) -> Floats | None:
    """Labels that are all numbers, or texts of numbers, as numbers; else None."""
    try:
        return np.array([float(label) for label in labels], dtype=np.float64)
    except (TypeError, ValueError):
        return None


def wavelengths_across(columns: Sequence[Any]) -> bool:
    """Whether those columns that are numbers are headed by wavelengths."""
    across = numbers_of([column for column in columns if numbers_of([column]) is not None])
    return across is not None and len(across) >= _FEWEST_WAVELENGTHS and units.is_plausible(across)


def without_labels(frame: Any, name: str) -> tuple[Any, Beside]:
    """The frame ``name`` without the columns that are headed by words, where the others are headed by wavelengths, and
    what those columns say; the frame as it is where they are not."""
    words = [column for column in frame.columns if numbers_of([column]) is None]
    if not words or not wavelengths_across(frame.columns):
        return frame, Beside()
    cells = tuple({str(column): _cell(row[column]) for column in words} for _, row in frame[words].iterrows())
    naming = [str(column) for column in words if numbers_of(frame[column]) is None and not is_dilution(str(column))]
    notes = [
        f"column '{column}' of {name} left out: it is headed by no wavelength"
        for column in map(str, words)
        if column not in naming and not is_dilution(column)
    ]
    names = tuple(" ".join(one[column] for column in naming) for one in cells) if naming else ()
    return frame.drop(columns=words), Beside(names, cells, tuple(notes))


def _cell(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
