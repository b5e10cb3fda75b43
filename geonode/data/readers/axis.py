"""The unit of an axis, as its header says it or as its values allow, and photon energies as wavelengths."""

from __future__ import annotations

from geonode.data.checks import Floats
from geonode.data.readers import units
from geonode.data.readers.concentration_table import split_unit
from geonode.data.readers.recording import Recording
from geonode.data.readers.text import shorten
from geonode_runtime.axes import NANOMETRE_ELECTRONVOLT


def axis_unit(header: str, axis: Floats, which: str, recording: Recording) -> str:
    """The unit of an axis: as its header says, nm where its values allow it, else none; what is assumed is noted.

    Raises:
        ReaderError: it is called wavelengths without a unit, and lies where these are in µm.
    """
    unit = units.wavelength_unit(header)
    span = f"{axis.min():g} to {axis.max():g}"
    if unit is not None:
        if unit != "nm" or units.states_unit(header):
            return unit
        if units.is_plausible_nm(axis):
            if split_unit(header)[1]:
                said = f"no known unit is said in '{shorten(header)}'"
                recording.notes.append(f"{which} taken as wavelengths in nm: {said}")
            return unit
        if units.is_plausible_um(axis):
            raise recording.fail(micrometres_or_not(axis, which, header))
        recording.notes.append(f"the file does not say the unit of its wavelengths, {span}")
        return ""
    if units.is_other_axis(header):
        recording.notes.append(f"the abscissa is no wavelength: the {which} is headed '{shorten(header)}'")
        return other_unit(header)
    if split_unit(header)[1]:
        recording.notes.append(
            f"the abscissa is no wavelength of a unit known here: the {which} is headed '{shorten(header)}'"
        )
        return ""
    if units.is_plausible_nm(axis):
        recording.notes.append(f"{which} taken as wavelengths in nm")
        return "nm"
    micrometres = (
        f" ({1e3 * axis.min():g} to {1e3 * axis.max():g} nm if it is µm)" if units.is_plausible_um(axis) else ""
    )
    recording.notes.append(
        f"the file does not say the unit of its {which.removeprefix('the ')}, {span}{micrometres}; none is assumed"
    )
    return ""


def micrometres_or_not(axis: Floats, which: str, called: str) -> str:
    """The sentence that asks for the unit of an axis ``called`` wavelengths that runs where those in µm do."""
    low, high = axis.min(), axis.max()
    return (
        f"{which} '{shorten(called)}' runs from {low:g} to {high:g} and says no unit, which is {1e3 * low:g} to "
        f"{1e3 * high:g} nm if these are µm, and no wavelength of a spectrometer if they are nm; call it "
        "'wavelength (µm)', or 'wavelength (nm)' if it is that."
    )


def other_unit(header: str) -> str:
    """The unit that the header of an axis that is no wavelength states; none where wavelengths have that unit too, so
    that a binding energy in eV never becomes a wavelength."""
    unit = split_unit(header)[1]
    return unit if units.wavelength_unit(unit) is None else ""


def in_nanometres(axis: Floats, recording: Recording) -> Floats:
    """An axis of photon energies as wavelengths in nm, noted; any other as it is."""
    converted = units.to_nanometres(axis, recording.wavelength_unit)
    if converted is None:
        return axis
    recording.notes.append(
        f"wavelengths converted to nm from {recording.wavelength_unit}: {NANOMETRE_ELECTRONVOLT:g} nm eV divided "
        "by the energy"
    )
    recording.wavelength_unit = "nm"
    return converted
