"""geonode's own methods in a comparison: the geodesic process, and neural flows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from geonode.calibration.baselines.method import EVALUATION_METHODS, SpectralMethod
from geonode.flow import FLOWS
from geonode.validation.pretrained_method import FlowReadings

if TYPE_CHECKING:
    from geonode.validation.comparison import Comparison, NodeSettings


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
    """The neural flow of the settings: by default the pre-trained one, else one that is trained on the folds."""

    _readings: FlowReadings | None = None

    def on_folds(self, comparison: Comparison) -> list[np.ndarray]:
        """Read or trained."""
        nodes = comparison.nodes
        if nodes.trainer is not None or FLOWS[nodes.config.flow.name].needs_training:
            return trained_on_folds(comparison, nodes, "node")
        from geonode.prior.stored import load_network, smooth_of, weights_of

        options = nodes.config.flow.options
        self._readings = FlowReadings(load_network(weights_of(options)), comparison, "node", smooth_of(options))
        return self._readings.predicted

    def band(self, comparison: Comparison, fold: int) -> tuple[np.ndarray, np.ndarray] | None:
        """The pre-trained flow has a band of its own."""
        return None if self._readings is None else self._readings.band(fold)


class _Trained(SpectralMethod):
    """A flow that is trained on the folds' standards, whatever flow the settings name."""

    def on_folds(self, comparison: Comparison) -> list[np.ndarray]:
        """Trained on folds as one stack."""
        name = EVALUATION_METHODS.name_of(self)
        nodes = comparison.nodes
        config = nodes.config if nodes.config.flow.name == name else nodes.config.replace(flow=name)
        return trained_on_folds(comparison, replace(nodes, config=config), name)


@EVALUATION_METHODS.register("path_independent")
class SpectralFlowMethod(_Trained):
    """h(ŝ, λ) of arc length, trained on each fold's standards."""


@EVALUATION_METHODS.register("velocity")
class VelocityFlowMethod(_Trained):
    """The flow of arc length and velocity, trained on each fold's standards."""


@EVALUATION_METHODS.register("free")
class FreeFlowMethod(_Trained):
    """The flow of position and velocity, trained on each fold's standards."""


def trained_on_folds(comparison: Comparison, nodes: NodeSettings, name: str) -> list[np.ndarray]:
    """Two batches: the outer folds on all wavelengths, the inner ones on those that rank (NaN elsewhere)."""
    splits, gps = comparison.splits, comparison.processes
    wavelengths, ranked, n = comparison.seen.wavelengths, comparison.ranked, comparison.splits.levels
    wanted = [comparison.levels[target] for target in splits.targets]
    predicted = list(nodes.train(gps[:n], wanted[:n], wavelengths, partial(comparison.report, name)))
    if not splits.has_inner:
        return predicted
    inner = [gp.select_wavelengths(ranked) for gp in gps[n:]]
    report = partial(comparison.report, f"{name}, inner folds")
    for spectra in nodes.train(inner, wanted[n:], wavelengths[ranked], report):
        full = np.full((len(spectra), len(wavelengths)), np.nan)
        full[:, ranked] = spectra
        predicted.append(full)
    return predicted
