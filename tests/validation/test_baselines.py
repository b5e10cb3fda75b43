"""Simple methods: what each reproduces exactly, how it extrapolates, and the registry."""

from __future__ import annotations

import numpy as np
import pytest

from geonode.calibration.baselines.isotherm import Isotherm
from geonode.calibration.baselines.method import EVALUATION_METHODS
from geonode.errors import InputError
from geonode.validation import Predictor, baseline, baseline_names, register

LEVELS = np.array([0.0, 1.0, 2.5, 4.0, 7.0])
ASKED = np.array([0.3, 3.0, 9.0])
WAVE = np.linspace(0.5, 1.5, 7)


def line(c: np.ndarray) -> np.ndarray:
    return 0.3 + np.outer(c, WAVE)


def parabola(c: np.ndarray) -> np.ndarray:
    return 0.3 + np.outer(c, WAVE) - 0.05 * np.outer(c**2, WAVE**2)


def isotherm(c: np.ndarray, k: float = 1.7) -> np.ndarray:
    return 0.3 + np.outer(c / (c + k), WAVE)


@pytest.mark.parametrize("name", ["linear", "pchip", "cubic", "quadratic", "line"])
def test_straight_lines_are_exact_even_outside(name: str) -> None:
    np.testing.assert_allclose(baseline(name).fit(LEVELS, line(LEVELS)).predict(ASKED), line(ASKED), atol=1e-12)


@pytest.mark.parametrize("name", ["nearest", "linear", "pchip", "cubic"])
def test_interpolators_return_the_levels(name: str) -> None:
    means = np.random.default_rng(0).normal(size=(5, 7))
    np.testing.assert_allclose(baseline(name).fit(LEVELS, means).predict(LEVELS), means, atol=1e-12)


def test_parabola_and_isotherm_are_exact() -> None:
    fitted = baseline("quadratic").fit(LEVELS, parabola(LEVELS))
    np.testing.assert_allclose(fitted.predict(ASKED), parabola(ASKED), atol=1e-12)
    binding = baseline("isotherm").fit(LEVELS, isotherm(LEVELS))
    assert isinstance(binding, Isotherm)
    assert binding.k == pytest.approx(1.7, rel=1e-4)
    np.testing.assert_allclose(binding.predict(ASKED), isotherm(ASKED), atol=1e-6)


def test_isotherm_finds_k_in_any_unit() -> None:
    for unit in (1e-6, 1e6):
        fitted = baseline("isotherm").fit(LEVELS * unit, isotherm(LEVELS))
        assert fitted.k / unit == pytest.approx(1.7, rel=1e-4)  # pyright: ignore[reportAttributeAccessIssue]


def test_nearest_and_linear_by_hand() -> None:
    means = np.arange(5.0)[:, None] ** 2
    assert baseline("nearest").fit(LEVELS, means).predict(np.array([-3.0, 3.1, 20.0]))[:, 0].tolist() == [0, 4, 16]
    assert baseline("linear").fit(LEVELS, means).predict(np.array([1.75, 10.0]))[:, 0] == pytest.approx([2.5, 23.0])


def test_too_few_or_unsuitable_levels_are_named() -> None:
    assert "at least 3" in str(baseline("quadratic").unusable(LEVELS[:2]))
    assert "≥ 0" in str(baseline("isotherm").unusable(LEVELS - 1.0))
    assert baseline("line").unusable(LEVELS[:2]) is None


def test_registry() -> None:
    @register("blank")
    class Blank(Predictor):
        def fit(self, levels: np.ndarray, means: np.ndarray) -> Predictor:
            self._first = means[:1]
            return self

        def predict(self, concentrations: np.ndarray) -> np.ndarray:
            return np.repeat(self._first, len(concentrations), axis=0)

    try:
        assert "blank" in baseline_names()
        assert baseline("blank").fit(LEVELS, line(LEVELS)).predict(ASKED).shape == (3, 7)
    finally:
        del EVALUATION_METHODS._items["blank"]
    with pytest.raises(InputError, match="no baseline called 'blank'"):
        baseline("blank")
