"""Concentrations written in sample names, in headers and in cells, such as ``FZ010_AuNP_DMSA_250mM_NaCl``.

Numbers are read as people write them: ``0,5``, ``1e-3``, ``10^-4``, ``2×10⁻⁴``, ``1/2``. What may be read in two ways
(``1,000 ppm``, ``3-5 mM``, ``10-4 M``) is not read: the name keeps its doubt, which is told where a concentration is
needed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from geonode.data.readers import text
from geonode.data.readers.dialect import decimal_either_way, doubtful_number, two_readings
from geonode.data.readers.recording import Recording
from geonode.data.readers.thousands import require_no_thousands

# Unit → (family, power of ten): within a family concentrations convert exactly, in decimal arithmetic.
_FAMILIES = {
    "amount": {"M": 0, "mM": -3, "µM": -6, "nM": -9, "pM": -12},
    "mass": {
        **{"g/L": 0, "mg/L": -3, "µg/L": -6, "ng/L": -9, "mg/mL": 0, "µg/mL": -3, "ng/mL": -6},
        **{"g/dL": 1, "mg/dL": -2, "µg/µL": 0, "ng/µL": -3, "pg/µL": -6, "pg/mL": -9},
    },
    "fraction": {"%": -2, "ppm": -6, "ppb": -9, "ppt": -12},
}
_UNITS = {unit: (family, power) for family, units in _FAMILIES.items() for unit, power in units.items()}
_MOLAR = {"M": "mol", "mM": "mmol", "µM": "µmol", "nM": "nmol", "pM": "pmol"}


def _spellings() -> dict[str, str]:
    """Every way of writing a unit, to the unit: micro in its three letters, litres small or large, mol/L for M."""
    written: dict[str, str] = {unit: unit for unit in _UNITS}
    written |= {f"{mol}/L": unit for unit, mol in _MOLAR.items()}
    written |= {way.replace("/L", "/l").replace("/mL", "/ml").replace("/dL", "/dl"): u for way, u in written.items()}
    powers = [(joint, minus) for joint in (" ", "_", "·", ".") for minus in ("-1", "⁻¹", "^-1")]
    ratios = [(*way.split("/"), unit) for way, unit in written.items() if "/" in way]
    written |= {f"{over}{joint}{under}{minus}": unit for over, under, unit in ratios for joint, minus in powers}
    return {way.replace("µ", micro): unit for way, unit in written.items() for micro in ("µ", "μ", "u")}


_SPELLINGS = _spellings()
_UNIT = "|".join(re.escape(unit) for unit in sorted(_SPELLINGS, key=len, reverse=True))
_DECIMAL = r"(?:\d[\d.,]*\d|\d|[.,]\d+)"
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺−–", "0123456789-+--")
_VALUE = (
    rf"(?:(?:(?P<factor>{_DECIMAL})[\s_]*[x×·*][\s_]*)?10(?:\s?(?:\^|\*\*)\s?\(?(?P<power>[-−–+]?\d{{1,2}})\)?"
    r"|(?P<super>[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2}))"
    rf"|(?P<over>{_DECIMAL})\s?/\s?(?P<under>{_DECIMAL})"
    rf"|(?P<plain>{_DECIMAL})(?:[eE](?P<exponent>[-−–+]?\d{{1,3}}))?)"
)
_JOINT = r"(?:[ \u00a0\u2009\u202f]{0,3}|_)"
_PATTERN = re.compile(
    rf"(?<![A-Za-z0-9.,/^⁻])(?P<value>{_VALUE})(?P<joint>{_JOINT})(?P<unit>{_UNIT})(?![A-Za-z0-9/⁻^])"
)
_ALONE = re.compile(rf"\s*(?P<value>{_VALUE}){_JOINT}(?P<unit>{_UNIT})\s*")
# What stands before a value and makes it something else: a range, a power without its sign, a bound, the beginning of a
# number that is written in a way that is not read (5x10-5, 2^-3, 1e-3.5, 1 E 3, 1'000, 1:2), or a sign of its own.
_BEGUN = re.compile(
    r"(?<![\w.,])(?:[\d.,]+\s?[x×·*]\s?)?10\s?[-−–+]$|\d[.,]?\s?[eE]\s?[-−–+]?\s?$|(?<![A-Za-z0-9])[eE][-−–+]$|"
    r"(?:\^|\*\*)\s?\(?[-−–+]?$|\d['’´`:]$|[x×·*]\s?10\s?[-−–+]$|(?:^|\s)[-−–]$"
)
_RANGE = re.compile(r"(?<![^\W_])(?<![.,])\d{1,3}(?:[.,]\d+)?\s*(?:[-−–]|\bto\b|±|\+/-)\s*$")
_BOUND = re.compile(r"[<>≤≥~≈±]\s*$")
_NUMBER_BEFORE = re.compile(r"(?<![\w.,])(\d{1,3})[ _\u00a0\u202f]$")
_UNKNOWN = re.compile(r"(nan|n/?a|unknown|\?|-*)", re.I)


@dataclass(frozen=True)
class NamedConcentration:
    """A concentration as a name says it.

    Attributes:
        value: the number, if it can be told. unit: in one spelling.
        series: what precedes it in the name. doubt: why the value cannot be told; empty if it can.
        written: the number as it is written. number_before: a number that a blank parts from it, such as a count.
    """

    value: Decimal | None
    unit: str
    series: str
    doubt: str
    written: str
    number_before: str = ""


def is_unknown(cell: str) -> bool:
    """Whether a cell says that a concentration is not known: empty, ``NaN``, ``?``, a dash."""
    return bool(_UNKNOWN.fullmatch(cell))


def named_concentration(name: str) -> NamedConcentration | None:
    """The one concentration that a name holds; None where it holds none, or more than one."""
    found = list(_PATTERN.finditer(name))
    if len(found) != 1:
        return None
    match = found[0]
    before = name[: match.start()]
    unit, written = _SPELLINGS[match["unit"]], match["value"]
    series = before.rstrip(" _-")
    what = _RANGE.search(before) or _BOUND.search(before) or _BEGUN.search(before)
    if what is None and match["over"]:
        what = _NUMBER_BEFORE.search(before)  # 1 1/2
    if what is not None:
        whole = f"{what.group().lstrip()}{written}"
        return NamedConcentration(None, unit, series, f"'{whole} {unit}' is no one number", written)
    counted = _NUMBER_BEFORE.search(before)
    value = _value_of(match)
    doubt = "" if value is not None else f"'{written} {unit}' is no number"
    if unit == "M" and match["joint"] == "_" and written.isdigit():
        doubt = f"'{written}_M' may be {written} M or part of a name"
    return NamedConcentration(value, unit, series, doubt, written, counted.group(1) if counted else "")


def concentration_in(name: str) -> tuple[Decimal, str, str] | None:
    """(value, unit, series) from a sample name; None where it holds no concentration, more than one, or one in doubt.

    The series is what precedes the concentration, ``FZ010_AuNP_DMSA`` above: standards of one series differ in the
    concentration alone, and what follows it may carry the count of a repeat.
    """
    found = named_concentration(name)
    if found is None:
        return None
    (found,) = _settled([found])
    return None if found.doubt or found.value is None else (found.value, found.unit, found.series)


def quantity_in(cell: str) -> tuple[Decimal, str] | None:
    """(value, unit) of a cell that is a number with its unit, such as ``10 mM``; None of any other."""
    match = _ALONE.fullmatch(cell)
    if match is None:
        return None
    value = _value_of(match)
    return None if value is None else (value, _SPELLINGS[match["unit"]])


def number_of(cell: str) -> str:
    """The number of a cell as it is written, without its unit; the cell itself where it is no quantity."""
    match = _ALONE.fullmatch(cell)
    return match["value"] if match else cell


_GROUPED = re.compile(
    r"[1-9]\d{0,2}(?:(?:,\d{3})+\.\d+|(?:\.\d{3})+,\d+|(?:[ '’\u00a0\u2009\u202f]\d{3})+(?:[.,]\d+)?)"
)


def grouped_number(cell: str) -> float | None:
    """A number whose thousands are parted beyond doubt: ``1,234.5``, ``1.234,5``, ``1'234``, ``1 234``; else None."""
    if not _GROUPED.fullmatch(cell):
        return None
    digits = re.sub(r"[^\d.,]", "", cell)
    last = max(digits.rfind("."), digits.rfind(","))
    return float(
        re.sub(r"[.,]", "", digits) if last < 0 else re.sub(r"[.,]", "", digits[:last]) + "." + digits[last + 1 :]
    )


def to_unit(value: Decimal, unit: str, target: str) -> Decimal | None:
    """A value in another unit of its family; None between families."""
    (family, power), (other, base) = _UNITS[unit], _UNITS[target]
    return value.scaleb(power - base) if family == other else None


def is_unit(word: str) -> bool:
    """Whether a word is a unit of concentration."""
    return word in _SPELLINGS


def spelled(unit: str) -> str:
    """A unit in its one spelling; any other word as it is."""
    return _SPELLINGS.get(unit, unit)


def _value_of(match: re.Match[str]) -> Decimal | None:
    try:
        power = match["power"] or match["super"]
        if power:
            factor = _decimal(match["factor"]) if match["factor"] else Decimal(1)
            return None if factor is None else factor.scaleb(int(power.translate(_SUPERSCRIPTS)))
        if match["over"]:
            over, under = _decimal(match["over"]), _decimal(match["under"])
            return None if over is None or not under else over / under
        value = _decimal(match["plain"])
        exponent = (match["exponent"] or "0").translate(_SUPERSCRIPTS)
        return None if value is None else value.scaleb(int(exponent))
    except (InvalidOperation, ValueError):
        return None


def _decimal(written: str) -> Decimal | None:
    """A number with point or comma; of two marks the last is decimal, and one that recurs parts thousands."""
    marks = re.sub(r"\d", "", written)
    if len(marks) > 1:
        last = marks[-1]
        if len(set(marks)) == 1:
            whole, fraction = written, ""
        elif marks.count(last) == 1:
            whole, _, fraction = written.rpartition(last)
        else:
            return None
        if not re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", whole):
            return None
        return Decimal(re.sub(r"[.,]", "", whole) + (f".{fraction}" if fraction else ""))
    return Decimal(written.replace(",", "."))


def _settled(found: Sequence[NamedConcentration], decimal: str = "") -> list[NamedConcentration]:
    """Doubts that arise between the names of one file: thousands or decimals, and counts beside the value.

    ``1,000 ppm`` is in doubt unless another name has a comma that is surely decimal; a point is, beside whole numbers.
    Where the ``decimal`` mark is known there is none.
    """
    written = [one.written for one in found]
    plain = [cell for cell in written if re.fullmatch(r"[\d.,]+", cell)]
    counted = _count_samples(found)
    return [_with_doubt(one, plain, counted, decimal) for one in found]


def doubts(names: Sequence[str]) -> list[str]:
    """What is in doubt about the concentrations that names hold, each seen beside the others."""
    found = [one for name in names if (one := named_concentration(name)) is not None]
    return [one.doubt for one in _settled(found) if one.doubt]


def _count_samples(found: Sequence[NamedConcentration]) -> bool:
    """Whether the numbers that blanks part from the values count the samples: ``std 1 100 ppm``, ``std 2 200 ppm``.

    Thousands are parted in the same way (``1 100 ppm``, ``2 000 ppm``): what counts stands behind a word, never twice,
    and before no value that begins with a zero.
    """
    counts = [one.number_before for one in found]
    if len(found) < 2 or not all(counts) or any(re.fullmatch(r"0\d\d.*", one.written) for one in found):
        return False
    worded = all(re.search(r"[^\W\d_]", one.series) for one in found)
    groups = any(re.fullmatch(r"\d{3}(?:[.,]\d+)?", one.written) for one in found)
    return not groups or (worded and len(set(counts)) == len(counts))


def _with_doubt(one: NamedConcentration, others: list[str], counted: bool, decimal: str) -> NamedConcentration:
    doubt, value = one.doubt, one.value
    grouped = re.fullmatch(r"[1-9]\d{0,2}([.,])\d{3}", one.written)
    if grouped and decimal:
        value = Decimal(one.written.replace(grouped.group(1), "." if grouped.group(1) == decimal else ""))
    elif grouped and not doubt:
        mark = grouped.group(1)
        with_mark = [cell for cell in others if mark in cell]
        surely_decimal = any(not re.fullmatch(rf"[1-9]\d{{0,2}}[{mark}]\d{{3}}", cell) for cell in with_mark)
        other = "." if mark == "," else ","
        surely_thousands = any(re.fullmatch(rf"\d*[{other}]\d+", cell) for cell in others)
        if surely_thousands and not surely_decimal:
            value = Decimal(one.written.replace(mark, ""))
        elif not surely_decimal and (mark == "," or doubtful_number(others, mark)):
            doubt = f"'{one.written} {one.unit}' is {two_readings(one.written, mark)}"
    if one.number_before and not counted and re.fullmatch(r"\d{3}(?:[.,]\d+)?", one.written):
        joined = f"{one.number_before}{one.written}"
        doubt = doubt or f"'{one.number_before} {one.written} {one.unit}' is {joined} or {one.value}"
    series = one.series
    if counted:  # the count of a sample is no part of the name of its series
        series = re.sub(r"[ _\-]*\d{1,3}$", "", series)
    return NamedConcentration(None if doubt else value, one.unit, series, doubt, one.written, one.number_before)


_UNIT_ALONE = re.compile(rf"(?<![A-Za-z])({_UNIT})(?![A-Za-z/])")


def units_in(remark: str) -> list[str]:
    """Units of concentration that a remark mentions, such as ``mM`` of ``concentrations of the samples mM``."""
    return [_SPELLINGS[unit] for unit in _UNIT_ALONE.findall(remark)]


def set_concentrations_from_names(recording: Recording, where: str) -> None:
    """Fill in concentration, series and unit of every trace whose name holds a concentration.

    Units within one file are converted to that of the first. A name in doubt gives none, and keeps its doubt.

    Raises:
        ReaderError: units that cannot be converted into each other.
    """
    named = [(trace, found) for trace in recording.traces if (found := named_concentration(trace.name)) is not None]
    if all(trace.name == recording.path.stem for trace, _ in named):
        where = "the names of the files"  # a spectrum alone whose header says no more than what was measured
    for (trace, _), found in zip(named, _settled([found for _, found in named], recording.decimal), strict=True):
        if found.doubt or found.value is None:
            trace.doubt = found.doubt
            said = f"no concentration taken from the name '{text.shorten(trace.name)}': {found.doubt}"
            recording.on_concentrations.append(said)
            continue
        value, trace.series = found.value, found.series
        if not recording.concentration_unit:
            recording.concentration_unit = found.unit
            recording.concentrations_from = where
        if found.unit != recording.concentration_unit:
            converted = to_unit(value, found.unit, recording.concentration_unit)
            if converted is None:
                raise recording.fail(
                    f"'{trace.name}' is in {found.unit} and others are in {recording.concentration_unit}, which do not "
                    "convert; give the concentrations in one unit."
                )
            said = f"'{trace.name}' converted from {found.unit} to {recording.concentration_unit}"
            recording.on_concentrations.append(said)
            value = converted
        trace.concentration = (float(value),)
    _doubt_without_unit(recording)


def _doubt_without_unit(recording: Recording) -> None:
    """Names that are a number alone, among others with their unit: 0 is 0 in any unit, and any other number has none,
    which is told where a concentration is needed."""
    like = next((trace.name for trace in recording.traces if trace.concentration is not None), None)
    for trace in recording.traces:
        value = text.number(trace.name)
        if like is None or value is None or trace.concentration is not None or trace.unknown:
            continue
        if value == 0.0:
            trace.concentration = (0.0,)
            said = f"'{trace.name}' taken as 0 {recording.concentration_unit}, though it says no unit"
        else:
            trace.doubt = (
                f"{trace.place} is called '{trace.name}', without a unit, and others have one (such as "
                f"'{text.shorten(like)}')"
            )
            said = f"no concentration taken from the name '{trace.name}': it has no unit, and others have one"
        recording.on_concentrations.append(said)


# --- headers that are numbers ---------------------------------------------------------------------------------------


def parse_header(cell: str) -> tuple[float, str, int] | None:
    """(concentration, the text of its level, number of the replicate), or None if the header is no concentration."""
    value = text.number(cell)
    if value is not None:
        return value, cell, 0
    level, _, replicate = cell.rpartition(".")
    value = text.number(level)
    if value is None or level.endswith(".") or not (replicate.isascii() and replicate.isdigit()):
        return None
    return value, level, int(replicate)


def is_replicate(cell: str) -> bool:
    """Whether a cell is a level with the count of a replicate, ``20.0.3``, as a header of a column may be."""
    parsed = parse_header(cell)
    return parsed is not None and parsed[1] != cell


def levels_of_headers(header: Sequence[str], decimal: str, recording: Recording) -> list[float] | None:
    """The concentrations that headers are, in a text whose decimal mark is ``decimal``; None if one is no number.

    Raises:
        ReaderError: a header in doubt, such as ``1.000`` beside ``500``, or in a text that has decimal commas.
    """
    header = [without_thousands(cell, recording.decimal) for cell in header]
    has_points = any(re.fullmatch(r"0*\.\d+|\d+\.\d{1,2}|\d+\.\d{4,}", cell) for cell in header)
    cells = [cell.replace(",", ".") if decimal == "," and "," in cell else cell for cell in header]
    parsed = [parse_header(cell) for cell in cells]
    if not all(parsed):
        require_no_thousands(header, recording)
        return None
    grouped = next((cell for cell in header if re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", cell)), None)
    doubt = grouped if decimal == "," and not has_points else None
    levels = [one[1] for one in parsed if one is not None]
    doubt = doubt or (doubtful_number(levels, ".") if decimal == "." else doubtful_number(header, ","))
    if doubt and not recording.numbers_are_typed and not recording.decimal:
        mark = "." if "." in doubt else ","
        raise recording.fail(
            f"a column is headed '{doubt}', which is {two_readings(doubt, mark)}; write the level without a separator "
            f"between thousands, or say which mark is decimal ({decimal_either_way()})."
        )
    _note_counts_taken_as_levels(cells, recording)
    return [one[0] for one in parsed if one is not None]


def without_thousands(cell: str, decimal: str) -> str:
    """``1.000`` as ``1000`` where the decimal mark is known to be the comma, and the reverse; any other as it is."""
    other = {",": ".", ".": ","}.get(decimal)
    if other is None or not re.fullmatch(rf"[1-9]\d{{0,2}}(\{other}\d{{3}})+(\{decimal}\d*)?", cell):
        return cell
    return cell.replace(other, "")


def _note_counts_taken_as_levels(cells: Sequence[str], recording: Recording) -> None:
    """``5.10`` beside ``5.0`` may be meant as its tenth replicate: a level is seldom written with a zero at its end."""
    wholes = {cell.partition(".")[0] for cell in cells if re.fullmatch(r"\d+(\.0)?", cell)}
    for cell in cells:
        whole, dot, count = cell.partition(".")
        if dot and whole in wholes and re.fullmatch(r"[1-9]\d*0", count):
            recording.on_concentrations.append(
                f"'{cell}' was taken as a level of its own ({float(cell):g}), not as a replicate of '{whole}'"
            )
