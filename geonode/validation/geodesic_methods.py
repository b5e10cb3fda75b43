"""geonode's own methods in a comparison: the geodesic process and the neural flow that it teaches."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from geonode.calibration.baselines.method import EVALUATION_METHODS, SpectralMethod

if TYPE_CHECKING:
    from geonode.validation.comparison import Comparison


@EVALUATION_METHODS.register("gp")
class ProcessMethod(SpectralMethod):
    """The geodesic Gaussian process."""

    def on_folds(self, comparison: Comparison) -> list[np.ndarray]:
        """All folds are fitted together."""
        predicted, total = [], len(comparison.splits.training)
        for number, (gp, target) in enumerate(zip(comparison.processes, comparison.splits.targets, strict=True)):
            predicted.append(gp.predict_mean(comparison.levels[target]))
            comparison.report("gp", number + 1, total)
        return predicted

    def band(self, comparison: Comparison, fold: int) -> tuple[np.ndarray, np.ndarray]:
        """The process's own band for one further measured spectrum."""
        low, high = comparison.processes[fold].predict([comparison.levels[fold]]).interval(0.8)
        return low[0], high[0]


@EVALUATION_METHODS.register("node")
class NodeMethod(SpectralMethod):
    """The neural flow, which is trained on folds as one stack."""

    def on_folds(self, comparison: Comparison) -> list[np.ndarray]:
        """Two batches: the outer folds on all wavelengths, the inner ones on those that rank (NaN elsewhere)."""
        splits, gps = comparison.splits, comparison.processes
        wavelengths, ranked, n = comparison.seen.wavelengths, comparison.ranked, comparison.splits.levels
        wanted = [comparison.levels[target] for target in splits.targets]
        train = comparison.nodes.train
        predicted = list(train(gps[:n], wanted[:n], wavelengths, partial(comparison.report, "node")))
        if not splits.has_inner:
            return predicted
        inner = [gp.select_wavelengths(ranked) for gp in gps[n:]]
        report = partial(comparison.report, "node, inner folds")
        for spectra in train(inner, wanted[n:], wavelengths[ranked], report):
            full = np.full((len(spectra), len(wavelengths)), np.nan)
            full[:, ranked] = spectra
            predicted.append(full)
        return predicted
