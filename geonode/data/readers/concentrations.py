"""Tables of concentrations beside the spectra: note files, sidecars, and the columns of a file list.

A table has one sample a row under a header, or, as short notes often have it, the samples' names in one line and their
concentrations in the next, with ``#`` before what is not a number. An entry without a number, ``NaN`` or an empty
cell, says that the sample is an unknown. A cell may hold its unit (``10 mM``), and so may a column ``unit``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from geonode.data.readers import names, text
from geonode.data.readers.dialect import Dialect, doubtful_number, two_readings
from geonode.data.readers.joining import Joined, join, normalise
from geonode.data.readers.recording import Recording, Trace
from geonode.data.readers.which_spectrum import says_which
from geonode.errors import ReaderError

_CONCENTRATION = re.compile(r"conc|konz", re.I)
_UNIT_COLUMN = re.compile(r"units?|einheit|unité", re.I)


class NoEntryError(ReaderError):
    """A table or a mapping that lists none of a file's spectra."""


@dataclass
class ConcentrationTable:
    """Rows of a table by the key that names the sample.

    Attributes:
        path: the file. header: names of the columns, without units. units: by column name, where one is stated.
        rows: each row's cells by column name. dialect: how its numbers are written.
        lines: the line of each row, for messages. decided: whoever reads said which mark is decimal.
    """

    path: Path
    header: list[str]
    rows: list[dict[str, str]]
    dialect: Dialect
    units: dict[str, str] = field(default_factory=dict)
    lines: list[int] = field(default_factory=list)
    decided: bool = False

    def fail(self, what: str) -> ReaderError:
        return ReaderError(f"{self.path}: {what}")

    def line(self, row: int) -> int:
        """The line in which a row stands."""
        return self.lines[row] if row < len(self.lines) else row + 2

    def value(self, row: int, column: str) -> float | None:
        """A number in the unit of the column, or None where the cell says that the value is unknown.

        Raises:
            ReaderError: a cell that is neither, that may be read in two ways, or whose unit does not convert.
        """
        cell = self.rows[row].get(column, "")
        if names.is_unknown(cell):
            return None
        place = f"row {self.line(row)}, column '{column}'"
        self._require_no_doubt(cell, column, place)
        number, own = self.dialect.number(cell), self._unit_beside(row, column)
        if number is None:
            quantity = names.quantity_in(cell)
            if quantity is None:
                raise self.fail(
                    f"{place} is '{text.shorten(cell)}', which is no number; give the concentration, or NaN for an "
                    "unknown."
                )
            return float(self._converted(*quantity, column, place))
        if own:
            return float(self._converted(Decimal(self.dialect.plain(cell)), own, column, place))
        return number

    def _require_no_doubt(self, cell: str, column: str, place: str) -> None:
        marks = [mark for mark in ".," if re.fullmatch(rf"[1-9]\d{{0,2}}\{mark}\d{{3}}", cell)]
        if not marks or self.decided:
            return
        mark, cells = marks[0], [row.get(column, "") for row in self.rows]
        if mark == self.dialect.decimal:
            if not doubtful_number(cells, mark):
                return
        elif any(re.fullmatch(rf"\d*\{mark}\d+", one) and not re.fullmatch(rf"[1-9]\d{{0,2}}\{mark}\d{{3}}", one)
                 for one in cells):  # fmt: skip
            return
        raise self.fail(
            f"{place} is '{cell}', which is {two_readings(cell, mark)}; write it without a separator between "
            "thousands, or say which mark is decimal (--decimal . or --decimal ,)."
        )

    def _unit_beside(self, row: int, column: str) -> str:
        """The unit in a column ``unit`` of the same row, for the column that is the concentration."""
        if not self.is_called_concentration(column):
            return ""
        cells = [self.rows[row].get(name, "").strip() for name in self.header if _UNIT_COLUMN.fullmatch(name)]
        return cells[0] if len(cells) == 1 and names.is_unit(cells[0]) else ""

    def _converted(self, value: Decimal, unit: str, column: str, place: str) -> Decimal:
        unit = names.spelled(unit)
        target = self.units.get(column, "")
        if not names.is_unit(target):
            self.units[column] = target = unit
        converted = names.to_unit(value, unit, names.spelled(target))
        if converted is None:
            raise self.fail(f"{place} is in {unit} and others are in {target}, which do not convert; use one unit.")
        return converted

    def is_called_concentration(self, column: str) -> bool:
        """By its name, or by its unit."""
        return bool(_CONCENTRATION.search(column)) or names.is_unit(self.units.get(column, ""))

    def is_numeric(self, column: str) -> bool:
        """At least half of the cells that are no unknowns are numbers: an odd cell is named, no reason to look away."""
        cells = [cell for row in self.rows if not names.is_unknown(cell := row.get(column, ""))]
        numbers = sum(self.dialect.number(c) is not None or names.quantity_in(c) is not None for c in cells)
        return bool(cells) and 2 * numbers >= len(cells)


def read_table(path: Path, decimal: str = "") -> ConcentrationTable:
    """Read a table of concentrations; ``decimal``: its decimal mark, where whoever reads says it.

    Raises:
        ReaderError: missing, empty, or no table.
    """
    if not path.is_file():
        raise ReaderError(f"{path}: there is no such file of concentrations; check the name.")
    numbered = [(k, line) for k, line in enumerate(text.read_text(path).split("\n"), start=1) if line.strip()]
    if sum(len(line) for _, line in numbered) > 2**21:
        raise ReaderError(f"{path}: too long for a table of concentrations; name the note file, not the spectra.")
    remarks = [(k, line.lstrip("# \t")) for k, line in numbered if line.lstrip().startswith("#")]
    body = [(k, line) for k, line in numbered if not line.lstrip().startswith("#")]
    dialect = _dialect_of([line for _, line in [*remarks, *body]], decimal)
    if dialect is None or not body:
        raise ReaderError(f"{path}: not a table of concentrations; write a CSV with a header and one sample a row.")
    if len(body) == 1 and remarks:
        found = _read_two_lines(path, [line for _, line in remarks], body[0], dialect)
        found.decided = bool(decimal)
        return found
    if remarks and len(dialect.split(remarks[-1][1])) == len(dialect.split(body[0][1])) > 1:
        body.insert(0, remarks[-1])  # a header behind a mark of comment
    header, units = zip(*(split_unit(cell) for cell in dialect.split(body[0][1])), strict=True)
    named = [name for name in header if name]
    if len(set(named)) != len(named) or len(body) < 2 or len(named) < 2:
        raise ReaderError(
            f"{path}: not a table of concentrations; write a CSV with a header of distinct names and one sample a row."
        )
    rows = []
    for _, line in body[1:]:
        cells = dialect.split(line)
        rows.append({name: cells[i] if i < len(cells) else "" for i, name in enumerate(header) if name})
    stated = {name: unit for name, unit in zip(header, units, strict=True) if name and unit}
    return ConcentrationTable(path, named, rows, dialect, stated, [k for k, _ in body[1:]], bool(decimal))


def _dialect_of(lines: Sequence[str], decimal: str = "") -> Dialect | None:
    """The delimiter that most lines have, and the decimal mark that fits more of the cells."""
    counts = {mark: sum(mark in line for line in lines) for mark in "\t;, "}
    delimiter = max("\t;,", key=lambda mark: counts[mark])
    if not counts[delimiter]:
        delimiter = " "
    if not counts[delimiter]:
        return None
    if decimal:
        other = "," if decimal == "." else "."
        return Dialect(delimiter, decimal, other if other != delimiter else "")
    decimals = [Dialect(delimiter, "."), *([Dialect(delimiter, ",")] if delimiter != "," else [])]
    fits = {d: sum(d.number(cell) is not None for line in lines for cell in d.split(line)) for d in decimals}
    return max(decimals, key=lambda d: fits[d])


def _read_two_lines(path: Path, remarks: list[str], body: tuple[int, str], dialect: Dialect) -> ConcentrationTable:
    keys, values = dialect.split(remarks[-1]), dialect.split(body[1])
    if len(keys) != len(values) or len(set(keys)) != len(keys):
        raise ReaderError(
            f"{path}: {len(values)} concentrations under {len(keys)} names; write a CSV with a header and one sample "
            "a row."
        )
    unit = next((u for remark in remarks[:-1] for u in names.units_in(remark)), "")
    rows = [{"sample": key, "concentration": value} for key, value in zip(keys, values, strict=True)]
    units = {"concentration": unit} if unit else {}
    return ConcentrationTable(path, ["sample", "concentration"], rows, dialect, units, [body[0]] * len(rows))


def split_unit(header: str) -> tuple[str, str]:
    """``Cl (mM)``, ``Cl [mM]``, ``Cl / mM`` or ``Konz. mM`` → (``Cl``, ``mM``); any other header is its own name,
    without a unit."""
    match = re.fullmatch(r"(.*?)\s*(?:\(([^()]*)\)|\[([^\[\]]*)\]|\s/\s*(\S+))", header)
    if not match or not match.group(1):
        name, _, last = header.strip().rpartition(" ")
        if _CONCENTRATION.search(name) and names.is_unit(last):
            return name.removesuffix(" in").rstrip(" ,;:"), last
        return header.strip(), ""
    return match.group(1).strip(), next(g for g in match.groups()[1:] if g is not None).strip()


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
    if joined.positions:
        recording.notes.append(f"the spectra have no names: the numbers in '{key}' are taken for those of the columns")
    rows = joined.entries
    listed = [row for row in rows if row is not None]
    others = [c for c in found.header if c != key and c not in columns]

    def cells(name: str) -> list[str]:
        return [found.rows[row].get(name, "") for row in listed]

    varying = [c for c in others if len(set(cells(c))) > 1 and not says_which(c, cells(c), cells(key))]
    numeric = [c for c in varying if all(_plain_or_unknown(found, row, c) for row in listed)]
    labels = [c for c in varying if c not in numeric and not _UNIT_COLUMN.fullmatch(c)]
    missing = []
    for trace, row in zip(recording.traces, rows, strict=True):
        if row is None:
            missing.append(trace.name)
            trace.unknown = True
            continue
        set_values(trace, [found.value(row, c) for c in columns])
        trace.attributes.update({c: found.rows[row].get(c, "") for c in [*others, *columns]})
        trace.conditions = {c: v for c in numeric if (v := found.value(row, c)) is not None}
        trace.series = " ".join(found.rows[row].get(c, "") for c in labels)
    if missing:
        recording.notes.append(f"no entry in {found.path.name} for {listing(missing)}, left out of the standards")
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
    recording.concentrations_from = f"{found.path.name}, {'column' if len(columns) == 1 else 'columns'} " + (
        " and ".join(f"'{c}'" for c in columns)
    )
    recording.analytes = None if len(columns) == 1 and _CONCENTRATION.search(columns[0]) else tuple(columns)
    stated = [found.units.get(c, "") for c in columns]
    if any(stated):
        recording.concentration_unit = stated[0] if len(set(stated)) == 1 else ", ".join(u or "1" for u in stated)


def _match_rows(
    traces: Sequence[Trace], found: ConcentrationTable, wanted: str | Sequence[str] | None
) -> tuple[str, Joined]:
    """The column that names the samples, and each trace's row by it."""
    best: tuple[int, str, Joined] = (0, "", Joined([]))
    taken = {wanted} if isinstance(wanted, str) else set(wanted or ())
    for column in found.header:
        if column in taken or found.is_called_concentration(column):
            continue  # values, which may look like the numbers of samples
        cells = [row.get(column, "") for row in found.rows]
        normal = [one for cell in cells if (one := normalise(cell))]
        if len(set(normal)) != len(normal):
            continue  # names that repeat are no names of samples
        joined = join(traces, cells)
        if joined.matched > best[0]:
            best = (joined.matched, column, joined)
    if not best[0]:
        sample = traces[0]
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
    candidates = [c for c in found.header if c != key]
    numeric = [c for c in candidates if found.is_numeric(c)]
    called = [c for c in candidates if _CONCENTRATION.search(c)]
    called = [c for c in called if c in numeric] or called
    if len(called) == 1:
        return called
    if len(numeric) == 1:
        return numeric
    with_unit = [c for c in numeric if found.is_called_concentration(c)]
    if len(with_unit) == 1 and not called:
        return with_unit
    if not numeric:
        raise found.fail("no column of numbers beside the names of the samples; add their concentrations.")
    raise found.fail(
        f"{len(numeric)} columns may be the concentration ({listing(numeric)}); name one, such as "
        f"--column {numeric[-1]}."
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
                + "; name the table too (--concentrations NOTE)."
            )
        chosen.append(mine[0])
    rows = [dict(trace.attributes) for trace in recording.traces]
    marks = [Dialect(";", mark) for mark in ".,"]
    dialect = max(marks, key=lambda d: sum(d.number(row.get(c, "")) is not None for row in rows for c in chosen))
    stated = {name: unit for name in chosen if (unit := split_unit(name)[1])}
    found = ConcentrationTable(recording.path, chosen, rows, dialect, stated)
    for k, trace in enumerate(recording.traces):
        set_values(trace, [found.value(k, name) for name in chosen])
    recording.concentration_unit = ""  # of a column that was taken before one was named
    recording.notes = [note for note in recording.notes if not note.endswith("taken as the concentration")]
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
