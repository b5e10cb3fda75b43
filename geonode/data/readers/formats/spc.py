"""Thermo/Galactic SPC (1996 and later): even X, one X for all, or an X for each trace.

After the format's specification ("Galactic Universal Data Format", SPC.H): a header of 512 bytes; X values if they are
uneven and shared; then each trace with a header of 32 bytes, its own X if so flagged, and Y as floats or as integers
with a shared exponent of two. Everything that a header claims is checked against the length of the file before
anything is allocated.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from geonode.data.checks import LARGEST, SMALLEST
from geonode.data.readers import names, text, units
from geonode.data.readers.base import READERS, Particularity, Reader
from geonode.data.readers.recording import Recording, Trace

_HEADER, _SUBHEADER = 512, 32
_LITTLE, _BIG, _OLD = 0x4B, 0x4C, 0x4D  # versions: byte orders of the current one, and the one before 1996
_FLOATS = -128  # the exponent that stands for ordinates written as floats
# Flags of the first byte.
_Y16, _MULTI, _XY_EACH, _X_VALUES = 0x01, 0x04, 0x40, 0x80
_WAVELENGTH_UNITS = {1: "cm-1", 2: "µm", 3: "nm", 13: "cm-1"}
_OTHER_UNITS = {4: "s", 5: "min", 6: "Hz", 7: "kHz", 8: "MHz", 9: "m/z", 10: "ppm", 11: "days", 12: "years", 14: "eV"}
_SIGNALS = {
    1: ("interferogram", ""),
    2: ("absorbance", ""),
    3: ("Kubelka-Munk", ""),
    4: ("counts", ""),
    11: ("signal", "%"),
    128: ("transmittance", ""),
    129: ("reflectance", ""),
    131: ("emission", ""),
}


@READERS.register("spc")
class SpcReader(Reader):
    """Thermo/Galactic SPC, one trace or many."""

    format = "Thermo/Galactic SPC"
    summary = "Thermo/Galactic SPC"
    particularity = Particularity.STRUCTURE

    def sniff(self, head: bytes) -> bool:
        """The version byte and the fields of the header beside it: alone, it is the K of every ZIP."""
        if len(head) < 32:
            return False
        if head[1] == _OLD:
            return _is_old(head)
        return head[1] in (_LITTLE, _BIG) and _is_header(head, "<" if head[1] == _LITTLE else ">")

    def read(self, path: Path) -> Recording:
        """Read an SPC file.

        Raises:
            ReaderError: truncated, or of the version before 1996.
        """
        data = text.read_bytes(path)
        recording = self.recording(path)
        if data[1] == _OLD:
            raise recording.fail(
                "SPC of the version before 1996, which is not read; save it anew in the current version."
            )
        order = "<" if data[1] == _LITTLE else ">"
        if len(data) < _HEADER:
            raise recording.fail(f"{len(data)} bytes, fewer than the header has; the file is truncated.")
        flags = data[0]
        exponent, count = struct.unpack_from(order + "bi", data, 3)
        # struct aligns nothing with an explicit order, so the offsets are those of the specification.
        first, last, traces = struct.unpack_from(order + "ddi", data, 8)
        recording.wavelength_unit = _WAVELENGTH_UNITS.get(data[28]) or _OTHER_UNITS.get(data[28], "")
        recording.signal, recording.signal_unit = _SIGNALS.get(data[29], ("signal", ""))
        if data[28] in _OTHER_UNITS:
            recording.notes.append(f"the abscissa is no wavelength: the file says {recording.wavelength_unit}")
        elif data[28] not in (0, *_WAVELENGTH_UNITS):
            recording.notes.append(f"the abscissa is no wavelength: the file says kind {data[28]} of the specification")
        traces = max(traces, 1) if flags & _MULTI else 1
        if traces > len(data) // _SUBHEADER:
            raise recording.fail(
                f"the header announces {traces} traces, for which the file is too short; it is truncated."
            )
        reader = _Reader(data, order, flags, exponent, recording)
        if flags & _XY_EACH and flags & _X_VALUES:
            spectra = reader.traces_with_own_x(traces, count)
        else:
            spectra = reader.traces_with_one_x(traces, count, first, last)
        if data[28] == 0:
            nm = all(units.is_plausible_nm(x) for x, _ in spectra if len(x))
            recording.wavelength_unit = "nm" if nm else ""
            taken = "taken as wavelengths in nm" if nm else "no unit is assumed"
            recording.notes.append(f"the file does not say what its abscissa is; {taken}")
        comment = data[88:218].split(b"\0", 1)[0].decode("latin-1").strip()
        title = text.shorten(comment, 80) or path.stem
        for k, (x, y) in enumerate(spectra):
            bad = ~np.isfinite(y)
            if bad.any():
                recording.mask_reasons["not a number"] += int(bad.sum())
            name = title if len(spectra) == 1 else f"trace {k + 1}"
            recording.traces.append(
                Trace(name, x, y, f"trace {k + 1}", masked=bad, keys=(str(k + 1), path.name, path.stem))
            )
        if comment and len(spectra) > 1:
            recording.notes.append(f"comment of the file: {title}")
        names.set_concentrations_from_names(recording, "the comment of the file")
        return recording


def _is_header(head: bytes, order: str) -> bool:
    """Codes as the specification has them, and counts or ends of the abscissa (a damaged file may lack one of them)."""
    points = struct.unpack_from(order + "i", head, 4)[0]
    first, last, traces = struct.unpack_from(order + "ddi", head, 8)
    counts = 0 <= points <= 2**28 and 0 <= traces <= 2**24
    axes = all(code <= 30 or code == 255 for code in (head[28], head[30]))
    codes = axes and (head[29] <= 26 or 128 <= head[29] <= 131) and head[2] <= 14
    return codes and (counts or (_is_abscissa(first) and _is_abscissa(last)))


def _is_old(head: bytes) -> bool:
    """The header of the version before 1996: floats, also for the number of points."""
    points, first, last = struct.unpack_from("<fff", head, 4)
    return 1 <= points <= 2**24 and points == int(points) and _is_abscissa(first) and _is_abscissa(last)


def _is_abscissa(value: float) -> bool:
    return value == 0 or SMALLEST < abs(value) < LARGEST


class _Reader:
    """Takes values off the file in order, and refuses to go past its end."""

    def __init__(self, data: bytes, order: str, flags: int, exponent: int, recording: Recording) -> None:
        self.data, self.order, self.flags, self.exponent, self.recording = data, order, flags, exponent, recording
        self.at = _HEADER

    def take(self, kind: str, count: int) -> np.ndarray:
        """``count`` values of a numpy kind such as ``f4``, as float64."""
        dtype = np.dtype(self.order + kind)
        if count < 1 or count * dtype.itemsize > len(self.data) - self.at:
            raise self.recording.fail(
                f"{count} values announced at byte {self.at} of {len(self.data)}; the file is truncated or damaged, so "
                "export it again."
            )
        values = np.frombuffer(self.data, dtype, count, self.at)
        self.at += count * dtype.itemsize
        with np.errstate(invalid="ignore"):  # signalling NaNs
            return values.astype(np.float64)

    def ordinates(self, exponent: int, count: int) -> np.ndarray:
        """Y: floats where the exponent is −128, else integers of 32 or 16 bits, times 2 to the exponent."""
        if exponent == _FLOATS:
            return self.take("f4", count)
        bits = 16 if self.flags & _Y16 else 32
        return np.ldexp(self.take(f"i{bits // 8}", count), exponent - bits)

    def subheader(self) -> tuple[int, int]:
        """(exponent, points) of the trace that begins here."""
        if self.at + _SUBHEADER > len(self.data):
            raise self.recording.fail("the header of a trace lies beyond its end; the file is truncated.")
        exponent = struct.unpack_from("b", self.data, self.at + 1)[0]
        points = struct.unpack_from(self.order + "i", self.data, self.at + 16)[0]
        self.at += _SUBHEADER
        # Floats throughout where the main header says so, whatever stands here.
        own = self.flags & _MULTI and self.exponent != _FLOATS
        return (exponent if own else self.exponent), points

    def traces_with_one_x(self, traces: int, count: int, first: float, last: float):
        if self.flags & _X_VALUES:
            x = self.take("f4", count)
        else:
            if not 1 <= count <= len(self.data) // 2:
                raise self.recording.fail(f"{count} points announced in {len(self.data)} bytes; the file is damaged.")
            if not (np.isfinite(first) and np.isfinite(last)):
                raise self.recording.fail("its first or last abscissa is no number; the file is damaged.")
            x = np.linspace(first, last, count)
        spectra = []
        for _ in range(traces):
            exponent, _ = self.subheader()
            spectra.append((x, self.ordinates(exponent, count)))
        return spectra

    def traces_with_own_x(self, traces: int, count: int):
        spectra = []
        for _ in range(traces):
            exponent, points = self.subheader()
            points = points or count  # a lone trace may say it in one header or the other
            x = self.take("f4", points)
            spectra.append((x, self.ordinates(exponent, points)))
        return spectra
