"""Bruker OPUS, through the package ``brukeropus`` of the extra ``readers``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from geonode.data.readers import foreign, names
from geonode.data.readers.base import READERS, Particularity, Reader
from geonode.data.readers.recording import Recording, Trace

# Result spectra first: a file that has one is meant for it, whatever single-channel spectra lie beside it.
_CODE = """
from brukeropus import read_opus
file = read_opus(path)
names = dict(a='absorbance', t='transmittance', r='reflectance', atr='absorbance', logr='absorbance', km='Kubelka-Munk',
             ra='Raman', e='emission', sm='single channel')
keys = [key for key in names if key in file.data_keys or key in file.series_keys][:1]
found, meta = [], {'key': keys[0] if keys else '', 'all': ' '.join(file.all_data_keys)}
for key in keys:
    data = getattr(file, key)
    meta['signal'], meta['unit'] = names[key], str(getattr(data.params, 'dxu', ''))
    title = str(getattr(file.params, 'snm', '') or '')
    if np.ndim(data.y) == 2:
        found += [(f'{title} {i + 1}', data.x, y) for i, y in enumerate(data.y)]
    else:
        found.append((title, data.x, data.y))
"""
_UNITS = {"WN": "cm-1", "MI": "µm", "LGW": "log cm-1"}


@READERS.register("opus")
class OpusReader(Reader):
    """Bruker OPUS, by the package brukeropus."""

    format = "Bruker OPUS"
    summary = "Bruker OPUS (needs the extra 'readers')"
    particularity = Particularity.SIGNATURE

    def sniff(self, head: bytes) -> bool:
        """The four bytes that every OPUS file begins with."""
        return head.startswith(b"\n\n\xfe\xfe")

    def read(self, path: Path) -> Recording:
        """Read the result spectrum, or the series of them, of an OPUS file.

        Raises:
            ReaderError: without the package, damaged, or with no spectrum.
        """
        recording = self.recording(path)
        found, meta = foreign.parse("brukeropus", "brukeropus", _CODE, recording)
        if not found:
            there = meta.get("all") or "none"
            raise recording.fail(
                f"no absorbance or other result spectrum (data blocks: {there}); export one from OPUS."
            )
        recording.signal, recording.wavelength_unit = meta["signal"], _UNITS.get(meta["unit"], "cm-1")
        other = [key for key in meta["all"].split() if key != meta["key"]]
        if other:
            recording.notes.append(f"data blocks left out: {' '.join(other)}")
        for k, (name, x, y) in enumerate(found):
            bad = ~np.isfinite(y)
            if bad.any():
                recording.mask_reasons["not a number"] += int(bad.sum())
            recording.traces.append(Trace(name.strip() or path.stem, x, y, f"spectrum {k + 1}", masked=bad))
        names.set_concentrations_from_names(recording, "the sample name")
        return recording
