"""Concentrations written in sample names, such as ``FZ010_AuNP_DMSA_250mM_NaCl``."""

from __future__ import annotations

import re
from decimal import Decimal

from geonode.data.readers.recording import Recording

# Unit → (family, power of ten): within a family concentrations convert exactly, in decimal arithmetic.
_FAMILIES = {
    "amount": {"M": 0, "mM": -3, "µM": -6, "nM": -9, "pM": -12},
    "mass": {"g/L": 0, "mg/L": -3, "µg/L": -6, "ng/L": -9, "mg/mL": 0, "µg/mL": -3, "ng/mL": -6},
    "fraction": {"%": -2, "ppm": -6, "ppb": -9, "ppt": -12},
}
_UNITS = {unit: (family, power) for family, units in _FAMILIES.items() for unit, power in units.items()}
_SPELLINGS = {unit.replace("µ", micro): unit for unit in _UNITS for micro in ("µ", "μ", "u")}
_PATTERN = re.compile(
    r"(?<![A-Za-z0-9.,])(\d+(?:[.,]\d+)?)[ _]?("
    + "|".join(re.escape(unit) for unit in sorted(_SPELLINGS, key=len, reverse=True))
    + r")(?![A-Za-z/])"
)


def concentration_in(name: str) -> tuple[Decimal, str, str] | None:
    """(value, unit, series) from a sample name; None where it holds no concentration, or more than one.

    The series is what precedes the concentration, ``FZ010_AuNP_DMSA`` above: standards of one series differ in the
    concentration alone, and what follows it may carry the count of a repeat.
    """
    found = list(_PATTERN.finditer(name))
    if len(found) != 1:
        return None
    match = found[0]
    value = Decimal(match.group(1).replace(",", "."))
    return value, _SPELLINGS[match.group(2)], name[: match.start()].rstrip(" _-")


_UNIT_ALONE = re.compile(
    r"(?<![A-Za-z])("
    + "|".join(re.escape(unit) for unit in sorted(_SPELLINGS, key=len, reverse=True))
    + r")(?![A-Za-z/])"
)


def units_in(remark: str) -> list[str]:
    """Units of concentration that a remark mentions, such as ``mM`` of ``concentrations of the samples mM``."""
    return [_SPELLINGS[unit] for unit in _UNIT_ALONE.findall(remark)]


def set_concentrations_from_names(recording: Recording, where: str) -> None:
    """Fill in concentration, series and unit of every trace whose name holds a concentration.

    Units within one file are converted to that of the first.

    Raises:
        ReaderError: units that cannot be converted into each other.
    """
    for trace in recording.traces:
        found = concentration_in(trace.name)
        if found is None:
            continue
        value, unit, trace.series = found
        if not recording.concentration_unit:
            recording.concentration_unit = unit
            recording.concentrations_from = where
        if unit != recording.concentration_unit:
            (family, power), (target, base) = _UNITS[unit], _UNITS[recording.concentration_unit]
            if family != target:
                raise recording.fail(
                    f"'{trace.name}' is in {unit} and others are in {recording.concentration_unit}, which do not "
                    "convert; give the concentrations in one unit."
                )
            recording.notes.append(f"'{trace.name}' converted from {unit} to {recording.concentration_unit}")
            value = value.scaleb(power - base)
        trace.concentration = (float(value),)
