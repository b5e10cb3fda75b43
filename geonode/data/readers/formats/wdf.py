"""Renishaw WDF, through the package ``renishaw-wdf`` of the extra ``readers``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from geonode.data.readers import foreign, names
from geonode.data.readers.base import READERS, Particularity, Reader
from geonode.data.readers.recording import Recording, Trace

_CODE = """
from wdf import Wdf
with Wdf(path) as file:
    x = file.xlist()
    count = len(file)
    if count * len(x) > 3_000_000:
        raise ValueError(f'{count} spectra of {len(x)} points, a map and no set of standards')
    title = file.hdr.title
    found = [(f'{title} {i + 1}' if count > 1 else title, x, file.spectrum(i)) for i in range(count)]
    meta = {'unit': x.units.name if hasattr(x, 'units') else '', 'values': file.hdr.units.name}
"""
_UNITS = {"RamanShift": "cm-1", "Wavenumber": "cm-1", "Nanometre": "nm", "Micron": "µm"}


@READERS.register("wdf")
class WdfReader(Reader):
    """Renishaw WDF, by the package renishaw-wdf."""

    format = "Renishaw WDF"
    summary = "Renishaw WDF (needs the extra 'readers')"
    particularity = Particularity.SIGNATURE

    def sniff(self, head: bytes) -> bool:
        """``WDF1``."""
        return head.startswith(b"WDF1")

    def read(self, path: Path) -> Recording:
        """Read the spectra of a WDF file.

        Raises:
            ReaderError: without the package, damaged, or a map.
        """
        recording = self.recording(path, signal="intensity")
        found, meta = foreign.parse("wdf", "renishaw-wdf", _CODE, recording)
        if not found:
            raise recording.fail("no spectrum in it; export one from WiRE.")
        recording.wavelength_unit = _UNITS.get(meta["unit"], "cm-1")
        recording.signal_unit = meta["values"].lower()
        for k, (name, x, y) in enumerate(found):
            bad = ~np.isfinite(y)
            if bad.any():
                recording.mask_reasons["not a number"] += int(bad.sum())
            recording.traces.append(Trace(name.strip() or path.stem, x, y, f"spectrum {k + 1}", masked=bad))
        names.set_concentrations_from_names(recording, "the title")
        return recording
