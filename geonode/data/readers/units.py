"""What headers say: the axis and its unit, what was measured, and columns that only count."""

from __future__ import annotations

import re

import numpy as np

from geonode.data.checks import Floats
from geonode_runtime.axes import NANOMETRE_ELECTRONVOLT

# A number before a unit makes it a quantity (5 µM, Abs 450 nm), and capitals make molar of metres (nM, µM).
_NOT_BEHIND = r"(?<![A-Za-z\d])(?<!\d[ _])"
# One line an axis: what names it beyond doubt, and its unit. The first that fits counts.
_AXES = (
    (re.compile(r"cm\s*(\^|\*\*)?\s*[{(]?\s*[-−–⁻]\s*[1¹]|\b1\s*/\s*cm|(?<![a-z])/\s*cm\b", re.I), "cm-1"),
    (re.compile(r"\binverse cm|\bkaysers?\b|reciprocal c", re.I), "cm-1"),
    (re.compile(rf"{_NOT_BEHIND}([µμu]m|UM)\b|(?i:micro ?met|\bmicrons?\b)"), "µm"),
    (re.compile(rf"{_NOT_BEHIND}(?i:m\s?eV)\b"), "meV"),
    (re.compile(rf"{_NOT_BEHIND}(?i:eV)\b|(?i:electron ?-?volt)"), "eV"),
    (re.compile(r"Å|å\s*[)\]]|angstr(ö|oe|o)m", re.I), "Å"),
    (re.compile(r"(?<![a-z])THz\b", re.I), "THz"),
    (re.compile(r"(?<![a-z])GHz\b", re.I), "GHz"),
    (re.compile(rf"{_NOT_BEHIND}(n\.?m|NM)\b\.?|(?i:nano ?met)"), "nm"),
)
_WAVENUMBER = re.compile(
    r"wave ?-?_?num|raman|wellenzahl|nombre d.?onde|n[uú]mero d.? ?onda|numero d.onda|波数|волновое число", re.I
)
_WAVELENGTH = re.compile(
    r"wave ?-?_?len|^\s*(λ|lambda|wl|wvl|lam)\b|wellenl|longueur d.?onde|longitud de onda|lunghezza d.?onda|"
    r"comprimento de onda|golflengte|våglängd|bølgelængde|波長|波长|длина волны",
    re.I,
)
# Inverse lengths that are no cm-1, and thousands of these: taken as they are written, and never for nm, µm or cm-1.
_POWER = r"\s*(?:\^|\*\*)?\s*[{(]?\s*[-−–⁻]\s*[1¹]"
_OTHER_INVERSE = re.compile(
    rf"(?<![A-Za-z\d])1\s*/\s*(?:[nµμumpk]m|NM|UM|Å)\b|{_NOT_BEHIND}(?:[nµμumpk]m|Å){_POWER}(?!\d)|"
    rf"(?<![A-Za-z])k\s?cm{_POWER}|\b10(?:00|\s*(?:\^|\*\*)?\s*[3³])\s*[·*x×]?\s*cm{_POWER}"
)
# Lengths and their inverses that are no unit of these axes; taken as they are written, and never for nm or cm-1.
_OTHER_LENGTH = re.compile(r"[\[(/]\s*((?:1\s*/\s*)?(?:[pfmd]|k)?m(?:\s*\^?\s*[-−⁻][1¹])?)\s*[\])]?\s*$")
_OTHER = re.compile(
    r"\b(time|zeit|temps|tiempo|tempo|sec(onds?)?|min(utes?)?|hours?|temp(erature)?|temperatur|potential|voltage|volt|"
    r"conc(entration)?|dose|volume|ph|(binding|kinetic) energy|energy loss|m/z|mass|2.?theta|angle|cycle|distance|"
    r"depth)\b|^(t|[BK]\.?E\.?)\s*[(/\[]",
    re.I,
)
# An energy or a frequency in a unit that is not read, and what may stand beside a wavelength in a header of one.
_OTHER_SCALE = re.compile(
    r"\b(frequen(cy|z)|fréquence|frecuencia|[kMP]?Hz|[kM]eV|kJ|kcal|hartree|energ(y|ie|ía)|fields?|currents?|pressure|"
    r"flow|power|bias|gate|strain|stress|(chemical )?shift|retention|delay|elution)\b",
    re.I,
)
_COUNTER = re.compile(
    r"\s*(#|no\.?|nr\.?|n|i|idx|index|rows?|lines?|pixels?|px|(data ?)?points?|channels?|ch\.?|scan|unnamed: ?0|id|"
    r"pixel ?#?|zeile|lfd\.? ?nr\.?|(daten)?punkte?|kanal|ligne|canal|fila|riga|n[°º])\s*"
    r"(no\.?|nr\.?|numbers?|index|#)?\s*",
    re.I,
)
_TEMPERATURE = re.compile(r"\s*(t\s*[\[(/]?\s*[°º]|temp(erature?|eratura|érature)?\b)\D*", re.I)


def wavelength_unit(header: str) -> str | None:
    """``nm``, ``µm``, ``cm-1``, ``eV``, … of a header that names such an axis; None of any other header."""
    if _OTHER.search(header):
        return None
    if inverse := _OTHER_INVERSE.search(header):
        return inverse.group()
    for pattern, unit in _AXES:
        if pattern.search(header):
            return unit
    if not (_WAVENUMBER.search(header) or _WAVELENGTH.search(header)):
        return None
    if other := _OTHER_LENGTH.search(header):
        return other.group(1)
    return "cm-1" if _WAVENUMBER.search(header) else "nm"


def states_unit(header: str) -> bool:
    """Whether a header of the axis names the unit itself, and not only what kind of axis it is."""
    return any(pattern.search(header) for pattern in (*(one for one, _ in _AXES), _OTHER_LENGTH, _OTHER_INVERSE))


def is_other_axis(header: str) -> bool:
    """Whether a header names an axis that is no wavelength, such as a time or a frequency in Hz."""
    return bool(_OTHER.search(header) or _OTHER_SCALE.search(header))


def is_temperature(header: str) -> bool:
    """Whether a header names a column of temperatures, as plate readers put beside the wavelengths."""
    return bool(_TEMPERATURE.fullmatch(header))


def is_counter(header: str) -> bool:
    """Whether a header names what only counts: an index, a row, a pixel."""
    return bool(_COUNTER.fullmatch(header))


def counts(axis: Floats) -> bool:
    """Whether numbers only count: 0, 1, 2, … or 1, 2, 3, …"""
    return bool(len(axis) > 2 and axis[0] in (0.0, 1.0) and (np.diff(axis) == 1).all())


def is_plausible(axis: Floats) -> bool:
    """In the range where spectra are measured, in nm or cm⁻¹."""
    return bool(axis.min() >= 100 and axis.max() <= 50_000)


def is_plausible_nm(axis: Floats) -> bool:
    """In the range of photometers and fluorometers, from the vacuum ultraviolet to the near infrared, in nm."""
    return bool(axis.min() >= 100 and axis.max() <= 3500)


def is_plausible_um(axis: Floats) -> bool:
    """In the same range in µm, where nothing is measured in nm."""
    return is_plausible_nm(1e3 * axis)


_SIGNALS = (
    (
        re.compile(r"(?<![a-z])(abs|absorban(ce|z)|absorption|extin[ck]tion|od|a\.?u\.?)(?![a-z])", re.I),
        "absorbance",
        "",
    ),
    (re.compile(r"^A$"), "absorbance", ""),
    (re.compile(r"%\s?T|T\s?%|transmi(ttance|ssion)", re.I), "transmittance", ""),
    (re.compile(r"%\s?R|R\s?%|reflect(ance|ivity)", re.I), "reflectance", ""),
    (re.compile(r"fluorescence|emission|excitation|\brfu\b", re.I), "fluorescence", ""),
    (re.compile(r"counts?|intensity", re.I), "intensity", ""),
)


def signal_of(header: str) -> tuple[str, str] | None:
    """(signal, unit) that a header names, such as ``Abs`` or ``%T``; None if it names none."""
    for pattern, signal, unit in _SIGNALS:
        if pattern.search(header):
            return signal, "%" if "%" in header and signal in ("transmittance", "reflectance") else unit
    return None


def to_nanometres(values: Floats, unit: str) -> Floats | None:
    """An axis of photon energies as wavelengths in nm; None for any other unit, or where an energy is not positive."""
    scale = {"eV": 1.0, "meV": 1000.0}.get(unit)
    if scale is None or not (values > 0).all():
        return None
    return NANOMETRE_ELECTRONVOLT * scale / values
