"""Columns of a table that say which spectrum a row is and nothing about its sample: replicate numbers, places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from geonode.data.readers import units
from geonode.data.readers.concentration_table import called_something_else
from geonode.data.readers.joining import is_well

_REPLICATE = re.compile(
    r"((bio(logical)?|tech(nical)?)\.?)?[ _-]*(repl?\.?|repli[ck]at\w*|duplicat\w*|triplicat\w*|wdh\.?|wiederholung\w*|"
    r"parallel\w*|répéti\w*|repetition\w*|r[eé]plica\w*|scan|run|messung|measurement|shot)"
    r"[ _-]*(no\.?|nr\.?|number|nummer|n°|#|id)?",
    re.I,
)
_SAMPLE = re.compile(
    r"(sample|spectrum|name|probe|spektrum|échantillon|muestra|campione|standard|std|well|file)s?"
    r"[ _-]*(no\.?|nr\.?|n°|number|nummer|id|#)?",
    re.I,
)
_PLACE = re.compile(
    r"(plate[ _-]?)?(row|col(umn)?|zeile|spalte|reihe|rang[ée]e|colonne|fila|columna|riga|colonna)[ _-]*\w*", re.I
)


def says_which(name: str, cells: Sequence[str], keys: Sequence[str]) -> bool:
    """Whether a column only says which of a sample's spectra a row is, or where on the plate it was.

    Args:
        name: of the column. cells: its cells. keys: the names of the spectra in the same rows.
    """
    if _REPLICATE.fullmatch(name.strip()):
        return True
    if not _PLACE.fullmatch(name.strip()) or not all(is_well(key) for key in keys):
        return False  # a column called Row may say anything, unless it repeats the wells' own letters or numbers
    parts = [re.fullmatch(r"([A-Z]{1,2})0*(\d+)", key.strip().upper()) for key in keys]
    return all(
        part is not None and cell.strip().upper().lstrip("0") in part.groups()
        for part, cell in zip(parts, cells, strict=True)
    )


def numbers_say_which(name: str, values: Iterable[float | None]) -> bool:
    """Whether a lone column of numbers before spectra in rows holds no concentrations: it is called as samples are, or
    another quantity, or is called nothing and counts, as the index that pandas writes.

    Args:
        name: of the column, empty for none. values: its numbers.
    """
    if name:
        return units.is_counter(name) or bool(_SAMPLE.fullmatch(name)) or called_something_else(name)
    return units.counts(np.array(list(values), dtype=np.float64))
