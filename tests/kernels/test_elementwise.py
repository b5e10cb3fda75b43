"""bias_softplus, christoffel_fd and christoffel_grid: kernel against reference, reference against geonode."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from geonode_kernels.elementwise import bias_softplus, christoffel_fd, christoffel_grid
from tests.kernels.common import FULL, check, draws, strided

ENDS = ((-0.5, 1.5), (-1.0, 1.0))


@pytest.mark.parametrize(("models", "n", "features"), [(1, 1, 1), (2, 63, 5), (1, 301, 67), (1, FULL, 64)])
def test_bias_softplus(device, poisoned, models, n, features):
    draw = draws(1, device)
    inputs = [strided(draw(models, n, features, scale=30.0)), draw(models, features)]
    check(
        partial(bias_softplus, floor=0.1, backend="triton"), partial(bias_softplus, floor=0.1, backend="torch"), inputs
    )


def test_bias_softplus_neither_overflows_nor_loses_small_values(device):
    x = torch.tensor([[-100.0, -20.0, 0.0, 20.0, 90.0, 1e30]], device=device)
    got = bias_softplus(x, torch.zeros(6, device=device), backend="triton")
    expected = torch.nn.functional.softplus(x.double(), threshold=1e9)
    torch.testing.assert_close(got.double()[:, 1:5], expected[:, 1:5], rtol=1e-6, atol=1e-9)
    assert got[0, 0] < 1e-12 and got[0, 5] == x[0, 5]


@pytest.mark.parametrize("shape", [(1,), (63,), (2, 601), (FULL,)])
def test_christoffel_fd(device, poisoned, shape):
    draw = draws(2, device)
    inputs = [1.0 + 0.5 * draw(*shape), strided(1.5 + draw(*shape)), 1.0 + 0.5 * draw(*shape)]
    check(
        partial(christoffel_fd, epsilon=0.05, backend="triton"),
        partial(christoffel_fd, epsilon=0.05, backend="torch"),
        inputs,
    )


def test_christoffel_fd_is_that_of_an_exact_metric():
    c = torch.linspace(0.5, 2.0, 31, dtype=torch.float64)
    g = [1.0 / (c + d).square() for d in (-1e-4, 0.0, 1e-4)]
    torch.testing.assert_close(christoffel_fd(*g, 1e-4), -1.0 / c, rtol=1e-6, atol=0)


@pytest.mark.parametrize(("models", "n", "shape"), [(1, 1, (2, 2)), (2, 63, (11, 7)), (1, FULL, (200, 61))])
def test_christoffel_grid(device, poisoned, models, n, shape):
    draw = draws(3, device)
    height, width = (torch.linspace(0, 2, k, device=device) for k in shape)
    smooth = torch.sin(height[:, None] + width.square()) + torch.arange(models, device=device)[:, None, None]
    inputs = [smooth, 0.5 + draw(models, n, scale=0.99), strided(draw(models, n, scale=0.99))]
    kernel = partial(christoffel_grid, c_range=ENDS[0], wavelength_range=ENDS[1], backend="triton")
    plain = partial(christoffel_grid, c_range=ENDS[0], wavelength_range=ENDS[1], backend="torch")
    check(kernel, plain, inputs, constant=[0], largest=1e-4)  # a point on a cell's edge has the slope of either side


def test_christoffel_grid_is_nan_outside_and_keeps_its_ends(device):
    table = draws(4, device)(1, 5, 4)
    c = torch.tensor([[-0.5, 1.5, 1.6, -0.6, 0.0]], device=device)
    lam = torch.tensor([[-1.0, 1.0, 0.0, 0.0, 1.2]], device=device)
    for backend in ("triton", "torch"):
        got = christoffel_grid(table, c, lam, *ENDS, backend=backend)[0]
        torch.testing.assert_close(got[:2], torch.stack([table[0, 0, 0], table[0, -1, -1]]))
        assert bool(got[2:].isnan().all())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: bias_softplus(t(3, 4), t(5)), "must be"),
        (lambda t: christoffel_fd(t(3), t(3), t(4), 0.1), "one shape"),
        (lambda t: christoffel_fd(t(3), t(3), t(3), 0.0), "epsilon"),
        (lambda t: christoffel_grid(t(1, 1, 4), t(1, 3), t(1, 3), (0, 1), (0, 1)), "table"),
        (lambda t: christoffel_grid(t(1, 3, 4), t(1, 3), t(1, 3), (1, 1), (0, 1)), "c_range"),
    ],
)
def test_what_does_not_fit_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call(torch.ones)
