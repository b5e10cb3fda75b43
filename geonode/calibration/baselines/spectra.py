"""The simple methods a spectroscopist would use instead, behind one small interface.

Each predicts every wavelength from the level means alone. To compare another method, register it:

    @register("my_method")
    class MyMethod(Predictor):
        def fit(self, levels, means): ...; return self
        def predict(self, concentrations): ...

and name it in ``evaluate(..., methods=[..., "my_method"])``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy.interpolate import CubicSpline, PchipInterpolator
from scipy.optimize import minimize_scalar

from geonode.errors import InputError


class Predictor:
    """Spectra from concentration, learned from level means.

    ``fit(levels [n], means [n, W])`` returns self; ``predict(concentrations [C])`` returns ``[C, W]``, outside the
    calibrated range too. ``levels`` are distinct and ascending. ``minimum_levels`` is the fewest that determine it.
    """

    name: ClassVar[str] = ""
    minimum_levels: ClassVar[int] = 2
    non_negative_only: ClassVar[bool] = False

    def fit(self, levels: np.ndarray, means: np.ndarray) -> Predictor:
        raise NotImplementedError

    def predict(self, concentrations: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def unusable(self, levels: np.ndarray) -> str | None:
        """Why the method cannot be fitted to these levels, or None."""
        if len(levels) < self.minimum_levels:
            return f"needs at least {self.minimum_levels} levels, has {len(levels)}"
        if self.non_negative_only and levels.min() < 0.0:
            return "needs concentrations ≥ 0"
        return None


_REGISTRY: dict[str, type[Predictor]] = {}


def register(name: str) -> Callable[[type[Predictor]], type[Predictor]]:
    """Class decorator that makes a :class:`Predictor` available to ``evaluate`` under ``name``."""

    def add(cls: type[Predictor]) -> type[Predictor]:
        cls.name = name
        _REGISTRY[name] = cls
        return cls

    return add


def baseline(name: str, **options: Any) -> Predictor:
    """A new predictor by its registered name; ``options`` go to its constructor.

    Raises:
        InputError: no predictor of that name.
    """
    if name not in _REGISTRY:
        raise InputError(f"there is no baseline called '{name}'; choose from {', '.join(sorted(_REGISTRY))}.")
    return _REGISTRY[name](**options)


def baseline_names() -> list[str]:
    """Names of all registered predictors, in order of registration."""
    return list(_REGISTRY)


@register("nearest")
class Nearest(Predictor):
    """The spectrum of the nearest level (the lower of two equally near)."""

    minimum_levels = 1

    def fit(self, levels: np.ndarray, means: np.ndarray) -> Nearest:
        self._levels, self._means = levels, means
        return self

    def predict(self, concentrations: np.ndarray) -> np.ndarray:
        return self._means[np.abs(concentrations[:, None] - self._levels).argmin(axis=1)]


@register("linear")
class Linear(Predictor):
    """Straight lines between neighbouring levels; outside, the end segment goes on."""

    def fit(self, levels: np.ndarray, means: np.ndarray) -> Linear:
        self._levels, self._means = levels, means
        return self

    def predict(self, concentrations: np.ndarray) -> np.ndarray:
        left = np.clip(np.searchsorted(self._levels, concentrations) - 1, 0, len(self._levels) - 2)
        share = (concentrations - self._levels[left]) / (self._levels[left + 1] - self._levels[left])
        return self._means[left] + share[:, None] * (self._means[left + 1] - self._means[left])


@register("pchip")
class Pchip(Predictor):
    """Monotone piecewise cubic Hermite (Fritsch & Butland 1984); outside, the end cubic goes on."""

    def fit(self, levels: np.ndarray, means: np.ndarray) -> Pchip:
        self._curve = PchipInterpolator(levels, means, axis=0, extrapolate=True)
        return self

    def predict(self, concentrations: np.ndarray) -> np.ndarray:
        return self._curve(concentrations)


@register("cubic")
class NaturalCubic(Predictor):
    """Natural cubic spline (second derivative zero at the ends); outside, the end cubic goes on."""

    def fit(self, levels: np.ndarray, means: np.ndarray) -> NaturalCubic:
        self._curve = CubicSpline(levels, means, axis=0, bc_type="natural", extrapolate=True)
        return self

    def predict(self, concentrations: np.ndarray) -> np.ndarray:
        return self._curve(concentrations)


class Polynomial(Predictor):
    """Least-squares polynomial of ``degree`` per wavelength."""

    degree: ClassVar[int] = 1

    def fit(self, levels: np.ndarray, means: np.ndarray) -> Polynomial:
        # Centred and scaled, so that the normal matrix stays well conditioned for any unit of concentration.
        self._centre, self._half = 0.5 * (levels[0] + levels[-1]), 0.5 * (levels[-1] - levels[0])
        self._coefficients = np.linalg.lstsq(self._design(levels), means, rcond=None)[0]
        return self

    def predict(self, concentrations: np.ndarray) -> np.ndarray:
        return self._design(concentrations) @ self._coefficients

    def _design(self, concentrations: np.ndarray) -> np.ndarray:
        return np.vander((concentrations - self._centre) / self._half, self.degree + 1)


@register("quadratic")
class Quadratic(Polynomial):
    """Least-squares parabola per wavelength."""

    degree = 2
    minimum_levels = 3


@register("line")
class Line(Polynomial):
    """Least-squares straight line per wavelength (Beer–Lambert with an offset)."""

    degree = 1
    minimum_levels = 2


@register("isotherm")
class Isotherm(Predictor):
    """Binding isotherm a_λ + b_λ c/(c + K), K > 0 shared by all wavelengths (Langmuir 1918, one-site binding).

    For a given K the rest is linear, so K alone is searched (variable projection): a grid over six decades around the
    range of the levels, then Brent's method around the best grid point.
    """

    minimum_levels = 3
    non_negative_only = True
    _grid: ClassVar[np.ndarray] = np.logspace(-4.0, 3.0, 141)

    def fit(self, levels: np.ndarray, means: np.ndarray) -> Isotherm:
        top = levels[-1]
        centred = means - means.mean(axis=0)
        gram = centred @ centred.T

        def explained(log_k: float) -> float:
            x = levels / (levels + top * 10.0**log_k)
            x = x - x.mean()
            return -float(x @ gram @ x / (x @ x))

        scores = np.array([explained(value) for value in np.log10(self._grid)])
        best = int(scores.argmin())
        lower, upper = np.log10(self._grid[[max(best - 1, 0), min(best + 1, len(self._grid) - 1)]])
        found = minimize_scalar(explained, bounds=(lower, upper), method="bounded", options={"xatol": 1e-8})
        log_k = float(found.x)  # pyright: ignore[reportAttributeAccessIssue]
        self.k = float(top * 10.0**log_k)
        self._coefficients = np.linalg.lstsq(self._design(levels), means, rcond=None)[0]
        return self

    def predict(self, concentrations: np.ndarray) -> np.ndarray:
        # Below zero the isotherm has a pole at −K; binding has no meaning there, so it stops at −K/2.
        return self._design(np.maximum(concentrations, -0.5 * self.k)) @ self._coefficients

    def _design(self, concentrations: np.ndarray) -> np.ndarray:
        return np.stack([np.ones_like(concentrations), concentrations / (concentrations + self.k)], axis=1)
