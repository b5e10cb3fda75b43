"""Standards of several levels that end at one value: a detector, or an export, that was at its limit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from geonode.data.checks import Floats, format_level

_LONG = 3
"""So many neighbours at the highest value of all are a flat top; two may be equal by rounding."""
_STEPS = 3.0
"""A peak that rounding alone makes flat falls by a step of the rounding beside it; one that is cut falls by more."""


def flat_tops(spectra: Floats, levels: Floats, wavelengths: Floats) -> str:
    """What to say of standards of several levels that are cut flat at the same value; empty where there are none.

    Args:
        spectra: ``[N, W]``, NaN where masked. levels: ``[N]`` the concentration of each. wavelengths: ``[W]``.
    """
    if not np.isfinite(spectra).any():
        return ""
    top = float(np.nanmax(spectra))
    values = np.unique(spectra[np.isfinite(spectra)])
    step = float(np.diff(values).min()) if len(values) > 1 else 0.0
    cut = np.stack([_cut(row, top, _STEPS * step) for row in spectra])
    found = np.unique(levels[cut.any(axis=1)])
    if len(found) < 2:
        return ""
    at = wavelengths[cut.any(axis=0)]
    named = ", ".join(format_level(one) for one in found)
    return (
        f"the standards {named} are cut flat at the same value, {top:.6g}, between {at.min():g} and {at.max():g}: the "
        "detector, or the export, was at its limit there, and nothing of the concentration is in it; dilute them or "
        "shorten the path, or leave those wavelengths out"
    )


def _cut(row: Floats, top: float, least: float) -> NDArray[np.bool_]:
    """``[W]`` where a spectrum is at ``top`` for some neighbours on end, and falls from it by more than ``least``."""
    at = np.concatenate([[False], row == top, [False]])
    edges = np.flatnonzero(np.diff(at.astype(int)))
    found = np.zeros(len(row), dtype=bool)
    for first, end in edges.reshape(-1, 2):
        beside = [row[k] for k in (first - 1, end) if 0 <= k < len(row) and np.isfinite(row[k])]
        if end - first >= _LONG and beside and top - max(beside) > least:
            found[first:end] = True
    return found
