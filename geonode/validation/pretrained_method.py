"""The pre-trained flow in a comparison: it reads the training standards of a fold, and trains nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geonode.calibration.baselines.method import EVALUATION_METHODS, SpectralMethod

if TYPE_CHECKING:
    from geonode.prior.flow import AssayFlow, FlowPrediction
    from geonode.prior.network import Network
    from geonode.validation.comparison import Comparison


class FlowReadings:
    """One reading of the training standards a fold.

    Args:
        network: the weights.
        comparison: the folds.
        name: of the row, for progress.
        smooth: whether noise along the wavelengths is taken from the spectra.
    """

    def __init__(self, network: Network, comparison: Comparison, name: str, smooth: bool = True) -> None:
        self._outer: list[FlowPrediction] = []
        self.predicted: list[np.ndarray] = []
        levels, targets = comparison.levels, comparison.splits.targets
        for number in range(len(targets)):
            # inner folds only rank methods, on the wavelengths on which all methods are ranked
            inner = number >= comparison.splits.levels
            columns = comparison.ranked if inner else np.arange(len(comparison.seen.wavelengths))
            found = _read(network, comparison, number, columns, smooth).predict(levels[targets[number]])
            spectra = np.full((len(targets[number]), len(comparison.seen.wavelengths)), np.nan)
            spectra[:, columns] = found.mean
            self.predicted.append(spectra)
            if not inner:
                self._outer.append(found)
            comparison.report(name, number + 1, len(targets))

    def band(self, fold: int) -> tuple[np.ndarray, np.ndarray]:
        """The flow's own 80 % band for one further measured spectrum of the level that ``fold`` leaves out."""
        low, high = self._outer[fold].interval(0.8)
        return low[0], high[0]


def _read(network: Network, comparison: Comparison, number: int, columns: np.ndarray, smooth: bool) -> AssayFlow:
    from geonode.prior.flow import AssayFlow, replicate_variance

    training, seen = comparison.splits.training[number], comparison.seen
    inside = np.isin(seen.index, training)
    variance = replicate_variance(seen.deviations[number][inside][:, columns], len(training))
    gp = comparison.processes[number].select_wavelengths(columns)
    means = seen.means[number][training][:, columns]
    return AssayFlow(network, comparison.levels[training], means, variance, gp=gp, smooth=smooth)


class _Pretrained(SpectralMethod):
    """What both rows share."""

    smooth = True

    def network(self) -> Network:
        """The weights."""
        raise NotImplementedError

    def on_folds(self, comparison: Comparison) -> list[np.ndarray]:
        """One reading of the standards a fold."""
        self._readings = FlowReadings(self.network(), comparison, EVALUATION_METHODS.name_of(self), self.smooth)
        return self._readings.predicted

    def band(self, comparison: Comparison, fold: int) -> tuple[np.ndarray, np.ndarray]:
        """See `FlowReadings.band`."""
        return self._readings.band(fold)


@EVALUATION_METHODS.register("pretrained")
class PretrainedMethod(_Pretrained):
    """The weights that come with geonode, whatever flow the settings name."""

    def network(self) -> Network:
        """They are loaded once."""
        from geonode.prior.stored import load_network

        return load_network()


@EVALUATION_METHODS.register("untrained")
class UntrainedMethod(_Pretrained):
    """The same network at its start, not smoothed: the geodesic process, from which the row `pretrained` sets out."""

    smooth = False

    def network(self) -> Network:
        """The start is the evidence-averaged geodesic process."""
        from geonode.prior.stored import untrained_network

        return untrained_network()
