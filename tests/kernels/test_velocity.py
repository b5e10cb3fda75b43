"""The flow that sees the velocity: points of a path, its loss, and the whole against geonode's own integration."""

from __future__ import annotations

from functools import partial

import pytest
import torch

import geonode_kernels as gk
from geonode.config import GeodesicConfig
from geonode.flow import CoupledSpectralODE
from geonode.flow.arctable import ArcLengthTable
from geonode_kernels._gauss import gauss_legendre
from geonode_kernels.velocity_flow.reference import evaluate
from tests.kernels.common import CUDA, check, draws, strided

# models, pairs, wavelengths, hidden, path nodes, table nodes
FULL_PATHS = (1, 600, 601, 64, 16, 64) if CUDA else (1, 9, 3, 64, 16, 64)
CASES = [(1, 1, 1, 1, 1, 4), (2, 63 if CUDA else 19, 5, 5, 3, 9), FULL_PATHS]


def table(models, size):
    low = torch.full((models,), -1.1, dtype=torch.float64) - 0.1 * torch.arange(models)
    return ArcLengthTable(low, torch.full((models,), 1.2, dtype=torch.float64), nodes=size)


def on(device, matrices):
    return gk.TableMatrices(*(t.float().to(device) for t in matrices))


def path_inputs(device, models, pairs, width, hidden, nodes, size):
    """Ends, S(1)/2, series of S and ρ, S at the nodes for a smooth positive ρ; and the matrices."""
    draw = draws(61, "cpu")
    arcs = table(models, size)
    matrices = arcs.matrices()
    shape = draw(models, 1, width).double()
    density = torch.exp(0.6 * torch.sin(2.0 * arcs.nodes[:, :, None] + 3.0 * shape))
    half = 0.5 * arcs.length(density)[:, 0]
    tensors = [half, matrices.series @ density, matrices.slope @ density, matrices.at_nodes @ density]
    ends = 0.98 * draw(models, 2, pairs, width)
    return [strided(ends.to(device)), *(t.float().to(device) for t in tensors)], on(device, matrices)


@pytest.mark.parametrize("case", CASES)
def test_path_points_and_their_gradients(device, poisoned, case):
    tensors, matrices = path_inputs(device, *case)
    kernel = partial(gk.path_points, matrices=matrices, nodes=case[4], backend="triton")
    plain = partial(gk.path_points, matrices=matrices, nodes=case[4], backend="torch")
    check(kernel, plain, tensors, constant=[3, 4], largest=5e-6)


def test_path_points_lie_where_the_arc_length_says(device):
    (ends, half, series, slope, ascending), matrices = path_inputs(device, 2, 7, 3, 1, 5, 24)
    u = gk.path_points(ends, half, series, slope, ascending, matrices, 5, backend="triton").double()
    x = torch.tensor(gauss_legendre(5)[0], dtype=torch.float64, device=device)[None, :, None, None]
    s_hat = ends[:, :1] + 0.5 * (1 + x) * (ends[:, 1:] - ends[:, :1])
    low, high = (t.double()[:, None, None, None] for t in (matrices.low, matrices.high))
    reached = evaluate(series.double(), u, low, high)
    torch.testing.assert_close(reached, (s_hat + 1) * half.double()[:, None, None], rtol=1e-5, atol=1e-6)


def loss_inputs(device, models, pairs, width, hidden, nodes, size):
    draw = draws(62, device)
    return [
        strided(draw(models, 2, pairs, width)), 1.5 + draw(models, nodes, pairs, width),
        1.0 + 0.5 * draw(models, width), draw(models, hidden, scale=3.0), draw(models, hidden),
        strided(draw(models, width, hidden)), strided(draw(models, width, hidden)), draw(models, width),
        draw(models, pairs, width), 0.5 + 0.5 * draw(models, pairs),
    ]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_velocity_loss_and_every_gradient(device, poisoned, case):
    kernel, plain = partial(gk.velocity_loss, backend="triton"), partial(gk.velocity_loss, backend="torch")
    check(kernel, plain, loss_inputs(device, *case), constant=[8, 9], largest=5e-6)


def whole(models=2, pairs=6, width=5, hidden=7, size=16, nodes=6):
    """A geonode model with ``flow="velocity"`` in float64, pairs in it, and the arguments of `velocity_flow_loss`."""
    config = GeodesicConfig(flow="velocity", table_nodes=size, nodes=nodes, flow_hidden=hidden, metric_hidden=(9, 6))
    ode = CoupledSpectralODE(torch.linspace(400, 700, width), config, models=models, low=-1.1, high=1.1, seed=4)
    ode = ode.double()
    draw = draws(63, "cpu")
    with torch.no_grad():
        for p in ode.parameters():
            p += 0.2 * draw(*p.shape).double()
    start, end = draw(models, pairs).double(), draw(models, pairs).double()
    target, weight = draw(models, pairs, width).double(), 0.5 + 0.5 * draw(models, pairs).double()
    mlp, flow = ode.metric.network.mlp, ode.flow
    metric = [p for pair in zip(mlp.weights, mlp.biases, strict=True) for p in pair]
    coefficient = torch.cat([flow.beta_weight, flow.a_weight, flow.a0_weight[..., None]], -1)
    bias = torch.nn.functional.pad(flow.beta_bias, (0, hidden + 1))
    one = torch.ones(models, 1, dtype=torch.float64)
    grid = ode.wavelength.expand(models, size, width).reshape(models, -1)
    u = ode.table.nodes[:, :, None].expand(models, size, width).reshape(models, -1)
    phi = ode.table.phi(torch.cat([start, end, one], 1))
    arguments = (metric, [flow.omega, flow.nu, flow.embedding, coefficient, bias], u, grid, phi)
    return ode, (start, end, target, weight), arguments, ode.table.matrices(), nodes


def test_the_whole_is_geonodes_velocity_flow_with_its_gradients():
    ode, (start, end, target, weight), arguments, matrices, nodes = whole()
    change = ode.transport(torch.zeros_like(target), start, end)
    expected = (weight[..., None] * (change - target).square()).sum((1, 2))
    got = gk.velocity_flow_loss(*arguments, matrices, target, weight, nodes=nodes, backend="torch")
    torch.testing.assert_close(got, expected, rtol=1e-8, atol=1e-10)
    parameters = [p for p in ode.parameters() if p.requires_grad]
    ours, theirs = (torch.autograd.grad(x.sum(), parameters) for x in (got, expected))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9)


def test_the_whole_by_kernels(device):
    _, (_, _, target, weight), (metric, flow, *data), matrices, nodes = whole(models=1, pairs=3)
    leaves = [t.detach().float().to(device).requires_grad_() for t in (*metric, *flow)]
    data = [t.float().to(device) for t in data]

    def loss(*tensors, backend):
        extra = [t.to(tensors[0]) for t in (*data, target, weight)]
        kind = gk.TableMatrices(*(t.to(tensors[0]) for t in matrices))
        return gk.velocity_flow_loss(
            tensors[:6], tensors[6:], *extra[:3], kind, *extra[3:], nodes=nodes, backend=backend
        )

    # a bias added to ln g̃ scales every density alike: neither ŝ nor the velocity sees it
    check(partial(loss, backend="triton"), partial(loss, backend="torch"), leaves, constant=[5], largest=2e-5)
