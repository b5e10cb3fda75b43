"""What a method to compare with is, in either direction, and the one registry of them all.

To compare another method, register it in a module of its own:

    @register("my method")
    class MyMethod(Predictor):
        def fit(self, levels, means): ...; return self
        def predict(self, concentrations): ...

and name it in ``geonode.evaluate(..., methods=["linear", "my method"])``. A class of :class:`InverseMethod` takes part
in ``geonode evaluate --inverse``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np

from geonode.calibration.inverse.model import searched_range
from geonode.errors import InputError
from geonode.registry import Registry

if TYPE_CHECKING:
    from geonode.validation.comparison import Comparison

EVALUATION_METHODS: Registry[type[SpectralMethod] | type[InverseMethod]] = Registry("method", package=__package__)
"""All methods of comparisons, those that predict spectra and those that find concentrations."""


class SpectralMethod:
    """Spectra from concentration, asked for every fold of a comparison."""

    def on_folds(self, comparison: Comparison) -> list[np.ndarray]:
        """Spectra ``[targets of the fold, W]`` for every training set of a comparison, in order.

        NaN where the levels of a training set do not determine the method.
        """
        raise NotImplementedError

    def band(self, comparison: Comparison, fold: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Ends ``[W]``, ``[W]`` of the method's 80 % band at the level that outer ``fold`` leaves out; None for a
        method without bands."""
        return None

    def unusable(self, levels: np.ndarray) -> str | None:
        """Why the method cannot be fitted to these levels, or None."""
        return None


class Predictor(SpectralMethod):
    """Spectra from concentration, learned from level means, one fold at a time.

    ``fit(levels [n], means [n, W])`` returns self; ``predict(concentrations [C])`` returns ``[C, W]``, outside the
    calibrated range too. ``levels`` are distinct and ascending. ``minimum_levels`` is the fewest that determine it.
    """

    minimum_levels: ClassVar[int] = 2
    non_negative_only: ClassVar[bool] = False

    def fit(self, levels: np.ndarray, means: np.ndarray) -> Predictor:
        """Learn from level means."""
        raise NotImplementedError

    def predict(self, concentrations: np.ndarray) -> np.ndarray:
        """Spectra ``[C, W]``."""
        raise NotImplementedError

    def unusable(self, levels: np.ndarray) -> str | None:
        """Too few levels, or negative ones where there may be none."""
        if len(levels) < self.minimum_levels:
            return f"needs at least {self.minimum_levels} levels, has {len(levels)}"
        if self.non_negative_only and levels.min() < 0.0:
            return "needs concentrations ≥ 0"
        return None

    def on_folds(self, comparison: Comparison) -> list[np.ndarray]:
        """Fit and predict one fold after the other."""
        predicted = []
        for levels, means, targets in comparison.training_sets():
            one = type(self)()
            if one.unusable(levels):
                predicted.append(np.full((len(targets), means.shape[1]), np.nan))
            else:
                predicted.append(one.fit(levels, means).predict(targets))
        name, total = EVALUATION_METHODS.name_of(self), len(predicted)
        comparison.report(name, total, total)
        return predicted


class InverseMethod:
    """Concentration from spectrum: ``fit(spectra [N, W], concentrations [N])``, ``predict(spectra [U, W]) → [U]``.

    Methods are fitted to single spectra and the levels they belong to. Predictions are held to the searched range of
    the calibrator, so that one wild extrapolation is not a method's whole score.
    """

    def fit(self, spectra: np.ndarray, concentrations: np.ndarray) -> Self:
        """Learn from single spectra."""
        self._low, self._high = searched_range(np.unique(concentrations))
        self._fit(np.asarray(spectra, dtype=np.float64), np.asarray(concentrations, dtype=np.float64))
        return self

    def predict(self, spectra: np.ndarray) -> np.ndarray:
        """Concentrations ``[U]``, user units."""
        return np.clip(self._predict(np.asarray(spectra, dtype=np.float64)), self._low, self._high)

    def interval(self, spectra: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray] | None:
        """Limits ``[U]``, ``[U]`` of the method's customary interval at ``level``; None where it has none."""
        return None

    def _fit(self, spectra: np.ndarray, concentrations: np.ndarray) -> None:
        raise NotImplementedError

    def _predict(self, spectra: np.ndarray) -> np.ndarray:
        raise NotImplementedError


def spectral_method(name: str) -> SpectralMethod:
    """A new method that predicts spectra, by its registered name.

    Raises:
        InputError: there is none of that name.
    """
    return _new(name, SpectralMethod, "method")


def baseline(name: str, **options: Any) -> Predictor:
    """A new predictor by its registered name.

    Args:
        name: of a registered :class:`Predictor`.
        options: go to its constructor.

    Raises:
        InputError: no predictor of that name.
    """
    return _new(name, Predictor, "baseline", **options)


def inverse_method(name: str) -> InverseMethod:
    """A new method that finds concentrations, by its registered name.

    Raises:
        InputError: there is none of that name.
    """
    return _new(name, InverseMethod, "inverse method")


def baseline_names() -> list[str]:
    """Names of all registered predictors, in order of registration."""
    return names_of(Predictor)


def names_of(kind: type) -> list[str]:
    """Names of the registered methods that are of a ``kind``, in order of registration."""
    return [name for name, method in EVALUATION_METHODS.items() if issubclass(method, kind)]


_Kind = TypeVar("_Kind")


def _new(name: str, kind: type[_Kind], said: str, **options: Any) -> _Kind:
    if name not in names_of(kind):
        raise InputError(f"there is no {said} called '{name}'; choose from {', '.join(names_of(kind))}.")
    method: Any = EVALUATION_METHODS[name]
    return method(**options)
