"""christoffel_fd and christoffel_grid: kernel against reference, reference against geonode."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from geonode_kernels.elementwise import christoffel_fd, christoffel_grid
from tests.kernels.common import FULL, check, draws, strided

ENDS = ((-0.5, 1.5), (-1.0, 1.0))


@pytest.mark.parametrize("shape", [(1,), (63,), (2, 601), (FULL,)])
def test_christoffel_fd(device, poisoned, shape):
    draw = draws(2, device)
    inputs = [1.0 + 0.5 * draw(*shape), strided(1.5 + draw(*shape)), 1.0 + 0.5 * draw(*shape), draw(*shape, scale=0.05)]
    kernel, plain = (partial(christoffel_fd, step=0.05, backend=backend) for backend in ("triton", "torch"))
    check(kernel, plain, inputs)


@pytest.mark.parametrize("shift", [0.0, -1e-4, 1e-4])
def test_christoffel_fd_is_that_of_an_exact_metric(shift):
    c = torch.linspace(0.5, 2.0, 31, dtype=torch.float64)
    g = [1.0 / (c - shift + d).square() for d in (-1e-4, 0.0, 1e-4)]
    torch.testing.assert_close(christoffel_fd(*g, torch.full_like(c, shift), 1e-4), -1.0 / c, rtol=1e-6, atol=0)


# the third and the fourth have points enough for the table to be packed
@pytest.mark.parametrize(
    ("models", "n", "shape"),
    [(1, 1, (2, 2)), (2, 63, (11, 7)), (1, 80, (2, 2)), (2, 999, (5, 6)), (1, FULL, (200, 61))],
)
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
        (lambda t: christoffel_fd(t(3), t(3), t(4), t(3), 0.1), "one shape"),
        (lambda t: christoffel_fd(t(3), t(3), t(3), t(3), 0.0), "step"),
        (lambda t: christoffel_grid(t(1, 1, 4), t(1, 3), t(1, 3), (0, 1), (0, 1)), "table"),
        (lambda t: christoffel_grid(t(1, 3, 4), t(1, 3), t(1, 3), (1, 1), (0, 1)), "c_range"),
    ],
)
def test_what_does_not_fit_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call(torch.ones)
