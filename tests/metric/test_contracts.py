"""Every shipped metric keeps the contract; what is derived from a formula goes with it."""

from __future__ import annotations

import pytest
import torch

from geonode.metric import (
    Euclidean,
    ExponentialMetric,
    FlatLogMetric,
    LogMetric,
    LogMetricNetwork,
    Metric,
    MetricNetwork,
    PoincareHalfPlane,
    PowerLaw,
    PullbackMetric,
    Sphere,
    WarpMetric,
    as_log_metric,
)
from geonode.metric.conformal import ConformalWarpMetric
from geonode.testing import MetricContract


def network() -> LogMetricNetwork:
    metric = LogMetricNetwork(hidden=(4, 3)).double()
    with torch.no_grad():
        metric.network.mlp.weights[-1].copy_(torch.tensor([[[0.5, -0.3, 0.2]]]))
    return metric


class TestEuclidean(MetricContract):
    def make(self):
        return Euclidean(1)


class TestEuclideanPlane(MetricContract):
    def make(self):
        return Euclidean(2)


class TestPowerLaw(MetricContract):
    def make(self):
        return PowerLaw(-2.0)


class TestPoincareHalfPlane(MetricContract):
    def make(self):
        return PoincareHalfPlane()


class TestSphere(MetricContract):
    def make(self):
        return Sphere()


class TestWarpMetric(MetricContract):
    def make(self):
        return WarpMetric()


class TestMetricNetwork(MetricContract):
    def make(self):
        return MetricNetwork(hidden=(4, 3)).double()


class TestMetricNetworkOfTwo(MetricContract):
    def make(self):
        return MetricNetwork(dim=2, hidden=(4, 3)).double()


class TestLogMetricNetwork(MetricContract):
    def make(self):
        return network()


class TestFlat(MetricContract):
    def make(self):
        return FlatLogMetric()


class TestExponential(MetricContract):
    def make(self):
        return network().exponential()


class TestConformal(MetricContract):
    def make(self):
        return ConformalWarpMetric(WarpMetric(), network())


class TestPullback(MetricContract):
    def make(self):
        return PullbackMetric(lambda c: torch.stack([c, c.square()], -1), floor=0.1)


def test_a_derivative_does_not_outlive_its_formula():
    class Twice(PowerLaw):
        def forward(self, c, wavelength=None):
            return 2.0 * super().forward(c, wavelength)

    c = torch.tensor([0.5, 2.0], dtype=torch.float64)
    value, slope = Twice().value_and_derivative(c)
    torch.testing.assert_close(value, 2.0 * c**-2)
    torch.testing.assert_close(slope, -4.0 * c**-3)
    assert Twice().chart is None  # the chart's metric would be that of PowerLaw


@pytest.mark.parametrize("metric", [MetricNetwork(), PowerLaw(-1.0), network().exponential()])
def test_a_metric_in_place_of_a_logarithm_is_converted(metric):
    warp = WarpMetric()
    full = ConformalWarpMetric(warp, metric)
    c = torch.tensor([0.3, 0.9], dtype=torch.float64)
    wavelength = torch.zeros(2, dtype=torch.float64)
    expected = metric(c, wavelength)  # a metric of concentration is the full one already
    if metric.in_warp_coordinate:
        expected = warp(c) * metric(warp.scaled(c), wavelength)
    torch.testing.assert_close(full(c, wavelength), expected, rtol=1e-6, atol=1e-9)
    assert isinstance(as_log_metric(metric, warp), LogMetric) and isinstance(full, Metric)


def test_what_is_no_metric_is_refused():
    from geonode.errors import InputError

    with pytest.raises(InputError, match="is a metric of 2 analytes"):
        ConformalWarpMetric(WarpMetric(), Sphere())
    with pytest.raises(InputError, match="must be a Metric or a LogMetric"):
        as_log_metric(torch.nn.Linear(1, 1), WarpMetric())
    assert isinstance(ExponentialMetric(network()), Metric)
