"""The closed form for one analyte: failures are values, and bad input is refused."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from geonode.errors import InputError, SolverError
from geonode.geodesic import Status, arc_length_geodesic
from geonode.metric import (
    Euclidean,
    MetricNetwork,
    PoincareHalfPlane,
    PowerLaw,
)
from tests.geodesic.metrics import RawPowerLaw, Watched
from tests.tolerances import tolerance

# ------------------------------------------------------------------ failures


def test_failures_are_values_and_leave_their_neighbours_alone() -> None:
    nan = math.nan
    a = torch.tensor([0.1, nan, 0.1, 0.1, 0.7, 0.1], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([0.9, 0.5, math.inf, 0.8, 0.7, 0.9], dtype=torch.float64, requires_grad=True)
    wl = torch.tensor([0.0, 0.0, 0.0, 11.0, 0.0, nan], dtype=torch.float64)
    metric = Watched()
    solution = arc_length_geodesic(metric, a, b, wl)
    assert solution.status.tolist() == [0, 3, 3, 3, 0, 3]
    good = [0, 4]
    alone = arc_length_geodesic(metric, a[good], b[good], wl[good])
    torch.testing.assert_close(solution.initial_velocity[good], alone.initial_velocity, **tolerance(torch.float64))
    path = solution.at(0.5)
    assert torch.isfinite(path[good]).all() and torch.isnan(path[[1, 2, 3, 5]]).all()
    (solution.initial_velocity[good].sum() + path[good].sum()).backward()
    for tensor in (a, b, metric.gain):
        assert torch.isfinite(tensor.grad).all()
    with pytest.raises(SolverError, match=r"from nan to 0\.5 at wavelength 0 .*3 more of 6"):
        solution.throw()


def test_a_loss_over_everything_still_has_finite_gradients() -> None:
    """Not only the good ones are summed: the mask is the caller's, the zeros must be ours."""
    metric = Watched()
    a = torch.tensor([0.1, 0.1], dtype=torch.float64, requires_grad=True)
    wl = torch.tensor([0.0, 11.0], dtype=torch.float64)
    solution = arc_length_geodesic(metric, a, a + 0.5, wl)
    torch.where(solution.converged, solution.initial_velocity, 0.0).sum().backward()
    assert torch.isfinite(a.grad).all() and torch.isfinite(metric.gain.grad).all()


class Ends(MetricNetwork):
    """√(0.8 − c) times a network: no number beyond c = 0.8."""

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        return super().forward(c, wavelength) * (0.8 - c).sqrt()


@pytest.mark.parametrize("models", [None, 2])
def test_a_shared_table_spoilt_by_one_problem_costs_no_other(models: int | None) -> None:
    """All three have one wavelength; the second asks beyond the pole of the metric."""
    metric = Ends(models=models, hidden=(8,)).double()
    lead = () if models is None else (models,)
    a = torch.tensor([0.1, 0.1, 0.6], dtype=torch.float64).expand(*lead, 3)
    b = torch.tensor([0.5, 0.95, 0.2], dtype=torch.float64).expand(*lead, 3)
    wl = torch.zeros((*lead, 1), dtype=torch.float64)
    solution = arc_length_geodesic(metric, a, b, wl)
    assert solution.status.reshape(-1, 3)[0].tolist() == [0, 3, 0]
    assert arc_length_geodesic(metric, a, b, wl, shared=True).status.reshape(-1, 3)[0].tolist() == [3, 3, 3]
    good = [0, 2]
    alone = arc_length_geodesic(metric, a[..., good], b[..., good], wl)
    torch.testing.assert_close(solution.initial_velocity[..., good], alone.initial_velocity, **tolerance(torch.float64))
    path, path_alone = solution.at(torch.tensor([0.0, 0.4])), alone.at(torch.tensor([0.0, 0.4]))
    torch.testing.assert_close(path[..., good], path_alone, **tolerance(torch.float64))
    assert path[..., 1].isnan().all()
    torch.where(solution.converged, solution.initial_velocity, 0.0).sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in metric.parameters())


def test_a_far_neighbour_coarsens_no_table() -> None:
    a, b = torch.tensor([1e-3, 1.0], dtype=torch.float64), torch.tensor([10.0, 1.5], dtype=torch.float64)
    assert arc_length_geodesic(RawPowerLaw(), a, b, nodes=16).status.tolist() == [Status.MAX_ITERATIONS, 0]


def test_too_few_nodes_are_reported() -> None:
    """c⁻² over four decades is no polynomial of degree 15; the problem beside it is."""
    a = torch.tensor([1e-3, 1.0], dtype=torch.float64)
    b = torch.tensor([10.0, 1.5], dtype=torch.float64)
    own = arc_length_geodesic(RawPowerLaw(), a, b, nodes=16, shared=False)
    assert own.status.tolist() == [Status.MAX_ITERATIONS, Status.CONVERGED]
    assert torch.isfinite(own.initial_velocity).all() and own.residual[0] > own.residual[1]
    with pytest.raises(SolverError, match=r"from 0\.001 to 10 did not reach the tolerance"):
        own.throw()
    assert arc_length_geodesic(PowerLaw(), a, b, nodes=16).status.tolist() == [0, 0], "its chart resolves it"


def test_leaving_the_domain_is_reported() -> None:
    a, b = torch.tensor([1.0, -1.0, 1.0]), torch.tensor([2.0, 1.0, 0.0])
    assert arc_length_geodesic(PowerLaw(), a, b).status.tolist() == [0, 2, 2]


@settings(max_examples=15)
@given(st.floats(0.01, 1.0), st.integers(8, 40))
def test_the_estimated_error_bounds_the_true_one(low: float, nodes: int) -> None:
    a, b = torch.tensor([low], dtype=torch.float64), torch.tensor([2.0], dtype=torch.float64)
    metric = RawPowerLaw()
    solution = arc_length_geodesic(metric, a, b, nodes=nodes, tolerance=1.0)
    miss = (metric.exp(a, solution.initial_velocity) - b).abs()
    assert miss.item() <= 2.0 * solution.residual.item() + 1e-11


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: arc_length_geodesic(PoincareHalfPlane(), x, x), "2 coordinates: use shoot"),
        (lambda x: arc_length_geodesic(Euclidean(), x, x, nodes=4), "nodes must be at least 8"),
        (lambda x: arc_length_geodesic(Euclidean(), x, x.double()), "same dtype"),
        (lambda x: arc_length_geodesic(Euclidean(), x, torch.ones(3)), "do not broadcast"),
        (lambda x: arc_length_geodesic(Euclidean(), torch.arange(2), x), "floating-point"),
        (lambda x: arc_length_geodesic(MetricNetwork(), x, x), "depends on the wavelength"),
    ],
)
def test_bad_input(call, says: str) -> None:
    with pytest.raises(InputError, match=says):
        call(torch.ones(2))
