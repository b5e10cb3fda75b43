"""Thermo/Galactic SPC (1996 and later): even X, one X for all, or an X for each trace; and files that only look it.

After the format's specification ("Galactic Universal Data Format", SPC.H): a header of 512 bytes; X values if they are
uneven and shared; then each trace with a header of 32 bytes, its own X if so flagged, and Y as floats or as integers
with a shared exponent of two. Everything that a header claims is checked against the length of the file before
anything is allocated.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from geonode.data.readers import names, text
from geonode.data.readers.recording import Recording, Trace
from geonode.errors import ReaderError

FORMAT = "Thermo/Galactic SPC"
SUMMARY = "Thermo/Galactic SPC"

_OLE2 = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HEADER, _SUBHEADER = 512, 32
# Flags of the first byte.
_Y16, _MULTI, _XY_EACH, _X_VALUES = 0x01, 0x04, 0x40, 0x80
_X_UNITS = {1: "cm-1", 2: "µm", 3: "nm", 13: "cm-1"}
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


def sniff(head: bytes) -> bool:
    """Version byte 0x4B, 0x4C or 0x4D at offset 1 of binary content; or OLE2, which calls itself ``.spc`` too."""
    if head.startswith(_OLE2):
        return True
    return len(head) > 32 and head[1] in (0x4B, 0x4C, 0x4D) and 0 in head[2:64]


def read(path: Path) -> Recording:
    """Read an SPC file.

    Raises:
        ReaderError: truncated, of an older version, or an OLE2 file of another vendor.
    """
    data = text.read_bytes(path)
    if data.startswith(_OLE2):
        raise ReaderError(
            f"{path}: an OLE2 compound file, such as Shimadzu UVProbe writes under the name .spc, and not Thermo SPC; "
            "export it from UVProbe as text ('Save As', 'Data Print Table')."
        )
    recording = Recording(path, FORMAT, [])
    if data[1] == 0x4D:
        raise recording.fail("SPC of the version before 1996, which is not read; save it anew in the current version.")
    order = "<" if data[1] == 0x4B else ">"
    if len(data) < _HEADER:
        raise recording.fail(f"{len(data)} bytes, fewer than the header has; the file is truncated.")
    flags = data[0]
    exponent, count = struct.unpack_from(order + "bi", data, 3)
    # struct aligns nothing with an explicit order, so the offsets are those of the specification.
    first, last, traces = struct.unpack_from(order + "ddi", data, 8)
    recording.wavelength_unit = _X_UNITS.get(data[28], "nm")
    recording.signal, recording.signal_unit = _SIGNALS.get(data[29], ("signal", ""))
    if data[28] not in _X_UNITS:
        recording.notes.append("the file does not say that its abscissa is a wavelength; taken as nm")
    traces = max(traces, 1) if flags & _MULTI else 1
    if traces > len(data) // _SUBHEADER:
        raise recording.fail(f"the header announces {traces} traces, for which the file is too short; it is truncated.")
    reader = _Reader(data, order, flags, exponent, recording)
    if flags & _XY_EACH and flags & _X_VALUES:
        spectra = reader.traces_with_own_x(traces, count)
    else:
        spectra = reader.traces_with_one_x(traces, count, first, last)
    comment = data[88:218].split(b"\0", 1)[0].decode("latin-1").strip()
    title = text.shorten(comment, 80) or path.stem
    for k, (x, y) in enumerate(spectra):
        bad = ~np.isfinite(y)
        if bad.any():
            recording.mask_reasons["not a number"] += int(bad.sum())
        name = title if len(spectra) == 1 else f"trace {k + 1}"
        recording.traces.append(
            Trace(
                name, x, y, f"trace {k + 1}", masked=bad if bad.any() else None, keys=(str(k + 1), path.name, path.stem)
            )
        )
    if comment and len(spectra) > 1:
        recording.notes.append(f"comment of the file: {title}")
    names.set_concentrations_from_names(recording, "the comment of the file")
    return recording


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
        if exponent == -128:
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
        return (exponent if self.flags & _MULTI else self.exponent), points

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
            points = points if self.flags & _MULTI else count
            x = self.take("f4", points)
            spectra.append((x, self.ordinates(exponent, points)))
        return spectra
