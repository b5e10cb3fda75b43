"""A table of concentrations: its columns, its cells with their units, and how it is read from a text.

A table has one sample a row under a header, or, as short notes often have it, the samples' names in one line and their
concentrations in the next, with ``#`` before what is not a number. A line of units may stand below the header. An entry
without a number, ``NaN`` or an empty cell, says that the sample is an unknown. A cell may hold its unit (``10 mM``),
and so may a column ``unit``. Or it is the map of a plate (:mod:`geonode.data.readers.plate_map`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path

from geonode.data.readers import names, text
from geonode.data.readers.dialect import Dialect, decimal_either_way, doubtful_number, two_readings
from geonode.data.readers.plate_map import CONCENTRATION, WELL, plate_map
from geonode.errors import ReaderError

CALLED_SO = re.compile(r"conc|konz", re.I)
UNIT_COLUMN = re.compile(
    r"((conc|konz)[^\W\d]*\.?[\s_]*)?(units?|einheit(en)?|unités?|unidad(es)?|unità|eenheid|enhet)[\s_]*\d?", re.I
)
SPREAD = re.compile(r"(?<![a-z])(sd|s\.d\.|stdev|rsd|sem|err(or)?|unc(ertainty)?)(?![a-z])|±|\+/-", re.I)
# What a column of numbers may hold besides a concentration: it is one only where somebody names it.
_OTHER = re.compile(
    r"(?<![a-z])(abs(orbance)?|od\d*|signal|intensity|counts?|dates?|datum|time|zeit|temp(erature)?|temperatur|volume|"
    r"mass|weight|dilution|rows?|columns?|index|wavelength|path ?length)(?![a-z])",
    re.I,
)


def called_something_else(column: str) -> bool:
    """Whether a column's name says that its numbers are a temperature, a time, an error …, and no concentration."""
    return bool(_OTHER.search(column) or SPREAD.search(column))


@dataclass
class ConcentrationTable:
    """Rows of a table by the key that names the sample.

    Attributes:
        path: the file. header: names of the columns, without units. units: by column name, where one is stated.
        rows: each row's cells by column name. dialect: how its numbers are written.
        lines: the line of each row, for messages. decided: whoever reads said which mark is decimal.
        is_map: whether it is the map of a plate, whose rows are its wells.
    """

    path: Path
    header: list[str]
    rows: list[dict[str, str]]
    dialect: Dialect
    units: dict[str, str] = field(default_factory=dict)
    lines: list[int] = field(default_factory=list)
    decided: bool = False
    is_map: bool = False

    def fail(self, what: str) -> ReaderError:
        return ReaderError(f"{self.path}: {what}")

    def line(self, row: int) -> int:
        """The line in which a row stands."""
        return self.lines[row] if row < len(self.lines) else row + 2

    def value(self, row: int, column: str, is_concentration: bool = True) -> float | None:
        """A number in the unit of the column, or None where the cell says that the value is unknown.

        Args:
            row: which row, from 0.
            column: the name of the column.
            is_concentration: a column of units says the unit of this one.

        Raises:
            ReaderError: a cell that is neither, that may be read in two ways, or whose unit is unknown or does not
                convert.
        """
        cell = self.rows[row].get(column, "")
        if names.is_unknown(cell):
            return None
        place = f"well {self.rows[row][WELL]}" if self.is_map else f"row {self.line(row)}, column '{column}'"
        self._require_no_doubt(cell, column, place)
        number = self.dialect.number(cell)
        if number is None and (number := names.grouped_number(cell)) is not None:
            cell = f"{Decimal(repr(number)):f}".replace(".", self.dialect.decimal)
        own = self._unit_beside(row, column) if is_concentration else ""
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
        number = names.number_of(cell)
        marks = [mark for mark in ".," if re.fullmatch(rf"[1-9]\d{{0,2}}\{mark}\d{{3}}", number)]
        if not marks or self.decided:
            return
        mark, cells = marks[0], [names.number_of(row.get(column, "")) for row in self.rows]
        plain = re.compile(rf"\d*\{mark}\d+")
        if any(plain.fullmatch(one) and not re.fullmatch(rf"[1-9]\d{{0,2}}\{mark}\d{{3}}", one) for one in cells):
            return  # another number shows that the mark is decimal
        # Points are decimal where nothing speaks against it, and so are commas between semicolons.
        usual = mark == self.dialect.decimal and (mark == "." or self.dialect.delimiter == ";")
        parts_thousands = re.compile(rf"\d{{1,3}}(\{mark}\d{{3}})+[{',' if mark == '.' else '.'}]\d+")  # 10.000,5
        if usual and not doubtful_number(cells, mark) and not any(map(parts_thousands.fullmatch, cells)):
            return
        raise self.fail(
            f"{place} is '{cell}', which is {two_readings(number, mark)}; write it without a separator between "
            f"thousands, or say which mark is decimal ({decimal_either_way()})."
        )

    def _unit_beside(self, row: int, column: str) -> str:
        """The unit that a column of units gives to a number: the next such column to the right, or else the last.

        Raises:
            ReaderError: a word that is no unit of concentration where others are, or none where units differ.
        """
        columns = [name for name in self.header if UNIT_COLUMN.fullmatch(name)]
        if not columns:
            return ""
        at = self.header.index(column)
        name = next((one for one in columns if self.header.index(one) > at), columns[-1])
        words = [row.get(name, "").strip() for row in self.rows]
        word, stated = words[row], {names.spelled(one) for one in words if not names.is_unknown(one)}
        if names.is_unknown(word):
            word = ""
        if len(stated) > 1 and not names.is_unit(word) and self.dialect.number(self.rows[row].get(column, "")) != 0:
            what = f"'{text.shorten(word)}', which is no unit known here" if word else "empty"
            raise self.fail(
                f"row {self.line(row)}, column '{name}' is {what}, and other rows have other units "
                f"({', '.join(sorted(stated - {word}))}); write one unit in every row."
            )
        if names.is_unit(word):
            return word
        if word:
            self.units.setdefault(column, word)  # the same unknown word in every row, such as mg/kg
        return ""

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
        return bool(CALLED_SO.search(column)) or names.is_unit(self.units.get(column, ""))

    def may_be_concentration(self, column: str) -> bool:
        """A column of numbers that is not called something else, such as a temperature or an error."""
        return self.is_called_concentration(column) or not called_something_else(column)

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
    with path.open("rb") as file:
        if file.read(4) == b"PK\x03\x04":
            raise ReaderError(f"{path}: a workbook, and tables of concentrations are read as text; save it as CSV.")
    numbered = [(k, line) for k, line in enumerate(text.read_text(path).split("\n"), start=1) if line.strip()]
    if sum(len(line) for _, line in numbered) > 2**21:
        raise ReaderError(f"{path}: too long for a table of concentrations; name the note file, not the spectra.")
    remarks = [(k, line.lstrip("# \t")) for k, line in numbered if line.lstrip().startswith("#")]
    body = [(k, line) for k, line in numbered if not line.lstrip().startswith("#")]
    dialect = _dialect_of([line for _, line in [*remarks, *body]], decimal)
    if dialect is None or not body:
        raise ReaderError(f"{path}: not a table of concentrations; write a CSV with a header and one sample a row.")
    plate = plate_map([(k, line.lstrip("# \t")) for k, line in numbered], dialect)
    if plate is not None:
        units = {CONCENTRATION: plate.unit} if plate.unit else {}
        return ConcentrationTable(
            path, [WELL, CONCENTRATION], plate.rows, dialect, units, plate.lines, bool(decimal), True
        )
    if len(body) == 1 and remarks:
        found = _read_two_lines(path, [line for _, line in remarks], body[0], dialect)
        found.decided = bool(decimal)
        return found
    if remarks and len(dialect.split(remarks[-1][1])) == len(dialect.split(body[0][1])) > 1:
        body.insert(0, remarks[-1])  # a header behind a mark of comment
    _require_header(path, [dialect.split(line) for _, line in body], dialect)
    header, units = zip(*(split_unit(cell) for cell in dialect.split(body[0][1])), strict=True)
    if not header[0] and len(body) > 1 and dialect.split(body[1][1])[0]:
        header = ("column 1", *header[1:])  # as pandas writes an index
    named = [name for name in header if name]
    if len(set(named)) != len(named) or len(body) < 2 or len(named) < 2:
        raise ReaderError(
            f"{path}: not a table of concentrations; write a CSV with a header of distinct names and one sample a row."
        )
    below = dialect.split(body[1][1])
    if any(map(names.is_unit, below)) and all(not cell or names.is_unit(cell) for cell in below) and len(body) > 2:
        both = zip_longest(units, below[: len(units)], fillvalue="")
        units = tuple(own or more for own, more in both)
        body.pop(1)  # a line of units below the header
    rows = []
    for _, line in body[1:]:
        cells = dialect.split(line)
        rows.append({name: cells[i] if i < len(cells) else "" for i, name in enumerate(header) if name})
    stated = {name: unit for name, unit in zip(header, units, strict=True) if name and unit}
    return ConcentrationTable(path, named, rows, dialect, stated, [k for k, _ in body[1:]], bool(decimal))


def _require_header(path: Path, rows: list[list[str]], dialect: Dialect) -> None:
    """Refuse a table whose first line is a sample: a number, with its unit or without, stands in it wherever one
    stands in every other line."""
    numbers = [
        [dialect.number(cell) is not None or names.quantity_in(cell) is not None for cell in row] for row in rows
    ]
    if any(numbers[0]) and len(rows) > 1 and all(row == numbers[0] for row in numbers):
        raise ReaderError(
            f"{path}: the first line ('{text.shorten(dialect.delimiter.join(rows[0]))}') reads like a sample, and no "
            "line says what the columns are; write a header above it, such as sample and concentration."
        )


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
        if CALLED_SO.search(name) and names.is_unit(last):
            return name.removesuffix(" in").rstrip(" ,;:"), last
        return header.strip(), ""
    return match.group(1).strip(), next(g for g in match.groups()[1:] if g is not None).strip()
