"""The default flow's ops: quadrature, loss, arc length; kernel against reference, and laws."""

from __future__ import annotations

from functools import partial

import pytest
import torch

import geonode_kernels as gk
from tests.kernels.common import CUDA, check, draws, relative, strided, values_and_gradients

# models, pairs, wavelengths, hidden, nodes: odd sizes, padded widths, an odd rule, more pairs than one program takes
FULL_FLOW = (1, 600, 601, 64, 16) if CUDA else (1, 9, 3, 64, 16)
CASES = [(1, 1, 1, 1, 1), (2, 63, 5, 5, 3), (3, 30, 7, 20, 4), FULL_FLOW]


def flow_inputs(device, models, pairs, wavelengths, hidden, nodes, seed=41):
    """ŝ at both ends, ω, β, a, a₀."""
    draw = draws(seed, device)
    return [
        strided(draw(models, pairs, wavelengths)),
        strided(draw(models, pairs, wavelengths)),
        draw(models, hidden, scale=3.0),
        strided(draw(models, wavelengths, hidden)),
        strided(draw(models, wavelengths, hidden)),
        draw(models, wavelengths),
    ]


@pytest.mark.parametrize("case", CASES)
def test_flow_quadrature_and_every_gradient(device, poisoned, case):
    kernel = partial(gk.flow_quadrature, nodes=case[4], backend="triton")
    plain = partial(gk.flow_quadrature, nodes=case[4], backend="torch")
    check(kernel, plain, flow_inputs(device, *case))


@pytest.mark.parametrize("case", CASES)
def test_flow_loss_and_every_gradient(device, poisoned, case):
    draw = draws(43, device)
    target, weight = draw(*case[:3]), 0.5 + 0.5 * draw(*case[:2])
    start, end, *rest = flow_inputs(device, *case)
    inputs = [torch.stack([start, end], 1), *rest, strided(target), weight]
    kernel = partial(gk.flow_loss_of_ends, nodes=case[4], backend="triton")
    plain = partial(gk.flow_loss_of_ends, nodes=case[4], backend="torch")
    check(kernel, plain, inputs, constant=[5, 6])


def test_a_path_of_no_length_changes_nothing(device):
    start, _, *rest = flow_inputs(device, 2, 5, 3, 16, 8)
    for backend in ("triton", "torch"):
        assert bool((gk.flow_quadrature(start, start, *rest, backend=backend) == 0).all())


@pytest.mark.smoke
def test_the_integral_is_that_of_tanh(device):
    start, end, omega, beta, a, a0 = flow_inputs(device, 2, 9, 4, 6, 16)
    omega = omega.abs() + 0.5
    inside = [s[..., None] * omega[:, None, None] + beta[:, None] for s in (start.double(), end.double())]
    primitive = [x.cosh().log() for x in inside]
    change = (a[:, None] * (primitive[1] - primitive[0]) / omega[:, None, None]).sum(-1)
    exact = change + a0[:, None] * (end - start).double()
    got = gk.flow_quadrature(start, end, omega, beta, a, a0, nodes=24, backend="triton")
    torch.testing.assert_close(got.double(), exact, rtol=1e-5, atol=1e-5)


def test_saturated_units_neither_overflow_nor_leave_nan(device):
    start, end, omega, *rest = flow_inputs(device, 1, 5, 3, 8, 16)
    # slopes there are rounding: 1e4 ŝ has an error of 1e-3 in float32
    arguments = [start, end, 1e4 * omega, *rest]
    got, gradients = values_and_gradients(partial(gk.flow_quadrature, backend="triton"), arguments)
    exact, _ = values_and_gradients(partial(gk.flow_quadrature, backend="torch"), [t.double() for t in arguments])
    assert relative(got[0], exact[0]) < 1e-4
    assert all(bool(torch.isfinite(g).all()) for g in gradients)


@pytest.mark.smoke
@pytest.mark.parametrize(("models", "points", "nodes", "width"), [(1, 1, 2, 1), (2, 63, 6, 37), (1, 61, 64, 601)])
def test_arc_length(device, poisoned, models, points, nodes, width):
    draw = draws(5, device)
    inputs = [1.5 + draw(models, points + 1, nodes), strided(1.5 + draw(models, nodes, width))]
    kernel, plain = partial(gk.arc_length, backend="triton"), partial(gk.arc_length, backend="torch")
    check(kernel, plain, inputs, constant=[0])


def test_too_many_units_are_refused_with_the_reason(device):
    with pytest.raises(gk.KernelError, match="257 hidden units"):
        gk.flow_quadrature(*flow_inputs(device, 1, 2, 2, 257, 4), backend="triton")
