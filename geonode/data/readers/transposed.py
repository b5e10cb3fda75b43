"""Tables that lie on their side: samples in rows under a first cell that says that wavelengths run down.

Read as they are headed, their wavelengths become concentrations, and what comes out looks like a calibration. Each sign
alone may be genuine (a plate of many standards at few filters has more columns than rows), so several must agree.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from geonode.data.checks import Floats
from geonode.data.readers import units
from geonode.data.readers.names import is_replicate, parse_header
from geonode.data.readers.recording import Recording

FEWEST_COLUMNS = 30
"""An axis of fewer wavelengths may as well be so many standards."""
_FEWEST_BESIDE_ZERO = 8
_WIDER_THAN_LONG = 3.0
_MUCH_WIDER = 10.0
_MOST_STANDARDS = 96
"""Wells of a plate: more levels than these, one spectrum each and evenly spaced, no one prepares."""
_WIDEST_AXIS = 12.0
"""Largest over smallest: 190 to 1100 nm, 350 to 2500 nm and 400 to 4000 cm-1 are less, dilutions often more."""
_EVEN = 0.2
"""Steps of an axis differ by no more than this of their median; spectrometers' do where pixels are not equidistant."""


def refuse_transposed(header: list[str], down: Floats, recording: Recording, called: str = "wavelength") -> None:
    """Refuse a table whose headers are wavelengths and whose first column, called ``called``, holds the samples.

    Args:
        header: the headers behind the first column. down: ``[rows]`` the first column, NaN where it is no number.

    Raises:
        ReaderError: beyond doubt the table is transposed; both readings are named.
    """
    said = both_readings(header, down, called)
    if said:
        raise recording.fail(
            f"the table looks transposed: the first column is headed '{called}', so {said}. If that is meant, head "
            "the first column 'concentration', for samples in rows, or swap rows and columns."
        )


def both_readings(header: Sequence[str], down: Floats, called: str) -> str:
    """What a table would hold as it is headed, and what the other way, if beyond doubt it is transposed; else empty.

    Args:
        header: the levels, as they are written. down: ``[rows]`` the wavelengths, NaN where there is no number.
        called: what the wavelengths are.
    """
    across = _axis_across(header)
    finite = down[np.isfinite(down)]
    if across is None or not finite.size or not _is_transposed(across, finite, len(down), called):
        return ""
    low, high = f"{finite.min():.10g}", f"{finite.max():.10g}"
    first, last = f"{across.min():.10g}", f"{across.max():.10g}"
    unit = units.wavelength_unit(called) or "nm"
    return (
        f"it would hold {len(across)} standards of {first} to {last} at {len(down)} wavelengths from {low} to {high} "
        f"{unit}; the other way it holds {len(down)} spectra at {len(across)} wavelengths from {first} to {last}"
    )


def _axis_across(header: Sequence[str]) -> Floats | None:
    """Headers as wavelengths in nm or cm-1: distinct, in order, no replicates; None if they are none."""
    parsed = [parse_header(cell) for cell in header]
    if len(parsed) < _FEWEST_BESIDE_ZERO or any(one is None for one in parsed):
        return None
    across = np.array([one[0] for one in parsed if one is not None])
    steps = np.diff(across)
    in_order = (steps > 0).all() or (steps < 0).all()
    return across if in_order and units.is_plausible(across) and not any(map(is_replicate, header)) else None


def _is_transposed(across: Floats, down: Floats, rows: int, called: str) -> bool:
    """Whether the signs agree: headers evenly spaced as an axis is, and rows that no axis of wavelengths has."""
    wider = len(across) / rows
    steps = np.abs(np.diff(across))
    even = (np.abs(steps - np.median(steps)) <= _EVEN * np.median(steps)).all()
    if not even or across.max() > _WIDEST_AXIS * across.min():
        return False
    in_nm = units.wavelength_unit(called) in (None, "nm")
    if in_nm and down.min() <= 0.0:  # no wavelength, so that the headed reading fails in any case
        return wider > 1.0
    if len(across) < FEWEST_COLUMNS or wider < _WIDER_THAN_LONG:
        return False
    beyond_spectrometers = in_nm and not units.is_plausible_nm(down)
    return beyond_spectrometers or (wider >= _MUCH_WIDER and len(across) > _MOST_STANDARDS)
