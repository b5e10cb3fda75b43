"""The standards as measured, and the way of an unknown from the instrument to the calibration: aligned, then
preprocessed as the standards were."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from geonode.calibration.gp.geodesic_gp import GeodesicGP
from geonode.data.preprocessing import Preprocessing
from geonode.errors import InputError
from geonode_runtime.unknowns import Unknown, prepare_unknown


class MeasuredStandards:
    """Standards before preprocessing, but within its leading ranges.

    Args:
        concentrations: ``[N]``, user units.
        spectra, wavelengths: ``[N, W]``, ``[W]`` as the calibration has them. gp: the process through them.
        preprocessing: what made them (fitted), or None.

    Attributes:
        spectra, wavelengths, gp: ``[N, V]``, ``[V]`` as measured, and the process through those.

    Raises:
        InputError: a preprocessing of other standards.
    """

    def __init__(
        self,
        concentrations: np.ndarray,
        spectra: np.ndarray,
        wavelengths: np.ndarray,
        gp: GeodesicGP,
        preprocessing: Preprocessing | None,
    ) -> None:
        self.preprocessing = preprocessing
        self.spectra, self.wavelengths, self.gp = spectra, wavelengths, gp
        if preprocessing is None:
            return
        self.spectra, self.wavelengths = preprocessing.measured
        if len(self.spectra) != len(spectra):
            raise InputError(
                f"the preprocessing was fitted on {len(self.spectra)} spectra and there are {len(spectra)} standards; "
                "fit it on these standards."
            )
        self.gp = GeodesicGP().fit(concentrations, self.spectra)

    def spectra_without(self, level_index: np.ndarray) -> Callable[[int], np.ndarray] | None:
        """For steps that learn: level left out → all spectra ``[N, W]`` as steps fitted without it make them."""
        chain = self.preprocessing
        if chain is None or not chain.learns:
            return None
        return partial(_fitted_without, chain, level_index)

    def aligned(self, spectra: Any, *, wavelengths: Any = None, **options: Any) -> Unknown:
        """The spectra of an unknown on ``wavelengths [V]``, not preprocessed yet.

        Raises:
            InputError: see :func:`geonode_runtime.unknowns.prepare_unknown`, which takes the ``options``.
        """
        if wavelengths is None and self.preprocessing is not None:
            whole = self.preprocessing.wavelengths  # leading ranges are the calibration's business, not the caller's
            if np.shape(spectra)[-1:] == whole.shape:
                wavelengths = whole
        return prepare_unknown(spectra, self.wavelengths, self.gp.level_means, wavelengths=wavelengths, **options)

    def preprocessed(self, unknown: Unknown, name: str = "the unknown") -> Unknown:
        """What `aligned` gave, preprocessed as the standards were.

        Raises:
            InputError: masked values that a step needs, or nothing but masked values left.
        """
        if self.preprocessing is None:
            return unknown
        spectra, usable = self.preprocessing.transform_measured(unknown.spectra, unknown.usable, name)
        if not usable.any():
            raise InputError(f"every wavelength of {name} within the ranges of the preprocessing is masked.")
        note = f"preprocessed as the standards were: {self.preprocessing}"
        return Unknown(np.where(usable, spectra, 0.0), usable, (*unknown.notes, note))


def _fitted_without(chain: Preprocessing, level_index: np.ndarray, level: int) -> np.ndarray:
    return chain.fitted_without(level_index == level)
