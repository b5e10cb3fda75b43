"""The pre-trained flow in a comparison: it reads the training standards of a fold, and trains nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geonode.calibration.baselines.method import EVALUATION_METHODS, SpectralMethod

if TYPE_CHECKING:
    from geonode.prior.flow import AssayFlow, FlowPrediction
    from geonode.prior.network import Network
    from geonode.validation.comparison import Comparison


class _Pretrained(SpectralMethod):
    """What both rows share."""

    def __init__(self) -> None:
        self._outer: list[FlowPrediction] = []

    def network(self) -> Network:
        """The weights."""
        raise NotImplementedError

    def on_folds(self, comparison: Comparison) -> list[np.ndarray]:
        """One reading of the standards a fold."""
        network, name = self.network(), EVALUATION_METHODS.name_of(self)
        total = len(comparison.splits.training)
        predicted = []
        for number in range(total):
            found = self._flow(network, comparison, number).predict(
                comparison.levels[comparison.splits.targets[number]]
            )
            predicted.append(found.mean)
            if number < comparison.splits.levels:
                self._outer.append(found)
            comparison.report(name, number + 1, total)
        return predicted

    def _flow(self, network: Network, comparison: Comparison, number: int) -> AssayFlow:
        from geonode.prior.flow import AssayFlow, replicate_variance

        training, seen = comparison.splits.training[number], comparison.seen
        inside = np.isin(seen.index, training)
        variance = replicate_variance(seen.deviations[number][inside], len(training))
        return AssayFlow(network, comparison.levels[training], seen.means[number][training], variance)

    def band(self, comparison: Comparison, fold: int) -> tuple[np.ndarray, np.ndarray]:
        """The flow's own band for one further measured spectrum."""
        low, high = self._outer[fold].interval(0.8)
        return low[0], high[0]


@EVALUATION_METHODS.register("pretrained")
class PretrainedMethod(_Pretrained):
    """The weights that come with geonode."""

    def network(self) -> Network:
        """They are loaded once."""
        from geonode.prior.stored import load_network

        return load_network()


@EVALUATION_METHODS.register("untrained")
class UntrainedMethod(_Pretrained):
    """The same network at its start: what pre-training adds is the difference between the two rows."""

    def network(self) -> Network:
        """The start is the evidence-averaged geodesic process."""
        from geonode.prior.stored import untrained_network

        return untrained_network()
