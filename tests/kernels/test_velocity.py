"""The flow that sees the velocity: points of a path, and its loss."""

from __future__ import annotations

from functools import partial

import pytest
import torch

import geonode_kernels as gk
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


def path_inputs(device, models, pairs, width, hidden, nodes, size):
    """Ends, S(1)/2, series of S and ρ, S at the nodes for a smooth positive ρ; and the table's nodes and range."""
    draw = draws(61, "cpu")
    arcs = table(models, size)
    shape = draw(models, 1, width).double()
    density = torch.exp(0.6 * torch.sin(2.0 * arcs.nodes[:, :, None] + 3.0 * shape))
    half = 0.5 * arcs.length(density)[:, 0]
    tensors = [half, arcs.coefficients(density), arcs.density_coefficients(density), arcs.at_nodes(density)]
    ends = 0.98 * draw(models, 2, pairs, width)
    where = {"grid": arcs.nodes, "low": arcs.low, "high": arcs.high}
    moved = {name: t.float().to(device) for name, t in where.items()}
    return [strided(ends.to(device)), *(t.float().to(device) for t in tensors)], moved


@pytest.mark.parametrize("case", CASES)
def test_path_points_and_their_gradients(device, poisoned, case):
    tensors, where = path_inputs(device, *case)
    kernel = partial(gk.path_points, **where, nodes=case[4], backend="triton")
    plain = partial(gk.path_points, **where, nodes=case[4], backend="torch")
    check(kernel, plain, tensors, constant=[4], largest=5e-6)


def test_path_points_lie_where_the_arc_length_says(device):
    (ends, half, series, slope, ascending), where = path_inputs(device, 2, 7, 3, 1, 5, 24)
    u, density = gk.path_points(ends, half, series, slope, ascending, **where, nodes=5, backend="triton")
    u = u.double()
    x = torch.tensor(gauss_legendre(5)[0], dtype=torch.float64, device=device)[None, :, None, None]
    s_hat = ends[:, :1] + 0.5 * (1 + x) * (ends[:, 1:] - ends[:, :1])
    low, high = (t.double()[:, None, None, None] for t in (where["low"], where["high"]))
    reached = evaluate(series.double(), u, low, high)
    torch.testing.assert_close(reached, (s_hat + 1) * half.double()[:, None, None], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(density.double(), evaluate(slope.double(), u, low, high), rtol=1e-5, atol=1e-6)


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
