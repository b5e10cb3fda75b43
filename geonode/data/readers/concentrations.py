"""Tables of concentrations beside the spectra: note files, sidecars, and the columns of a file list.

A table has one sample a row under a header, or, as short notes often have it, the samples' names in one line and their
concentrations in the next, with ``#`` before what is not a number. An entry without a number, ``NaN`` or an empty
cell, says that the sample is an unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from geonode.data.readers import names, text
from geonode.data.readers.dialect import Dialect
from geonode.data.readers.recording import Recording, Trace
from geonode.errors import ReaderError

_UNKNOWN = re.compile(r"(nan|n/?a|unknown|\?|-*)", re.I)
_CONCENTRATION = re.compile(r"conc", re.I)
_WELL = re.compile(r"([A-Za-z]{1,2})0*(\d{1,3})")


class NoEntryError(ReaderError):
    """A table or a mapping that lists none of a file's spectra."""


@dataclass
class ConcentrationTable:
    """Rows of a table by the key that names the sample.

    Attributes:
        path: the file. header: names of the columns, without units. units: by column name, where one is stated.
        rows: each row's cells by column name. dialect: how its numbers are written.
    """

    path: Path
    header: list[str]
    rows: list[dict[str, str]]
    dialect: Dialect
    units: dict[str, str] = field(default_factory=dict)

    def fail(self, what: str) -> ReaderError:
        return ReaderError(f"{self.path}: {what}")

    def value(self, row: int, column: str) -> float | None:
        """A number, or None where the cell says that the value is unknown."""
        cell = self.rows[row].get(column, "")
        number = self.dialect.number(cell)
        if number is None and not _UNKNOWN.fullmatch(cell):
            raise self.fail(
                f"row {row + 2}, column '{column}' is '{text.shorten(cell)}', which is no number; give the "
                "concentration, or NaN for an unknown."
            )
        return number

    def is_numeric(self, column: str) -> bool:
        """Every cell is a number or says that it is unknown, and one at least is a number."""
        cells = [row.get(column, "") for row in self.rows]
        numbers = [self.dialect.number(cell) is not None for cell in cells]
        return any(numbers) and all(n or _UNKNOWN.fullmatch(c) for n, c in zip(numbers, cells, strict=True))


def read_table(path: Path) -> ConcentrationTable:
    """Read a table of concentrations.

    Raises:
        ReaderError: missing, empty, or no table.
    """
    if not path.is_file():
        raise ReaderError(f"{path}: there is no such file of concentrations; check the name.")
    lines = [line for line in text.read_text(path).split("\n") if line.strip()]
    if sum(len(line) for line in lines) > 2**21:
        raise ReaderError(f"{path}: too long for a table of concentrations; name the note file, not the spectra.")
    remarks = [line.lstrip("# \t") for line in lines if line.lstrip().startswith("#")]
    body = [line for line in lines if not line.lstrip().startswith("#")]
    dialect = _dialect_of([*remarks, *body])
    if dialect is None or not body:
        raise ReaderError(f"{path}: not a table of concentrations; write a CSV with a header and one sample a row.")
    if len(body) == 1 and remarks:
        return _read_two_lines(path, remarks, dialect.split(body[0]), dialect)
    if remarks and len(dialect.split(remarks[-1])) == len(dialect.split(body[0])) > 1:
        body.insert(0, remarks[-1])  # a header behind a mark of comment
    header, units = zip(*(split_unit(cell) for cell in dialect.split(body[0])), strict=True)
    named = [name for name in header if name]
    if len(set(named)) != len(named) or len(body) < 2 or len(named) < 2:
        raise ReaderError(
            f"{path}: not a table of concentrations; write a CSV with a header of distinct names and one sample a row."
        )
    rows = []
    for line in body[1:]:
        cells = dialect.split(line)
        rows.append({name: cells[i] if i < len(cells) else "" for i, name in enumerate(header) if name})
    stated = {name: unit for name, unit in zip(header, units, strict=True) if name and unit}
    return ConcentrationTable(path, named, rows, dialect, stated)


def _dialect_of(lines: Sequence[str]) -> Dialect | None:
    """The delimiter that most lines have, and the decimal mark that fits more of the cells."""
    counts = {mark: sum(mark in line for line in lines) for mark in "\t;, "}
    delimiter = max("\t;,", key=lambda mark: counts[mark])
    if not counts[delimiter]:
        delimiter = " "
    if not counts[delimiter]:
        return None
    decimals = [Dialect(delimiter, "."), *([Dialect(delimiter, ",")] if delimiter != "," else [])]
    fits = {d: sum(d.number(cell) is not None for line in lines for cell in d.split(line)) for d in decimals}
    return max(decimals, key=lambda d: fits[d])


def _read_two_lines(path: Path, remarks: list[str], values: list[str], dialect: Dialect) -> ConcentrationTable:
    keys = dialect.split(remarks[-1])
    if len(keys) != len(values) or len(set(keys)) != len(keys):
        raise ReaderError(
            f"{path}: {len(values)} concentrations under {len(keys)} names; write a CSV with a header and one sample "
            "a row."
        )
    unit = next((u for remark in remarks[:-1] for u in names.units_in(remark)), "")
    rows = [{"sample": key, "concentration": value} for key, value in zip(keys, values, strict=True)]
    units = {"concentration": unit} if unit else {}
    return ConcentrationTable(path, ["sample", "concentration"], rows, dialect, units)


def split_unit(header: str) -> tuple[str, str]:
    """``Cl (mM)``, ``Cl [mM]`` or ``Cl / mM`` → (``Cl``, ``mM``); any other header is its own name, without a unit."""
    match = re.fullmatch(r"(.*?)\s*(?:\(([^()]*)\)|\[([^\[\]]*)\]|\s/\s*(\S+))", header)
    if not match or not match.group(1):
        return header.strip(), ""
    return match.group(1).strip(), next(g for g in match.groups()[1:] if g is not None).strip()


def apply_table(recording: Recording, found: ConcentrationTable, column: str | Sequence[str] | None = None) -> None:
    """Set the concentrations of a recording's traces from a table, in place; what the table lacks becomes a note.

    Args:
        column: the column of the concentration, or one per analyte; by default the one that is called so, or the only
            one of numbers.

    Raises:
        NoEntryError: no column names the samples.
        ReaderError: no such column, several that may be meant, a cell that is no number.
    """
    key, rows = _match_rows(recording.traces, found, column)
    columns = _concentration_columns(found, key, column)
    listed = [row for row in rows if row is not None]
    others = [c for c in found.header if c != key and c not in columns]
    varying = [c for c in others if len({found.rows[row].get(c, "") for row in listed}) > 1]
    numeric = [c for c in varying if found.is_numeric(c)]
    labels = [c for c in varying if c not in numeric]
    missing = []
    for trace, row in zip(recording.traces, rows, strict=True):
        if row is None:
            missing.append(trace.name)
            trace.unknown = True
            continue
        values = [found.value(row, c) for c in columns]
        if any(value is None for value in values):
            trace.unknown = True
        else:
            trace.concentration = tuple(float(value) for value in values if value is not None)
        trace.attributes.update({c: found.rows[row].get(c, "") for c in [*others, *columns]})
        trace.conditions = {c: v for c in numeric if (v := found.value(row, c)) is not None}
        trace.series = " ".join(found.rows[row].get(c, "") for c in labels)
    if missing:
        recording.notes.append(f"no entry in {found.path.name} for {listing(missing)}, left out of the standards")
    recording.concentrations_from = f"{found.path.name}, {'column' if len(columns) == 1 else 'columns'} " + (
        " and ".join(f"'{c}'" for c in columns)
    )
    recording.analytes = None if len(columns) == 1 and _CONCENTRATION.search(columns[0]) else tuple(columns)
    units = [found.units.get(c, "") for c in columns]
    if any(units):
        recording.concentration_unit = units[0] if len(set(units)) == 1 else ", ".join(u or "1" for u in units)


def _match_rows(
    traces: Sequence[Trace], found: ConcentrationTable, wanted: str | Sequence[str] | None
) -> tuple[str, list[int | None]]:
    """The column that names the samples, and each trace's row by it (None where it has none)."""
    best: tuple[int, str, list[int | None]] = (0, "", [])
    taken = {wanted} if isinstance(wanted, str) else set(wanted or ())
    for column in found.header:
        if column in taken or _CONCENTRATION.search(column):
            continue  # values, which may look like the numbers of samples
        index: dict[str, int] = {}
        twice = ""
        for i, row in enumerate(found.rows):
            cell = normalise(row.get(column, ""))
            if cell and index.setdefault(cell, i) != i:
                twice = row[column]
        rows = [next((index[k] for k in _keys(trace) if k in index), None) for trace in traces]
        matched = sum(row is not None for row in rows)
        if twice:
            continue  # names that repeat are no names of samples
        if matched > best[0]:
            best = (matched, column, rows)
    if not best[0]:
        sample = traces[0]
        raise NoEntryError(
            f"{found.path}: no column with a distinct entry for each sample names the spectra; have one with their "
            f"names, such as '{text.shorten(sample.keys[0] if sample.keys else sample.name)}'."
        )
    return best[1], best[2]


def _keys(trace: Trace) -> list[str]:
    """What a table may call a trace, the more particular first."""
    keys = [*trace.keys, trace.name]
    short = []
    for key in trace.keys:  # Rhodamine_6G_in_methanol_A1 → A1, then A: the sample without the count of its replicate
        last = re.split(r"[ _\-]+", key.strip())[-1]
        short += [last, re.sub(r"\d+$", "", last)]
    return [k for k in map(normalise, [*keys, *short]) if k]


def normalise(key: str) -> str:
    """One form for names that people write in several: case, blanks, and ``A1`` for the well ``A01``."""
    key = " ".join(key.split()).casefold()
    match = _WELL.fullmatch(key)
    return f"{match.group(1)}{int(match.group(2))}" if match else key


def _concentration_columns(found: ConcentrationTable, key: str, column: str | Sequence[str] | None) -> list[str]:
    if column is not None:
        wanted = [column] if isinstance(column, str) else list(column)
        for name in wanted:
            if name not in found.header or name == key:
                raise found.fail(f"there is no column '{name}' of concentrations; there are {listing(found.header)}.")
        return wanted
    numeric = [c for c in found.header if c != key and found.is_numeric(c)]
    named = [c for c in numeric if _CONCENTRATION.search(c)]
    if len(named) == 1:
        return named
    if len(numeric) == 1:
        return numeric
    if not numeric:
        raise found.fail("no column of numbers beside the names of the samples; add their concentrations.")
    raise found.fail(
        f"{len(numeric)} columns may be the concentration ({listing(numeric)}); name one, such as "
        f"--column {numeric[-1]}."
    )


def apply_mapping(recording: Recording, values: Mapping[str, float | Sequence[float]]) -> None:
    """Set concentrations from a mapping of names (of spectra, wells or files) to values, in place.

    Raises:
        NoEntryError: no name of the mapping is that of a spectrum.
    """
    index = {normalise(str(key)): value for key, value in values.items()}
    matched = 0
    for trace in recording.traces:
        value = next((index[k] for k in _keys(trace) if k in index), None)
        if value is None:
            trace.unknown = True
            continue
        matched += 1
        point = (value,) if isinstance(value, int | float) else tuple(value)
        trace.concentration = tuple(float(v) for v in point)
    if not matched:
        there = listing(trace.name for trace in recording.traces)
        raise NoEntryError(f"{recording.path}: none of the concentrations names a spectrum; there are {there}.")
    recording.concentrations_from = "the concentrations given"


def listing(items, limit: int = 12) -> str:
    """``'a', 'b' and 3 more``."""
    quoted = [f"'{text.shorten(str(item), 60)}'" for item in items]
    more = len(quoted) - limit
    return ", ".join(quoted[:limit]) + (f" and {more} more" if more > 0 else "")
