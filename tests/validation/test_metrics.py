"""Spectral error measures against hand calculations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from geonode.validation import metrics

P = np.array([1.0, 2.0, 2.0])
M = np.array([2.0, 1.0, 2.0])
SPECTRUM = arrays(np.float64, 6, elements=st.floats(0.01, 10.0))


def test_by_hand() -> None:
    assert metrics.rmse(P, M) == pytest.approx(math.sqrt(2 / 3))
    assert metrics.nrmse(P, M, 0.5) == pytest.approx(2 * math.sqrt(2 / 3))
    assert metrics.mae(P, M) == pytest.approx(2 / 3)
    assert metrics.r2(P, M) == pytest.approx(1 - 2 / (2 / 3))
    assert metrics.sam(P, M) == pytest.approx(math.acos(8 / 9))
    # p = (.2 .4 .4), q = (.4 .2 .4): (.2−.4) ln(.5) + (.4−.2) ln 2 = 0.4 ln 2
    assert metrics.sid(P, M) == pytest.approx(0.4 * math.log(2.0))


def test_sid_holds_non_positive_values_at_the_floor() -> None:
    top, floor = 2.0, metrics.SID_FLOOR
    clipped = np.array([floor * top, 1.0, 2.0])
    assert metrics.sid([-0.3, 1.0, 2.0], M) == pytest.approx(metrics.sid(clipped, M))
    assert math.isnan(metrics.sid([-1.0, 0.0, -2.0], M))


def test_undefined_values_are_nan_and_none() -> None:
    assert math.isnan(metrics.r2([1.0, 2.0], [1.0, 1.0]))
    assert math.isnan(metrics.sam([0.0, 0.0], [1.0, 1.0]))
    assert math.isnan(metrics.nrmse([1.0], [2.0], 0.0))
    scores = metrics.all_metrics(np.zeros(3), np.zeros(3), np.arange(3.0), 0.0)
    assert scores["r2"] is None and scores["sid"] is None and scores["rmse"] == 0.0


def test_peak_is_refined_on_an_uneven_grid() -> None:
    grid = np.array([400.0, 500.0, 516.0, 530.0, 600.0])
    parabola = lambda at: 5.0 - 1e-3 * (grid - at) ** 2  # noqa: E731
    assert metrics.peak_position(parabola(519.0), grid) == pytest.approx(519.0)
    assert metrics.peak_error(parabola(519.0), parabola(511.5), grid) == pytest.approx(7.5)
    assert metrics.peak_position(np.array([3.0, 2.0, 1.0]), grid[:3]) == 400.0


@given(SPECTRUM, SPECTRUM, st.floats(0.1, 1e4))
def test_laws(p: np.ndarray, m: np.ndarray, unit: float) -> None:
    assert metrics.rmse(p, p) == metrics.sam(p, p) == metrics.sid(p, p) == 0.0
    for measure in (metrics.sam, metrics.sid):
        assert measure(p, m) == pytest.approx(measure(m, p), abs=1e-12)
        assert measure(unit * p, m) == pytest.approx(measure(p, m), rel=1e-6, abs=1e-9)
        assert measure(p, m) >= -1e-12
    assert metrics.rmse(unit * p, unit * m) == pytest.approx(unit * metrics.rmse(p, m))
    assert metrics.mae(p, m) <= metrics.rmse(p, m) + 1e-12


def test_leading_axes_broadcast() -> None:
    stack = np.stack([P, M, P + M])
    for measure in (metrics.rmse, metrics.mae, metrics.r2, metrics.sam, metrics.sid):
        values = measure(stack, M)
        assert values.shape == (3,) and values[0] == pytest.approx(measure(P, M))
