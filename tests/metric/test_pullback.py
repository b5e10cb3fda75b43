"""The pull-back metric: a known map gives the known geometry of its image."""

from __future__ import annotations

import pytest
import torch

from geonode.errors import InputError
from geonode.geodesic import shoot
from geonode.metric import Metric, PullbackMetric, Sphere


def on_the_sphere(c: torch.Tensor) -> torch.Tensor:
    theta, phi = c.unbind(-1)
    return torch.stack([theta.sin() * phi.cos(), theta.sin() * phi.sin(), theta.cos()], -1)


def test_embedding_of_the_sphere_pulls_back_its_metric() -> None:
    metric = PullbackMetric(on_the_sphere, dim=2)
    c = torch.rand(6, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 0.5
    torch.testing.assert_close(metric(c), Sphere()(c))
    for ours, theirs in zip(metric.two_derivatives(c), Sphere().two_derivatives(c), strict=True):
        torch.testing.assert_close(ours, theirs)
    solution = shoot(metric, c[:3], c[3:], ode_steps=2, stages=1, newton_steps=3, tolerance=1e-3)
    on_sphere = shoot(Sphere(), c[:3], c[3:], ode_steps=2, stages=1, newton_steps=3, tolerance=1e-3)
    torch.testing.assert_close(solution.initial_velocity, on_sphere.initial_velocity)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_derivatives_equal_forward_mode_through_the_metric(dim: int) -> None:
    mix = torch.randn(5, dim, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    full = mix @ mix.T + torch.eye(5, dtype=torch.float64)
    bend = lambda c: torch.tanh((c[..., None] if dim == 1 else c) @ mix.T)  # noqa: E731
    c = torch.rand((3,) if dim == 1 else (3, dim), generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    for precision in (None, full):
        metric = PullbackMetric(bend, dim=dim, precision=precision, floor=0.3)
        assert torch.autograd.gradcheck(lambda x, m=metric: m(x), (c.clone().requires_grad_(),))
        ours, theirs = metric.two_derivatives(c), Metric.two_derivatives(metric, c)
        first = Metric.value_and_derivative(metric, c)
        for x, y in zip((*ours, *metric.value_and_derivative(c)), (*theirs, *first), strict=True):
            torch.testing.assert_close(x, y)
    wide = PullbackMetric(bend, dim=dim).value_and_derivative(c[:, None], torch.zeros(1, 4, dtype=torch.float64))
    assert wide[0].shape[:2] == (3, 4) == wide[1].shape[:2]


def test_precision_weighs_the_channels() -> None:
    curve = lambda c: torch.stack([3.0 * c, c**2], -1)  # noqa: E731
    c = torch.tensor([0.5, 1.0], dtype=torch.float64)
    torch.testing.assert_close(PullbackMetric(curve)(c), 9.0 + 4.0 * c**2)
    weights = torch.tensor([2.0, 0.5], dtype=torch.float64)
    torch.testing.assert_close(PullbackMetric(curve, precision=weights)(c), 18.0 + 2.0 * c**2)
    full = torch.tensor([[2.0, 0.3], [0.3, 0.5]], dtype=torch.float64)
    expected = 18.0 + 2.0 * c**2 + 2 * 0.3 * 3.0 * 2.0 * c
    torch.testing.assert_close(PullbackMetric(curve, precision=full)(c), expected)
    torch.testing.assert_close(PullbackMetric(curve, floor=0.7)(c), 9.7 + 4.0 * c**2)


def test_parameters_and_wavelength_of_the_map() -> None:
    class Line(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gain = torch.nn.Parameter(torch.tensor(2.0))

        def forward(self, c: torch.Tensor, wavelength: torch.Tensor) -> torch.Tensor:
            return (self.gain * wavelength * c)[..., None]

    metric = PullbackMetric(Line(), uses_wavelength=True)
    g = metric(torch.ones(3), torch.tensor([1.0, 2.0, 3.0]))
    torch.testing.assert_close(g, torch.tensor([4.0, 16.0, 36.0]))
    g.sum().backward()
    assert next(metric.parameters()).grad.item() == pytest.approx(56.0)


def test_bad_input() -> None:
    with pytest.raises(InputError, match="floor must not be negative"):
        PullbackMetric(on_the_sphere, floor=-1.0)
    with pytest.raises(InputError, match=r"precision must be \[K\]"):
        PullbackMetric(on_the_sphere, precision=torch.zeros(2, 3))
