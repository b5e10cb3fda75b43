"""`SpectralDataModule`: from a dataset of standards to the problem that is trained, and a loader that counts steps."""

from __future__ import annotations

from typing import Any

import lightning as L
import numpy as np
from torch.utils.data import DataLoader

from geonode.calibration import GeodesicGP
from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset
from geonode.errors import InputError
from geonode.training.batches import step_counts
from geonode.training.leave_out import Folds, build_stack
from geonode.training.problem import Problem, build_problem, fit_gp


class SpectralDataModule(L.LightningDataModule):
    """Standards of one analyte as a stacked training problem (one row per ensemble member).

    Args:
        dataset: at least three levels of one analyte.
        config: collocation, margin and batch sizes.
        targets: concentrations that will be asked for, to widen the range served (without folds).
        folds: levels that are left out in turn besides; each is a further ``config.training.members`` rows.
        gp: the geodesic GP of all standards; None fits it when it is asked for.

    Raises:
        InputError: several analytes or fewer than three levels.
    """

    def __init__(
        self,
        dataset: SpectralDataset,
        config: GeodesicConfig | None = None,
        targets: np.ndarray | None = None,
        folds: Folds | None = None,
        gp: GeodesicGP | None = None,
    ) -> None:
        super().__init__()
        self.config = config or GeodesicConfig(flow="path_independent")
        if dataset.dim != 1:
            raise InputError(
                f"This data set has {dataset.dim} analytes ({', '.join(dataset.analytes)}); SpectralDataModule trains "
                "on one. Use MultiAnalyteODE for several."
            )
        self.dataset = dataset.require_levels(3)
        self.targets, self.folds = targets, folds
        self._gp = gp
        self._problem: Problem | None = None

    @property
    def gp(self) -> GeodesicGP:
        """The geodesic GP of all standards: teacher and warp."""
        if self._gp is None:
            self._gp = fit_gp(self.dataset)
        return self._gp

    @property
    def problem(self) -> Problem:
        """The stacked problem, on the host in float64."""
        if self._problem is None and self.folds is not None:
            self._problem = build_stack(self.gp, self.folds, self.dataset.wavelengths, self.config)
        elif self._problem is None:
            members = self.config.training.members
            targets = None if self.targets is None else [self.targets] * members
            self._problem = build_problem([self.gp] * members, self.dataset.wavelengths, self.config, targets)
        return self._problem

    def setup(self, stage: str | None = None) -> None:
        """Fit the GP and stack the problem (nothing is downloaded or written)."""
        _ = self.problem

    def train_dataloader(self) -> Any:
        """Step numbers of one epoch; the batch itself is drawn on the device."""
        counts = step_counts(len(self.dataset.levels), self.config)
        return DataLoader(range(counts.steps), batch_size=None)  # type: ignore[arg-type]
