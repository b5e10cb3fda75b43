"""metric_christoffel, metric_value, metric_density: kernel against reference, reference against geonode's network."""

from __future__ import annotations

from functools import partial

import pytest
import torch

import geonode_kernels as gk
from geonode.metric import LogMetricNetwork, MetricNetwork
from tests.kernels.common import FULL, check, draws, metric_weights, relative, strided

# models, points, H1, H2: odd sizes, widths that are padded and widths that are not
CASES = [(1, 1, 3, 5), (2, 63, 5, 17), (1, FULL, 64, 64)]


def inputs(device, models, n, h1, h2, seed=11):
    draw = draws(seed, device)
    return [strided(draw(models, n)), strided(draw(models, n)), *metric_weights(draw, models, h1, h2)]


@pytest.mark.parametrize("output", ["softplus", "exp"])
@pytest.mark.parametrize("case", CASES)
def test_metric_christoffel(device, poisoned, case, output):
    kernel = partial(gk.metric_christoffel, output=output, backend="triton")
    check(kernel, partial(gk.metric_christoffel, output=output, backend="torch"), inputs(device, *case))


@pytest.mark.parametrize(
    "function",
    [gk.metric_value, gk.metric_density, partial(gk.metric_density, output="softplus")],
    ids=["value", "density", "softplus"],
)
@pytest.mark.parametrize("case", CASES[1:])
def test_value_and_density(device, poisoned, case, function):
    check(partial(function, backend="triton"), partial(function, backend="torch"), inputs(device, *case))


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_gradients_of_any_size_keep_their_digits(device, scale):
    arguments = inputs(device, 1, 40, 9, 16)

    def scaled(backend):
        return lambda *a: tuple(scale * r for r in gk.metric_christoffel(*a, backend=backend))

    check(scaled("triton"), scaled("torch"), arguments)


@pytest.mark.parametrize(("precision", "error"), [("tf32", 5e-3), pytest.param("bf16", 3e-2, marks=pytest.mark.gpu)])
def test_lower_precision_is_as_good_as_its_operands(device, precision, error):
    arguments = inputs(device, 1, 63, 16, 16)
    got = gk.metric_christoffel(*arguments, precision=precision, backend="triton")
    exact = gk.metric_christoffel(*(t.double() for t in arguments), backend="torch")
    errors = [relative(a, b) for a, b in zip(got, exact, strict=True)]
    assert 1e-7 < max(errors) < error


@pytest.mark.parametrize("kind", [MetricNetwork, LogMetricNetwork])
def test_the_reference_is_geonodes_network(kind):
    network = kind(hidden=(5, 7), models=2, seed=3).double()
    mlp = network.network.mlp
    weights = [p for pair in zip(mlp.weights, mlp.biases, strict=True) for p in pair]
    draw = draws(5, "cpu")
    c, wavelength = draw(2, 31).double(), draw(2, 31).double()
    value, slope = network.value_and_derivative(c, wavelength)
    if kind is MetricNetwork:
        g, dg, _ = gk.metric_christoffel(c, wavelength, *weights, backend="torch")
        torch.testing.assert_close((g, dg), (value, slope))
    else:
        torch.testing.assert_close(gk.metric_value(c, wavelength, *weights, backend="torch"), value)
        g, dg, gamma = gk.metric_christoffel(c, wavelength, *weights, output="exp", backend="torch")
        torch.testing.assert_close((g, dg, gamma), (value.exp(), slope * value.exp(), 0.5 * slope))


def test_too_wide_a_layer_is_refused_with_the_reason(device):
    arguments = inputs(device, 1, 3, 129, 4)
    with pytest.raises(gk.KernelError, match="129 units"):
        gk.metric_christoffel(*arguments, backend="triton")


@pytest.mark.parametrize("wrong", [{"output": "relu"}, {"precision": "fp8"}, {"backend": "cuda"}])
def test_unknown_names_are_refused(device, wrong):
    with pytest.raises(gk.KernelError, match="unknown"):
        gk.metric_christoffel(*inputs(device, 1, 3, 2, 2), **wrong)
