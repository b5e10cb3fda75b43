"""What the name of an axis says in Python (an index, a column, a dimension and its attributes): its unit, or that it is
none of wavelengths. The words are those by which files are read (:mod:`geonode.data.readers.units`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from geonode.data.checks import Floats
from geonode.data.readers import units
from geonode.data.readers.axis import micrometres_or_not, other_unit
from geonode.data.readers.concentration_table import split_unit
from geonode.errors import InputError

_NO_UNIT = ("", "1", "none", "dimensionless", "-")


@dataclass(frozen=True)
class NamedAxis:
    """An axis as its name has it.

    Attributes:
        unit: as it is said, empty where it is said that there is none; None where nothing is said.
        note: where it is no axis of wavelengths of a known unit, the sentence that says so.
        named: whether the name is one of wavelengths.
    """

    unit: str | None = None
    note: str = ""
    named: bool = False


NAMELESS = NamedAxis()


def named_axis(name: object, where: str, attributes: Mapping[Any, Any] | None = None) -> NamedAxis:
    """What is said of an axis.

    Args:
        name: of the index, column or dimension; None where it has none. where: what it is the axis of, for messages.
        attributes: of an xarray coordinate: ``units``, and ``long_name`` or ``standard_name`` beside the name.

    Raises:
        InputError: a name or unit of what only counts, such as a pixel.
    """
    given = attributes or {}
    said = " ".join(_words(one) for one in (given.get("long_name") or given.get("standard_name"), name) if one)
    unit = _words(given["units"]) if "units" in given else None
    unit = "" if unit is not None and unit.lower() in _NO_UNIT else unit
    if (said and units.is_counter(_words(name))) or (unit and units.is_counter(unit)):
        raise InputError(
            f"the axis of {where} is '{_headed(_words(name), unit)}', which only counts; give the wavelengths in its "
            "place."
        )
    if unit:
        found = units.wavelength_unit(unit)
        if found is not None and units.wavelength_unit(_headed(said, unit)) is not None:
            return NamedAxis(found, named=True)
        return NamedAxis("" if found else unit, _no_wavelength(where, said, unit))
    found = units.wavelength_unit(said)
    if found is not None:
        # "wavelength" alone names the axis and not its unit.
        known = found != "nm" or units.states_unit(said)
        if not known and split_unit(said)[1]:
            return NamedAxis(split_unit(said)[1], _no_wavelength(where, said, None))
        return NamedAxis(found if known else unit, named=True)
    if units.is_other_axis(said) or split_unit(said)[1]:
        return NamedAxis(other_unit(said), _no_wavelength(where, said, None))
    return NamedAxis(unit)


def axis_of_values(values: object, where: str) -> NamedAxis:
    """What wavelengths themselves say that are a pandas Index or Series, or an xarray.DataArray; nothing of others."""
    name = getattr(values, "name", None)
    attributes = getattr(values, "attrs", None) or {}
    if not isinstance(name, str) and not attributes:
        return NAMELESS
    return named_axis(name if isinstance(name, str) else None, where, attributes)


def names_other_axis(name: object) -> bool:
    """Whether a name is one of an axis that is none of wavelengths, or of what only counts."""
    said = _words(name)
    if not said or units.wavelength_unit(said) is not None:
        return False
    return units.is_counter(said) or units.is_other_axis(said)


def unit_of(axis: NamedAxis, values: Floats, where: str) -> tuple[str, str]:
    """The unit of the wavelengths of standards, as files are read: what is said, nm where the values allow it, else
    none; and the sentence that says what was assumed, or is odd. Empty where nothing is.

    Raises:
        InputError: they are called wavelengths without a unit, and lie where these are in µm.
    """
    if axis.unit is not None or axis.note:
        return axis.unit or "", axis.note
    if units.is_plausible_nm(values):
        return "nm", "" if axis.named else f"the axis of {where} was taken as wavelengths in nm"
    if axis.named and units.is_plausible_um(values):
        raise InputError(micrometres_or_not(values, f"the axis of {where},", "wavelength"))
    return "", (
        f"the unit of the axis of {where} is not said, and {values.min():g} to {values.max():g} are no wavelengths in "
        "nm of a spectrometer; none is assumed"
    )


def _no_wavelength(where: str, said: str, unit: str | None) -> str:
    return (
        f"the axis of {where} is '{_headed(said, unit)}', which is no wavelength of a known unit; it was kept as it is"
    )


def _headed(said: str, unit: str | None) -> str:
    return f"{said} ({unit})".strip() if unit else said


def _words(said: object) -> str:
    return "" if said is None else str(said).replace("_", " ").strip()
