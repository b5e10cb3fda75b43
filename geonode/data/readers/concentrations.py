"""Concentrations from tables beside the spectra: note files, sidecars, mappings, and columns of the file itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from geonode.data.readers import names, text
from geonode.data.readers.concentration_table import CALLED_SO, SPREAD, UNIT_COLUMN, ConcentrationTable, split_unit
from geonode.data.readers.dialect import Dialect
from geonode.data.readers.dilutions import is_dilution, tells_dilutions, untold_dilution
from geonode.data.readers.joining import Joined, join, normalise
from geonode.data.readers.naming import parts_of_names
from geonode.data.readers.recording import Recording, Trace
from geonode.data.readers.unused_columns import unused_columns
from geonode.data.readers.which_spectrum import says_which
from geonode.errors import ReaderError
from geonode_runtime.wording import argument


class NoEntryError(ReaderError):
    """A table or a mapping that lists none of a file's spectra."""


def apply_table(recording: Recording, found: ConcentrationTable, column: str | Sequence[str] | None = None) -> set[int]:
    """Set the concentrations of a recording's traces from a table, in place; what the table lacks becomes a note.

    Args:
        recording: what a file holds.
        found: the table.
        column: the column of the concentration, or one per analyte; by default the one that is called so, or the only
            one of numbers.

    Returns:
        The rows of the table that belong to a spectrum.

    Raises:
        NoEntryError: no column names the samples.
        ReaderError: no such column, several that may be meant, a name that fits several rows, a cell that is no number.
    """
    key, joined = _match_rows(recording.traces, found, column)
    columns = _concentration_columns(found, key, column)
    recording.untold = None
    recording.on_concentrations = []  # of those that the file itself says: the table replaces all of them
    if joined.positions:
        recording.on_concentrations.append(
            f"the spectra have no names: the numbers in '{key}' are taken for those of the columns"
        )
    rows = joined.entries
    listed = [row for row in rows if row is not None]
    others = [c for c in found.header if c != key and c not in columns]
    recording.on_concentrations += unused_columns(others)

    def cells(name: str) -> list[str]:
        return [found.rows[row].get(name, "") for row in listed]

    if len(columns) == 1:
        values = [found.value(row, columns[0]) for row in listed]
        beside = {c: cells(c) for c in others}
        if why := untold_dilution(columns[0], values, beside, found.dialect.number, named=column is not None):
            raise found.fail(why)
    known = [c for c in others if not tells_dilutions(c, cells(c), found.dialect.number)]  # how a level was made
    varying = [c for c in known if len(set(cells(c))) > 1 and not says_which(c, cells(c), cells(key))]
    numeric = [c for c in varying if all(_plain_or_unknown(found, row, c) for row in listed)]
    # words that several samples share tell series apart; those that differ in every row, such as a date, do not
    shared = [c for c in varying if len(set(cells(c))) < len(listed)]
    labels = [c for c in shared if c not in numeric and not UNIT_COLUMN.fullmatch(c)]
    missing = []
    for trace, row in zip(recording.traces, rows, strict=True):
        if row is None:
            missing.append(trace.name)
            trace.unknown = True
            continue
        set_values(trace, [found.value(row, c) for c in columns])
        trace.attributes.update({c: found.rows[row].get(c, "") for c in [*others, *columns]})
        trace.conditions = {c: v for c in numeric if (v := found.value(row, c, False)) is not None}
        trace.series = " ".join(found.rows[row].get(c, "") for c in labels)
    if missing:
        recording.without_entry = f"no entry in {found.path.name} for {listing(missing)}, left out of the standards"
    describe_source(recording, found, columns)
    return set(listed)


def _plain_or_unknown(found: ConcentrationTable, row: int, column: str) -> bool:
    cell = found.rows[row].get(column, "")
    return names.is_unknown(cell) or found.dialect.number(cell) is not None


def set_values(trace: Trace, values: Sequence[float | None]) -> None:
    """The concentration of a trace, or that it is unknown where one value is."""
    trace.doubt = ""
    if any(value is None for value in values):
        trace.unknown, trace.concentration = True, None
    elif values:
        trace.unknown, trace.concentration = False, tuple(float(value) for value in values if value is not None)


def describe_source(recording: Recording, found: ConcentrationTable, columns: Sequence[str]) -> None:
    """Where the concentrations of a recording come from, their unit and the names of the analytes."""
    named = f"{'column' if len(columns) == 1 else 'columns'} " + " and ".join(f"'{c}'" for c in columns)
    recording.concentrations_from = f"{found.path.name}, {'a map of the plate' if found.is_map else named}"
    recording.analytes = None if len(columns) == 1 and CALLED_SO.search(columns[0]) else tuple(columns)
    stated = [found.units.get(c, "") for c in columns]
    if any(stated):
        recording.concentration_unit = stated[0] if len(set(stated)) == 1 else ", ".join(u or "1" for u in stated)


def _match_rows(
    traces: Sequence[Trace], found: ConcentrationTable, wanted: str | Sequence[str] | None
) -> tuple[str, Joined]:
    """The column that names the samples, and each trace's row by it."""
    best: tuple[int, str, Joined] = (0, "", Joined([]))
    repeated = ""
    taken = {wanted} if isinstance(wanted, str) else set(wanted or ())
    for column in found.header:
        if column in taken or found.is_called_concentration(column):
            continue  # values, which may look like the numbers of samples
        cells = [row.get(column, "") for row in found.rows]
        normal = [one for cell in cells if (one := normalise(cell))]
        if len(set(normal)) != len(normal):
            repeated = repeated or _repeated(traces, cells, column, found)
            continue  # names that repeat are no names of samples
        joined = join(traces, cells)
        if joined.matched > best[0]:
            best = (joined.matched, column, joined)
    if not best[0]:
        sample = traces[0]
        if repeated:
            raise found.fail(repeated)
        for column in found.header:
            key, several = parts_of_names([row.get(column, "") for row in found.rows], [trace.name for trace in traces])
            if several:
                raise NoEntryError(
                    f"{found.path}: the column '{column}' has '{key}', and the spectra are {listing(several, 4)}; give "
                    "a row for each spectrum, by its name as it stands."
                )
        raise NoEntryError(
            f"{found.path}: no column with a distinct entry for each sample names the spectra; have one with their "
            f"names, such as '{text.shorten(sample.keys[0] if sample.keys else sample.name)}'."
        )
    _, column, joined = best
    if joined.doubts:
        name, entries = joined.doubts[0]
        raise found.fail(
            f"'{text.shorten(name)}' may be any of {listing(entries)} in the column '{column}'; have a column with the "
            "names of the spectra as they stand."
        )
    return column, joined


def _repeated(traces: Sequence[Trace], cells: list[str], column: str, found: ConcentrationTable) -> str:
    """What to say of a column that names the spectra, but one of them twice; empty of any other column."""
    first = {normalise(cell): k for k, cell in reversed(list(enumerate(cells)))}
    if not join(traces, [cell if first[normalise(cell)] == k else "" for k, cell in enumerate(cells)]).matched:
        return ""
    again = next(k for k, cell in enumerate(cells) if cell and first[normalise(cell)] != k)
    return (
        f"'{text.shorten(cells[again])}' stands twice in the column '{column}' (rows "
        f"{found.line(first[normalise(cells[again])])} and {found.line(again)}); leave one line for each spectrum."
    )


def _concentration_columns(found: ConcentrationTable, key: str, column: str | Sequence[str] | None) -> list[str]:
    if column is not None:
        wanted = [column] if isinstance(column, str) else list(column)
        named = []
        for name in wanted:
            own = name if name in found.header else split_unit(name)[0]  # as it stands in the file, unit and all
            if own not in found.header or own == key:
                raise found.fail(f"there is no column '{name}' of concentrations; there are {listing(found.header)}.")
            named.append(own)
        return named
    candidates = [c for c in found.header if c != key and not SPREAD.search(c)]
    numeric = [c for c in candidates if found.is_numeric(c)]
    called = [c for c in candidates if CALLED_SO.search(c)]
    called = [c for c in called if c in numeric] or called
    if len(called) == 1:
        return called
    if len(numeric) == 1 and found.may_be_concentration(numeric[0]):
        return numeric
    with_unit = [c for c in numeric if found.is_called_concentration(c)]
    if len(with_unit) == 1 and not called:
        return with_unit
    if len(numeric) == 1 and is_dilution(numeric[0]):
        own = numeric[0]
        raise found.fail(
            f"the only column of numbers is '{own}', and a dilution is no concentration; add a column of them: that of "
            f"the stock ÷ '{own}', or 1 ÷ '{own}', relative to the stock."
        )
    if len(numeric) == 1:
        raise found.fail(
            f"the only column of numbers is '{numeric[0]}', which is called something else than a concentration; name "
            f"it if it is what was varied ({argument('column', numeric[0])}), or add the concentrations."
        )
    if not numeric:
        raise found.fail("no column of numbers beside the names of the samples; add their concentrations.")
    raise found.fail(
        f"{len(numeric)} columns may be the concentration ({listing(numeric)}); name one, such as "
        f"{argument('column', numeric[0])}."
    )


def apply_columns(recording: Recording, column: str | Sequence[str]) -> None:
    """Set the concentrations from columns that stand in the file itself, beside the spectra, in place.

    Raises:
        ReaderError: the file has no such column, or a cell of it is no number.
    """
    wanted = [column] if isinstance(column, str) else list(column)
    there = list(dict.fromkeys(name for trace in recording.traces for name in trace.attributes))
    chosen = []
    for name in wanted:
        mine = [one for one in there if name.casefold() in (one.casefold(), split_unit(one)[0].casefold())]
        if len(mine) != 1:
            raise ReaderError(
                f"{recording.path}: a column '{name}' is named, but no table of concentrations, and the file itself "
                + (f"has the columns {listing(there)}" if there else "has no such column")
                + f"; name the table too ({argument('concentrations', 'NOTE', literal=True)})."
            )
        chosen.append(mine[0])
    rows = [dict(trace.attributes) for trace in recording.traces]
    marks = [Dialect(";", mark) for mark in ".,"]
    dialect = max(marks, key=lambda d: sum(d.number(row.get(c, "")) is not None for row in rows for c in chosen))
    stated = {name: unit for name in chosen if (unit := split_unit(name)[1])}
    found = ConcentrationTable(recording.path, chosen, rows, dialect, stated)
    for k, trace in enumerate(recording.traces):
        set_values(trace, [found.value(k, name) for name in chosen])
    # of a column that was taken before one was named
    recording.concentration_unit, recording.on_concentrations, recording.untold = "", [], None
    describe_source(recording, found, chosen)
    recording.analytes = tuple(split_unit(name)[0] for name in recording.analytes) if recording.analytes else None


def apply_mapping(recording: Recording, values: Mapping[str, float | Sequence[float]]) -> None:
    """Set concentrations from a mapping of names (of spectra, wells or files) to values, in place.

    Raises:
        NoEntryError: no name of the mapping is that of a spectrum.
        ReaderError: a name that fits several entries.
    """
    keys = [str(key) for key in values]
    joined = join(recording.traces, keys)
    if joined.doubts:
        name, entries = joined.doubts[0]
        raise ReaderError(f"{recording.path}: '{name}' may be any of {listing(entries)}; give its name as it stands.")
    if not joined.matched:
        there = listing(trace.name for trace in recording.traces)
        raise NoEntryError(f"{recording.path}: none of the concentrations names a spectrum; there are {there}.")
    recording.untold = None
    recording.on_concentrations = []  # as in `apply_table`
    points = list(values.values())
    for trace, entry in zip(recording.traces, joined.entries, strict=True):
        if entry is None:
            trace.unknown = True
            continue
        value = points[entry]
        set_values(trace, (value,) if isinstance(value, int | float) else tuple(value))
    recording.concentrations_from = "the concentrations given"


def listing(items, limit: int = 12) -> str:
    """``'a', 'b' and 3 more``."""
    quoted = [f"'{text.shorten(str(item), 60)}'" for item in items]
    more = len(quoted) - limit
    return ", ".join(quoted[:limit]) + (f" and {more} more" if more > 0 else "")
