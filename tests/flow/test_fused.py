"""The misfit that training takes on a GPU against its definition: transport, then a weighted mean square."""

from __future__ import annotations

import pytest
import torch

from geonode.flow import SpectralFlow, fused
from geonode.flow.arctable import ArcLengthTable
from geonode.metric import LogMetricNetwork
from geonode_kernels._dispatch import WIDEST_FLOW
from tests.flow.conftest import build


def drawn(flow: str, dtype: torch.dtype):
    """A model away from its start, and pairs with a path of no length among them."""
    ode = build(flow=flow, models=2, dtype=dtype)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in [*ode.metric.parameters(), *ode.flow.parameters()]:
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64).to(parameter))
    width = len(ode.wavelength)
    start, end = 2.0 * torch.rand(2, 2, 5, generator=generator, dtype=torch.float64) - 1.0
    end[:, 0] = start[:, 0]
    source, target = torch.rand(2, 2, 5, width, generator=generator, dtype=torch.float64)
    weight = torch.rand(2, 5, generator=generator, dtype=torch.float64)
    return ode, start, end, source, target, weight


def both(ode, start, end, source, target, weight, index, backend):
    """The misfit by its definition and by the fused form, each with its gradients."""
    if index is not None:
        source, target = source[..., index], target[..., index]
    parameters = [*([] if ode.metric is None else ode.metric.parameters()), *ode.flow.parameters()]
    results = []
    for which in ("definition", "fused"):
        table = ode.on_table(index)
        if which == "definition":
            error = (ode.transport(source, start, end, index, table=table) - target).square().mean(-1)
            value = (error * weight).sum(1) / weight.sum(1)
        else:
            phi = ode.table.phi(torch.cat([start, end], 1)).to(source)
            value = fused.misfit(ode, phi, target - source, weight, index, table, backend)
        gradients = torch.autograd.grad(value.sum(), parameters, allow_unused=True, materialize_grads=True)
        results.append([value.detach(), *gradients])
    return results


@pytest.mark.parametrize("flow", ["path_independent", "velocity"])
@pytest.mark.parametrize("index", [None, [0, 2, 4]], ids=["all", "drawn"])
def test_the_misfit_is_transport_and_a_weighted_mean_square(flow, index) -> None:
    index = None if index is None else torch.tensor(index)
    exact, ours = both(*drawn(flow, torch.float64), index, "torch")
    assert exact[0].min() > 1e-3 and sum(float(g.abs().max() > 0) for g in exact[1:]) >= 10
    for a, b in zip(exact, ours, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("flow", ["path_independent", "velocity"])
@pytest.mark.parametrize(
    "changes",
    [{}, {"metric_hidden": (8, 8, 8)}, {"metric_network": False}, {"warp": False, "metric_hidden": (8,)}],
    ids=str,
)
def test_the_misfit_of_a_ragged_stack_with_ranges_of_its_own(flow, changes) -> None:
    """Three models whose tables reach differently far, pairs of weight zero, and metrics that kernels do not know."""
    ode = build(flow=flow, models=3, **changes)
    low, high = torch.tensor([-1.7, -1.0, -1.2]).double(), torch.tensor([1.0, 2.1, 1.4]).double()
    ode.table = ArcLengthTable(low, high, ode.config.table_nodes)
    generator = torch.Generator().manual_seed(3)
    share = torch.rand(2, 3, 6, generator=generator, dtype=torch.float64)
    start, end = low[:, None] + (high - low)[:, None] * share
    start[:, 1], end[:, 2] = low, high
    source, target = torch.rand(2, 3, 6, len(ode.wavelength), generator=generator, dtype=torch.float64)
    weight = torch.rand(3, 6, generator=generator, dtype=torch.float64)
    weight[0, 4:], weight[2, 0] = 0.0, 0.0
    exact, ours = both(ode, start, end, source, target, weight, torch.tensor([4, 1]), "torch")
    assert exact[0].min() > 1e-3
    for a, b in zip(exact, ours, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-9, atol=1e-12)
    heavier = target.clone()
    heavier[0, 4:] += 100.0  # where the weight is zero
    again, _ = both(ode, start, end, source, heavier, weight, torch.tensor([4, 1]), "torch")
    torch.testing.assert_close(again[0], exact[0], rtol=0, atol=0)


@pytest.mark.parametrize("flow", ["path_independent", "velocity"])
def test_the_kernels_give_the_same_misfit_and_gradients(flow) -> None:
    """In float32, interpreted where there is no GPU, against the definition in float64."""
    pytest.importorskip("triton")
    exact, _ = both(*drawn(flow, torch.float64), None, "torch")
    single = drawn(flow, torch.float32)
    if torch.cuda.is_available():
        single = [part.cuda() for part in single]
    ode, start, end, *data = single
    _, ours = both(ode, start, end, *(t.float() for t in data), None, "triton")
    for a, b in zip(exact, ours, strict=True):
        # one gradient is zero: a constant added to m_θ scales every length alike
        assert (b.cpu().double() - a).abs().max() <= 1e-4 * a.abs().max() + 1e-6
    assert max(float(a.abs().max()) for a in exact[1:]) > 1e-2


def test_a_flow_or_metric_of_ones_own_takes_the_definition(monkeypatch) -> None:
    """Even where every tensor could go to a kernel: what a subclass overrides, kernels do not know."""
    monkeypatch.setattr(fused, "verify", lambda tensors: None)
    ode = build()
    source = torch.rand(1, 2, 5)
    assert fused.misfit_fits(ode, source) and fused.metric_fits(ode.metric, source)
    ode.flow.__class__ = type("OwnFlow", (SpectralFlow,), {})
    ode.metric.__class__ = type("OwnMetric", (LogMetricNetwork,), {"forward": lambda *_: source})
    assert not fused.misfit_fits(ode, source) and not fused.metric_fits(ode.metric, source)


@pytest.mark.parametrize(
    "changes",
    [
        {"flow": "free"},
        {"solver": "rk4"},
        {"solver": "rk4", "path": "shooting"},
        {"flow_hidden": WIDEST_FLOW + 1},
    ],
    ids=str,
)
def test_what_the_misfit_has_no_formula_for_takes_the_definition_on_any_device(changes, monkeypatch) -> None:
    monkeypatch.setattr(fused, "verify", lambda tensors: None)
    assert fused.misfit_fits(build(), torch.rand(1, 2, 5))
    assert not fused.misfit_fits(build(**changes), torch.rand(1, 2, 5))


def test_what_has_no_kernel_takes_the_definition() -> None:
    ode = build(flow="velocity")
    assert not fused.misfit_fits(ode, torch.rand(1, 2, 5, dtype=torch.float64))  # float64, on a CPU
    assert not fused.metric_fits(ode.metric, torch.rand(1, 2, 5))
    assert fused.metric_weights(ode.metric) is not None
    assert fused.metric_weights(build(metric_hidden=(8, 8, 8)).metric) is None
    assert fused.metric_weights(build(metric_hidden=(8, 200)).metric) is None
