"""Simulated spectroscopic calibrations, from chemistry to noise, made in batches on the device.

    from geonode.corpus import draw, FAMILIES

    assays = draw(1024, levels=8, wavelengths=64, seed=0, step=17, device="cuda")
    assays.spectra  # [1024, 8, 64]; assays.truth is without noise

What is in it, in what shares and why: docs/corpus.md. Each kind of chemistry, spectrum, detection, design and error is
one file in the folder of its sort.
"""

from geonode.corpus.assays import Assays
from geonode.corpus.draw import common_levels, draw
from geonode.corpus.stages import DESIGN_NAMES, DETECTIONS, ERROR_NAMES, FAMILIES, SPECTRUM_KINDS
from geonode.corpus.unknowns import UNKNOWNS

__all__ = [
    "DESIGN_NAMES",
    "DETECTIONS",
    "ERROR_NAMES",
    "FAMILIES",
    "SPECTRUM_KINDS",
    "UNKNOWNS",
    "Assays",
    "common_levels",
    "draw",
]
