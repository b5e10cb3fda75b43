"""Unknown spectra made fit for a calibration: see :mod:`geonode_runtime.unknowns`, where that is done."""

from geonode_runtime.unknowns import Unknown, prepare_unknown

__all__ = ["Unknown", "prepare_unknown"]
