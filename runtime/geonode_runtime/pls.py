"""The answer of PLS, for standards that lie on no curve of concentration.

Where several things vary besides the analyte, spectra do not lie on one curve; a regression vector that is blind to the
others does much better. Value: x·b + offset; its error is that of cross-validation with a level left out at a time, and
its interval value ± t RMSECV, t with n − 1 degrees of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geonode_runtime.distributions import student_quantile
from geonode_runtime.sets import Component
from geonode_runtime.standard_spectra import StandardSpectra


@dataclass(frozen=True)
class PLSRegression:
    """A fitted PLS.

    Attributes:
        vector: ``[W]`` b; centre: ``[W]`` mean spectrum of the standards; offset: their mean concentration.
        error: root mean squared error with each level left out, user units.
        components: how many were taken. levels: n of the standards.
    """

    vector: np.ndarray
    centre: np.ndarray
    offset: float
    error: float
    components: int
    levels: int

    def value(self, spectrum: np.ndarray, usable: np.ndarray | None, standards: StandardSpectra) -> float:
        """Concentration of ``spectrum [W]``; masked values (``usable [W]`` False) are filled in from the span of the
        standards, fitted to the others by least squares."""
        x = spectrum - self.centre
        if usable is not None and not usable.all():
            known = (x / standards.scale)[usable]
            at = np.linalg.lstsq(standards.basis[usable], known, rcond=None)[0]
            x = np.where(usable, x, standards.scale * (standards.basis @ at))
        return float(x @ self.vector + self.offset)

    def component(self, value: float, level: float) -> Component:
        """value ± t RMSECV as the only piece of a set at ``level``."""
        half = student_quantile(max(self.levels - 1, 1), 0.5 + 0.5 * level) * self.error
        return Component(value - half, value + half, False, False, value, 0.0, 1.0, value, self.error)
