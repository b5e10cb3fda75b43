"""Standards that are transmittance, said or not: they are taken as they are, and that is told."""

from __future__ import annotations

import numpy as np

from geonode.data.checks import Floats

LOWEST, HIGHEST = -5.0, 115.0
"""Percent transmittance with its noise, and a blank a little clearer than the reference."""
CLEAR = 50.0
"""The clearest wavelength of the lowest standard lets more through; no photometer shows an absorbance like it."""
FALLING = -0.8
"""Correlation of a spectrum's mean with the rank of its concentration, from which there is less where there is more."""
_REMEDY = "absorbance, 2 − log10(%T), is nearer to a straight line of the concentration"


def transmittance_note(signal: str, unit: str, spectra: Floats, concentrations: Floats) -> str:
    """What to tell of standards that are, or look like, transmittance; empty of others.

    Args:
        signal, unit: as the file says them, or as they were assumed (absorbance, or "signal" of which nothing is said).
        spectra: ``[N, W]``, NaN where masked. concentrations: ``[N]`` or ``[N, D]``; of several analytes only
            what is said is told.
    """
    if signal == "transmittance":
        of = "per cent" if unit == "%" else "the unit of the file"
        return f"transmittance, in {of}: taken as it is; {_REMEDY}"
    if signal not in ("absorbance", "signal") or concentrations.size != len(spectra):
        return ""
    if not _like_percent(spectra, concentrations.ravel()):
        return ""
    low, high = np.nanmin(spectra), np.nanmax(spectra)
    return (
        f"values of {low:.3g} to {high:.3g}, smaller where there is more, look like percent transmittance and were "
        f"taken as they are: if they are that, convert them, for {_REMEDY}"
    )


def _like_percent(spectra: Floats, concentrations: Floats) -> bool:
    if not np.isfinite(spectra).any(axis=1).all() or len(np.unique(concentrations)) < 3:
        return False
    if np.nanmin(spectra) < LOWEST or np.nanmax(spectra) > HIGHEST:
        return False
    lowest = spectra[concentrations == concentrations.min()]
    means, ranks = np.nanmean(spectra, axis=1), np.unique(concentrations, return_inverse=True)[1]
    if np.nanmax(lowest) < CLEAR or np.ptp(means) == 0.0:
        return False
    return bool(np.corrcoef(ranks, means)[0, 1] <= FALLING)
