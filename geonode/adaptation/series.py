"""The earlier calibrations of an instrument, as training and judging take them: one series each."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from geonode.calibration.leave_out import levels_kept, levels_to_leave_out
from geonode.data import Preprocessing, SpectralDataset
from geonode.data.given_standards import given_standards, prepared
from geonode.errors import InputError
from geonode.prior.standards import variance_between

LEAST_SERIES = 2
LEAST_LEVELS = 4
"""With one left out three remain: the flow was never trained on fewer."""
_SAME = 1e-9  # of the range: spectra that agree so well are copies, not measurements


@dataclass(frozen=True)
class Series:
    """One calibration.

    Attributes:
        name: of its file, or what it was called.
        levels: ``[n]`` ascending concentrations. means: ``[n, W]`` their spectra, means of replicates.
        left_out: ``[m]`` positions of the levels that are left out in turn.
        variances: for each of them ``[W]``, the variance between replicates of the other levels; None without repeats.
    """

    name: str
    levels: np.ndarray
    means: np.ndarray
    left_out: np.ndarray
    variances: tuple[np.ndarray | None, ...]

    @classmethod
    def of(cls, name: str, dataset: SpectralDataset) -> Series:
        """From the standards of ``dataset``.

        Raises:
            InputError: several analytes, or fewer than four levels.
        """
        try:
            dataset = prepared(dataset)
            dataset.require_levels(LEAST_LEVELS)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
        left_out = levels_to_leave_out(len(dataset.levels))
        variances = tuple(variance_between(dataset, int(i)) for i in left_out)
        levels, means = (
            np.asarray(dataset.levels, dtype=np.float64),
            np.asarray(dataset.level_means(), dtype=np.float64),
        )
        return cls(name, levels, means, left_out, variances)

    def kept(self, level: int) -> np.ndarray:
        """Positions of the levels that stay when ``level`` is left out."""
        return levels_kept(len(self.levels), level)

    def record(self) -> dict[str, Any]:
        """What a model card says of it: its name, how much it is, and SHA-256 of levels and mean spectra."""
        digest = hashlib.sha256(self.levels.tobytes() + np.ascontiguousarray(self.means).tobytes()).hexdigest()
        shape = {"levels": len(self.levels), "wavelengths": self.means.shape[1]}
        return {"name": self.name, **shape, "sha256": digest}


def gather_series(series: Any, names: Sequence[str] | None = None, preprocessing: Any = None) -> list[Series]:
    """Calibrations from what holds them, checked: enough of them, with enough levels, no two of the same spectra.

    Args:
        series: a list; each is what ``geonode.fit`` takes as standards (a file, a data set, a DataFrame, …).
        names: one for each; None for the names of their files.
        preprocessing: steps applied to each by itself, as `geonode.fit` takes them.

    Raises:
        InputError: fewer than two series, one that cannot be used, or two that share spectra (a series left out to
            judge must not have been seen).
    """
    if isinstance(series, str | Path | SpectralDataset) or not isinstance(series, Sequence):
        raise InputError(
            "series must be a list of calibrations, each a file or a data set of standards; put it in [ ]."
        )
    if len(series) < LEAST_SERIES:
        raise InputError(
            f"Adapting needs {LEAST_SERIES} series or more, and {len(series)} was given: each is left out in turn to "
            "see whether adapting to the others helps with it."
        )
    if names is not None and len(names) != len(series):
        raise InputError(f"names has {len(names)} entries for {len(series)} series; give one for each, or none.")
    found = []
    for number, one in enumerate(series):
        dataset = given_standards(one)
        name = names[number] if names is not None else (dataset.source or f"series {number + 1}")
        chain = Preprocessing.of(preprocessing)
        found.append(Series.of(str(name), dataset if chain is None else chain.fit_transform(prepared(dataset))))
    _require_apart(found)
    return found


def _require_apart(found: list[Series]) -> None:
    for number, one in enumerate(found):
        for other in found[:number]:
            if one.means.shape[1] == other.means.shape[1] and _shared(one, other) > 1:
                raise InputError(
                    f"{other.name} and {one.name} share spectra, so a series left out to judge would have been seen; "
                    "give each series once."
                )


def _shared(one: Series, other: Series) -> int:
    """How many mean spectra of ``one`` are also in ``other``; flat ones (a blank of zeros) are no evidence."""
    size = max(float(np.ptp(one.means)), 1e-300)
    changing = one.means[np.ptp(one.means, axis=1) > _SAME * size]
    apart = np.abs(changing[:, None] - other.means[None]).max(-1)
    return int((apart <= _SAME * size).any(1).sum())
