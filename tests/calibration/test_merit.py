"""Figures of merit against scikit-learn, a hand calculation, and the identity that binds bias and SEP."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import mean_squared_error, r2_score

from geonode.calibration.design import merit
from geonode.errors import InputError

RNG = np.random.default_rng(3)
TRUE = RNG.uniform(0.0, 50.0, 17)
PREDICTED = TRUE + 0.7 + RNG.normal(0.0, 2.0, 17)


def test_against_scikit_learn() -> None:
    assert merit.rmse(PREDICTED, TRUE) == pytest.approx(np.sqrt(mean_squared_error(TRUE, PREDICTED)), rel=1e-12)
    assert merit.r2(PREDICTED, TRUE) == pytest.approx(r2_score(TRUE, PREDICTED), rel=1e-12)


def test_mean_square_is_bias_and_spread() -> None:
    n = len(TRUE)
    parts = merit.bias(PREDICTED, TRUE) ** 2 + merit.sep(PREDICTED, TRUE) ** 2 * (n - 1) / n
    assert merit.rmse(PREDICTED, TRUE) ** 2 == pytest.approx(parts, rel=1e-12)


def test_by_hand() -> None:
    # errors 1 −1 1 1: bias 0.5, RMSE 1, SEP √(4·(0.25 + 2.25 + 0.25 + 0.25)/12) = 1; SD(c) of 0 2 4 6 is √(20/3)
    predicted, true = [1.0, 1.0, 5.0, 7.0], [0.0, 2.0, 4.0, 6.0]
    assert merit.bias(predicted, true) == 0.5 and merit.rmse(predicted, true) == 1.0
    assert merit.sep(predicted, true) == pytest.approx(1.0)
    assert merit.rpd(predicted, true) == pytest.approx(np.sqrt(20.0 / 3.0))
    assert merit.rpiq(predicted, true) == pytest.approx(3.0)  # quartiles 1.5 and 4.5
    assert merit.r2(predicted, true) == pytest.approx(1.0 - 4.0 / 20.0)
    assert set(merit.summary(predicted, true)) == {"rmse", "bias", "sep", "r2", "rpd", "rpiq"}


def test_bad_input() -> None:
    for predicted, true in (([1.0], [1.0, 2.0]), ([], []), ([[1.0]], [[1.0]])):
        with pytest.raises(InputError, match="two lists of equal length"):
            merit.rmse(predicted, true)


def test_one_sample_has_no_spread_and_so_no_ratio_to_it() -> None:
    found = merit.summary([2.0], [1.0])
    assert found["rmse"] == found["bias"] == 1.0
    assert all(np.isnan(found[key]) for key in ("sep", "r2", "rpd", "rpiq"))
