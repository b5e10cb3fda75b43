"""What every method of a comparison is given: folds, the spectra that each fold sees, what trains neural flows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from geonode.calibration.gp.geodesic_gp import GeodesicGP
from geonode.calibration.leave_out import NestedSplits
from geonode.config import GeodesicConfig
from geonode.validation.fold_spectra import FoldSpectra

Progress = Callable[[str, int, int], None]
"""Called as ``progress(what, done, total)``."""


class NodeTrainer(Protocol):
    """Trains one neural flow per fold, all folds as one batch: ``geonode.training.ensemble.fit_node_folds``."""

    def __call__(
        self,
        gps: Sequence[GeodesicGP],
        targets: Sequence[np.ndarray],
        wavelengths: np.ndarray,
        config: Any,
        seed: int = 0,
        progress: Callable[[int, int], None] | None = None,
        device: Any = "cpu",
    ) -> list[np.ndarray]:
        """Mean spectra ``[targets of the fold, W]`` per fold; ``gps`` hold the training levels, ``targets`` are
        concentrations, ``progress`` is called as ``progress(done, total)``."""
        ...


@dataclass(frozen=True)
class NodeSettings:
    """How neural flows are trained.

    Attributes:
        trainer: None for geonode's own, imported when it is needed.
        config: their settings.
        seed: of the flows.
        device: where they are trained.
    """

    trainer: NodeTrainer | None
    config: GeodesicConfig
    seed: int
    device: Any

    def train(
        self,
        gps: Sequence[GeodesicGP],
        targets: Sequence[np.ndarray],
        wavelengths: np.ndarray,
        progress: Callable[[int, int], None] | None,
    ) -> list[np.ndarray]:
        """Mean spectra of every fold; see :class:`NodeTrainer`."""
        trainer = self.trainer
        if trainer is None:
            from geonode.training.ensemble import fit_node_folds as trainer
        options = {"seed": self.seed, "progress": progress, "device": self.device}
        return trainer(gps, targets, wavelengths, config=self.config, **options)


@dataclass
class Comparison:
    """The folds of one evaluation.

    Attributes:
        levels: ``[n]`` ascending.
        seen: level means as every training set sees them.
        splits: the training sets.
        ranked: columns of the wavelengths on which inner RMSEs are computed, the same for every method.
        nodes: how neural flows are trained.
        progress: called as ``progress(what, done, total)``, or None.
    """

    levels: np.ndarray
    seen: FoldSpectra
    splits: NestedSplits
    ranked: np.ndarray
    nodes: NodeSettings
    progress: Progress | None = None

    def training_sets(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Training levels ``[t]``, their mean spectra ``[t, W]`` and the concentrations asked for, per training set."""
        for means, training, target in zip(self.seen.means, self.splits.training, self.splits.targets, strict=True):
            yield self.levels[training], means[training], self.levels[target]

    def report(self, what: str, done: int, total: int) -> None:
        """Tell the caller how far it is."""
        if self.progress is not None:
            self.progress(what, done, total)

    @cached_property
    def processes(self) -> list[GeodesicGP]:
        """The geodesic process of every training set, fitted once for all methods that want it."""
        self.report("gp", 0, len(self.splits.training))
        seen, splits = self.seen, self.splits
        if seen.shared:
            return GeodesicGP().fit_folds(self.levels, seen.whole, splits.training, seen.deviations[0], seen.index)
        jobs = zip(seen.means, splits.training, seen.deviations, strict=True)
        return [GeodesicGP().fit_folds(self.levels, means, [fold], own, seen.index)[0] for means, fold, own in jobs]
