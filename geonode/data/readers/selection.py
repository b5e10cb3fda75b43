"""Which spectra of a file are meant: ``DMSA``, ``H148G & pH=7.4``, ``anisaldehyde, solvent_ethanol``."""

from __future__ import annotations

import re

from geonode.data.readers.concentrations import listing
from geonode.data.readers.joining import is_well, normalise
from geonode.data.readers.recording import Recording, Trace
from geonode.errors import ReaderError
from geonode_runtime.wording import argument

Found = list[tuple[Recording, Trace]]


def select_traces(found: Found, select: str | None, where: str) -> Found:
    """The traces that a selection means.

    ``select`` is a name, a part of the name or series (upper and lower case alike; a whole name wins, so that ``A1`` is
    not ``A10`` too, and as it is written, so that ``A1`` is ``A01`` only where there is no ``A1``), or ``column=value``
    of what the file or a table of concentrations says of the sample. ``&`` joins conditions that all must hold, a comma
    those of which one must. A name that itself holds such a sign is found as it stands.

    Raises:
        ReaderError: nothing is selected.
    """
    if select is None:
        return found
    chosen = _called(found, select)
    chosen = chosen or [(r, t) for r, t in found if select.casefold() in t.name.casefold()]
    if chosen:
        return chosen
    wanted = alternatives(select)
    exact = {term: {id(t) for _, t in _called(found, term)} for terms in wanted for term in terms}
    chosen = [(r, t) for r, t in found if any(all(_matches(t, term, exact) for term in terms) for terms in wanted)]
    if not chosen:
        columns = sorted({name for _, trace in found for name in trace.attributes})
        by = f"; columns to select by, as column=value, are {listing(columns)}" if columns else ""
        raise ReaderError(
            f"{where}: no spectrum is named like '{select}'; there are {listing(t.name for _, t in found)}{by}."
        )
    return chosen


def said_of_selection(found: Found, select: str | None, of_all: int) -> list[str]:
    """What a selection took of ``of_all`` spectra, where it is not the whole name, as written, of what it took."""
    if select is None or all(_is_named(trace, select) for _, trace in found):
        return []
    taken = listing((trace.name for _, trace in found), 4)
    return [f"{argument('select', select)} took {len(found)} of {of_all} spectra: {taken}"]


def alternatives(select: str) -> list[list[str]]:
    """Terms of each alternative."""
    parts = [[term.strip() for term in part.split("&") if term.strip()] for part in select.split(",")]
    return [terms for terms in parts if terms]


def narrowed(select: str | None, term: str) -> str:
    """A selection within which one more condition holds, as an example to write: ``pH=7.4 & H148G``."""
    return ", ".join(" & ".join([*terms, term]) for terms in alternatives(select or "") or [[]])


def _called(found: Found, name: str) -> Found:
    """Those of exactly this name; where there is none, those whose name, or well, is the same but for a zero before its
    number and blanks."""
    named = [(r, t) for r, t in found if _is_named(t, name)]
    return named or [(r, t) for r, t in found if _is_called(t, name)]


def _is_named(trace: Trace, name: str) -> bool:
    return trace.name.strip().casefold() == name.strip().casefold()


def _is_called(trace: Trace, name: str) -> bool:
    """Whether a spectrum has exactly this name, or stands in this well."""
    return normalise(name) in {normalise(trace.name), *(normalise(key) for key in trace.keys if is_well(key))}


def _matches(trace: Trace, term: str, exact: dict[str, set[int]]) -> bool:
    column, sign, value = term.partition("=")
    if sign:
        for name, cell in trace.attributes.items():
            if name.casefold() == column.strip().casefold():
                return cell.casefold() == value.strip().casefold() or _same_number(cell, value)
        return False
    if exact.get(term):
        return id(trace) in exact[term]
    return term.casefold() in trace.name.casefold() or term.casefold() in trace.series.casefold()


def _same_number(a: str, b: str) -> bool:
    number = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?\s*")
    return bool(number.fullmatch(a) and number.fullmatch(b)) and float(a) == float(b)
