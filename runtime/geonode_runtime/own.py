"""Spectra of the standards themselves, given as if they were unknowns: recognised, and their own noise taken out.

The span of the standards is made of their noisy spectra and leans towards the very noise that is in them: a standard's
own coordinates contain it (√W standard deviations of it), those of a new spectrum do not. The curve is fitted with it
taken out (`geonode.calibration.inverse.model`, *self-noise*), so a standard's own spectrum compared to it as if it were new
lies many standard deviations off, in directions of which nothing but noise is known, and is drawn to wherever the curve
is uncertain enough to explain that: beyond the end of the standards. What is left without it is the fit of the standard
to its own calibration, from which RMSEC is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SAME = 1e-3
"""Fingerprints that agree to this are those of one and the same spectrum: between two measurements of one sample each
of the r + 1 numbers differs by about one."""


@dataclass(frozen=True)
class OwnSpectra:
    """The N single spectra of the standards and the noise in them that their span of r directions leans towards.

    Attributes:
        scale: ``[W]`` standard deviation of a measurement; basis: ``[W, r]`` orthonormal, of spectra ÷ ``scale``.
        fingerprints: ``[N, r + 1]``, see :func:`fingerprints`.
        noise: ``[N, r]`` the noise, along ``basis``.
        concentrations: ``[N]``, user units.
    """

    scale: np.ndarray
    basis: np.ndarray
    fingerprints: np.ndarray
    noise: np.ndarray
    concentrations: np.ndarray

    def as_new(self, spectra: np.ndarray, usable: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """``spectra [U, W]``, those of the standards without that noise and all others as they are; and which of the
        standards' each of them is ``[U]``, −1 for a new one. With wavelengths masked (``usable [W]``) all are new."""
        which = np.full(len(spectra), -1)
        if usable is not None and not usable.all():
            return spectra, which
        prints = fingerprints(spectra, self.scale, self.basis)
        rows, own = np.nonzero(np.abs(prints[:, None, -1] - self.fingerprints[None, :, -1]) <= SAME)
        same = (np.abs(prints[rows] - self.fingerprints[own]) <= SAME).all(axis=1)
        which[rows[same]] = own[same]
        found = which >= 0
        if found.any():
            spectra = spectra.copy()
            spectra[found] -= self.scale * (self.noise[which[found]] @ self.basis.T)
        return spectra, which

    def notes(self, which: Sequence[int] | np.ndarray) -> tuple[str, ...]:
        """What must be said of an unknown whose spectra are, or are not, the standards'."""
        own = {float(self.concentrations[n]) for n in which if n >= 0}
        if not own:
            return ()
        levels = ", ".join(f"{c:g}" for c in sorted(own))
        said = f"this is the spectrum of the standard {levels} itself and no new measurement"
        if len(which) > 1:
            count = int((np.asarray(which) >= 0).sum())
            said = f"{count} of the {len(which)} spectra are those of standards ({levels}) and no new measurements"
        return (f"{said}: its own noise was left out, and the result shows only how well the standards fit",)


def fingerprints(spectra: np.ndarray, scale: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """``[U, r + 1]`` of ``spectra [U, W]``: their coordinates (from zero) and their length, in standard deviations of
    noise."""
    white = spectra / scale
    return np.column_stack([white @ basis, np.linalg.norm(white, axis=1)])
