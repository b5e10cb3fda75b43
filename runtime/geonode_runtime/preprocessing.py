"""The preprocessing of an exported model, applied to an unknown as to the standards."""

from __future__ import annotations

from typing import Any

import numpy as np

from geonode_runtime.errors import InputError
from geonode_runtime.unknowns import Unknown


class Steps:
    """Cuts, matrices in bands and standard normal variates, in their order.

    Args:
        steps: as `geonode.data.plain_steps` writes them. arrays: of the model. text: how the steps are called, None
            where there are none at all.
    """

    def __init__(self, steps: list[dict[str, Any]], arrays: dict[str, np.ndarray], text: str | None) -> None:
        self._steps, self._arrays, self._text = steps, arrays, text

    def applied(self, unknown: Unknown, name: str) -> Unknown:
        """The unknown, preprocessed.

        Raises:
            InputError: masked values that a step would spread, nothing but masked values, or a constant spectrum.
        """
        if self._text is None:
            return unknown
        y, usable = unknown.spectra, unknown.usable
        for step in self._steps:
            if step["kind"] == "range":
                part = slice(step["first"], step["last"])
                y, usable = y[:, part], usable[part]
                continue
            if not usable.all():
                raise InputError(
                    f"{name}: {int((~usable).sum())} of {len(usable)} wavelengths are masked or saturated, and the "
                    f"preprocessing ({self._text}) needs them all; measure it again (diluted, if saturated), or fit "
                    "with a range that leaves them out."
                )
            y = self._transformed(step, y)
        if not np.isfinite(y).all():
            raise InputError(f"{name}: the preprocessing ({self._text}) gives values that are not finite.")
        if not usable.any():
            raise InputError(f"every wavelength of {name} within the ranges of the preprocessing is masked.")
        note = f"preprocessed as the standards were: {self._text}"
        return Unknown(np.where(usable, y, 0.0), usable, (*unknown.notes, note))

    def _transformed(self, step: dict[str, Any], y: np.ndarray) -> np.ndarray:
        if step["kind"] == "snv":
            with np.errstate(divide="ignore", invalid="ignore"):
                return (y - y.mean(1, keepdims=True)) / y.std(1, keepdims=True)
        bands, starts, offset = (self._arrays[f"step{step['index']}_{part}"] for part in ("bands", "starts", "offset"))
        rows = starts.astype(int)[:, None] + np.arange(bands.shape[1])
        return np.einsum("kwb,wb->kw", y[:, rows], bands) + offset
