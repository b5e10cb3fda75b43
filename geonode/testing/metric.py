"""`MetricContract`: what every metric must do, whatever its formula."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from geonode.flow import CoupledSpectralODE
from geonode.metric import LogMetric, Metric

_POINTS = 4


class MetricContract:
    """Tests of one metric; inherit it and make one, in float64.

        class TestSaturating(MetricContract):
            def make(self):
                return Saturating(kappa=0.3)

    `low` and `high` say where the tests ask it; both a `Metric` (of any D) and a `LogMetric` will do.
    """

    low: float = 0.2
    high: float = 1.0

    def make(self) -> Metric | LogMetric:
        """The metric under test, the same at every call."""
        raise NotImplementedError

    # --- what the tests share -----------------------------------------------------------------------------------

    def _dim(self) -> int:
        metric = self.make()
        return metric.dim if isinstance(metric, Metric) else 1

    def _points(self) -> tuple[Tensor, Tensor]:
        """Points [4] or [4, D], and wavelengths [4]."""
        generator = torch.Generator().manual_seed(2)
        shape = (_POINTS,) if self._dim() == 1 else (_POINTS, self._dim())
        points = self.low + (self.high - self.low) * torch.rand(shape, generator=generator, dtype=torch.float64)
        return points, torch.linspace(-1.0, 1.0, _POINTS, dtype=torch.float64)

    def _value(self, points: Tensor) -> Tensor:
        return self.make()(points, self._points()[1])

    # --- the tests ----------------------------------------------------------------------------------------------

    def test_shape_and_kind(self) -> None:
        dim = self._dim()
        value = self._value(self._points()[0])
        assert value.shape == ((_POINTS,) if dim == 1 else (_POINTS, dim, dim)) and value.dtype is torch.float64

    def test_it_is_symmetric_and_positive(self) -> None:
        value = self._value(self._points()[0])
        assert torch.isfinite(value).all()
        if isinstance(self.make(), Metric) and self._dim() == 1:
            assert (value > 0).all()
        elif self._dim() > 1:
            torch.testing.assert_close(value, value.mT, rtol=0, atol=1e-14)
            assert (torch.linalg.eigvalsh(value) > 0).all()

    def test_the_derivative_is_that_of_the_value(self) -> None:
        metric, (points, wavelength) = self.make(), self._points()
        value, slope = metric.value_and_derivative(points, wavelength)
        torch.testing.assert_close(value, metric(points, wavelength))
        step = 1e-6
        for k, axis in enumerate([None] if self._dim() == 1 else torch.eye(self._dim(), dtype=torch.float64)):
            move = step if axis is None else step * axis
            numeric = (metric(points + move, wavelength) - metric(points - move, wavelength)) / (2.0 * step)
            found = slope if axis is None else slope[..., k, :, :]
            torch.testing.assert_close(found, numeric, rtol=1e-5, atol=1e-6)

    def test_second_derivatives_are_those_of_the_first(self) -> None:
        metric, (points, wavelength) = self.make(), self._points()
        if isinstance(metric, LogMetric) or self._dim() > 1:
            return
        _, first, second = metric.two_derivatives(points, wavelength)
        step = 1e-6
        ahead, behind = (metric.value_and_derivative(points + h, wavelength)[1] for h in (step, -step))
        torch.testing.assert_close(first, metric.value_and_derivative(points, wavelength)[1])
        torch.testing.assert_close(second, (ahead - behind) / (2.0 * step), rtol=1e-5, atol=1e-6)

    def test_gradcheck(self) -> None:
        points = self._points()[0].requires_grad_()
        assert torch.autograd.gradcheck(self._value, (points,), check_forward_ad=False)

    def test_gradcheck_of_the_derivative(self) -> None:
        metric, (points, wavelength) = self.make(), self._points()
        points = points.requires_grad_()
        assert torch.autograd.gradcheck(lambda c: metric.value_and_derivative(c, wavelength)[1], (points,))

    def test_single_precision_is_double_precision_rounded(self) -> None:
        points, wavelength = self._points()
        found = copy.deepcopy(self.make()).float()(points.float(), wavelength.float())
        assert found.dtype is torch.float32
        torch.testing.assert_close(found.double(), self._value(points), rtol=1e-4, atol=1e-4)

    def test_points_broadcast_against_wavelengths(self) -> None:
        points, wavelength = self._points()
        wide = self.make()(points[:, None], wavelength)  # D ≥ 2: [4, 1, D] against [4]
        assert wide.shape[:2] == (_POINTS, _POINTS)
        diagonal = wide[range(_POINTS), range(_POINTS)]
        torch.testing.assert_close(diagonal, self._value(points), rtol=0, atol=1e-12)

    def test_energy_is_that_of_the_metric(self) -> None:
        metric, (points, wavelength) = self.make(), self._points()
        if isinstance(metric, LogMetric):
            return
        velocity = torch.ones_like(points)
        energy, g = metric.energy(points, velocity, wavelength), metric(points, wavelength)
        torch.testing.assert_close(energy, g if self._dim() == 1 else g.sum((-2, -1)))
        assert (energy > 0).all()
        torch.testing.assert_close(metric.energy(points, 2.0 * velocity, wavelength), 4.0 * energy)

    def test_the_state_goes_there_and_back(self) -> None:
        one, other = self.make(), copy.deepcopy(self.make())
        other.load_state_dict(one.state_dict())
        points, wavelength = self._points()
        assert torch.equal(one(points, wavelength), other(points, wavelength))

    def test_its_logarithm_is_that_of_its_value(self) -> None:
        if self._dim() > 1:
            return
        metric, (points, wavelength) = self.make(), self._points()
        value, slope = metric.value_and_derivative(points, wavelength)
        expected = (value, slope) if isinstance(metric, LogMetric) else (value.log(), slope / value)
        for found, wanted in zip(metric.logarithm_and_slope(points, wavelength), expected, strict=True):
            torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(metric.logarithm(points, wavelength), expected[0])

    def test_a_coupled_ode_keeps_its_lengths(self) -> None:
        """Of one analyte: the full metric √g(c) is the metric's own, whatever the coordinate."""
        metric: Any = self.make()
        if self._dim() > 1 or isinstance(metric, LogMetric) or metric.in_warp_coordinate:
            return
        warp = _range(self.low, self.high)
        ode = CoupledSpectralODE(torch.linspace(400.0, 700.0, 3), warp=warp, metric=metric).place("cpu", torch.float64)
        c = torch.linspace(self.low, self.high, 5, dtype=torch.float64)
        found = torch.exp(ode.log_metric(warp.scaled(c)[None]))[0] * warp(c)[:, None]
        expected = metric(c[:, None], ode.wavelength).expand(5, 3)
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def _range(low: float, high: float) -> Any:
    from geonode.metric import WARPS, WarpMetric

    weights = torch.full((len(WARPS),), 0.1, dtype=torch.float64)
    return WarpMetric.from_weights(weights, c0=low, c_min=low, c_max=high, trainable=False)
