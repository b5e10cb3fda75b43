"""The pure step: the loss is that of all pairs, models do not mix, the data reach the metric, clipping is per model."""

from __future__ import annotations

import pytest
import torch

from geonode.config import GeodesicConfig, LossWeights
from geonode.flow.ode import MetricOnTable
from geonode.training import BatchSource, PairsBatch, build_problem, losses
from geonode.training.loss import REGULARISERS, clip_gradients, learning_rate, parameter_groups

ONLY_DATA = {"reconstruction": 1.0}


def _model(folds, assay, config, seed=0):
    problem = build_problem(folds, assay.wavelengths, config).to("cpu", torch.float64)
    ode = problem.build_model(config, seed)
    with torch.no_grad():  # away from zero, where m_θ starts
        for parameter in ode.metric.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    return problem, ode, BatchSource(problem, ode.table, config)


def test_points_loss_equals_the_mean_over_all_ordered_pairs(folds, assay, small):
    config = small.replace(interval_nodes=16, nodes=64)
    problem, ode, source = _model(folds, assay, config)
    batch = source.batch(0, 0)
    count = problem.points.shape[1]
    a, b = (index.reshape(-1) for index in torch.meshgrid(torch.arange(count), torch.arange(count), indexing="ij"))
    weight = problem.weight / problem.weight.sum(1, keepdim=True)
    pairs = PairsBatch(
        problem.points[:, a],
        problem.points[:, b],
        problem.target[:, a],
        problem.target[:, b],
        weight[:, a] * weight[:, b],
    )
    by_points = losses(ode, batch, ONLY_DATA)["total"]
    by_pairs = losses(ode, pairs, ONLY_DATA)["total"]
    torch.testing.assert_close(by_points, 0.5 * by_pairs, rtol=1e-6, atol=1e-12)


def test_data_gradient_on_the_metric_network_is_not_zero(folds, assay, small):
    _, ode, source = _model(folds, assay, small)
    losses(ode, source.batch(0, 0), ONLY_DATA)["reconstruction"].sum().backward()
    for name, parameter in ode.metric.named_parameters():
        if name == "network.mlp.biases.2":
            continue  # adds a constant to m_θ, which scales every length alike: ŝ is scaled, so data cannot see it
        per_model = parameter.grad.reshape(len(parameter), -1).abs().amax(1)
        assert (per_model > 1e-9).all(), f"the data do not reach {name}"


def test_data_gradient_on_the_metric_network_is_that_of_finite_differences(folds, assay, small):
    _, ode, source = _model(folds, assay, small)
    batch = source.batch(0, 0)
    weight = next(iter(ode.metric.parameters()))
    losses(ode, batch, ONLY_DATA)["total"].sum().backward()
    step = 1e-6
    with torch.no_grad():
        weight[0, 0, 0] += step
        up = losses(ode, batch, ONLY_DATA)["total"].sum()
        weight[0, 0, 0] -= 2 * step
        down = losses(ode, batch, ONLY_DATA)["total"].sum()
    torch.testing.assert_close(weight.grad[0, 0, 0], (up - down) / (2 * step), rtol=1e-5, atol=1e-10)


def test_models_do_not_mix(folds, assay, small):
    _, ode, source = _model(folds, assay, small)
    terms = losses(ode, source.batch(0, 0), small.loss.at(1.0))
    terms["total"][1].backward()
    for name, parameter in ode.named_parameters():
        if parameter.grad is not None:
            others = parameter.grad[[0, 2]]
            assert (others == 0).all(), f"model 1's loss moved another model's {name}"


@pytest.mark.parametrize("term", sorted(REGULARISERS))
def test_every_regulariser_acts_on_the_metric_and_vanishes_where_it_should(folds, assay, small, term):
    config = small.replace(loss=LossWeights(christoffel=1.0))
    problem, ode, source = _model(folds, assay, config)
    if term == "bounds":  # inside ±ln 100 it must be silent
        assert losses(ode, source.batch(0, 0), {**ONLY_DATA, term: 1.0})[term].abs().max() == 0
        with torch.no_grad():
            list(ode.metric.parameters())[-1].add_(6.0)
    value = losses(ode, source.batch(0, 0), {**ONLY_DATA, term: 1.0})[term]
    assert value.shape == (problem.models,)
    assert (value > 0).all()
    with torch.no_grad():
        for parameter in ode.metric.parameters():
            parameter.zero_()
    if term != "christoffel":  # with m_θ = 0 the metric is its warp
        assert losses(ode, source.batch(0, 0), {**ONLY_DATA, term: 1.0})[term].abs().max() < 1e-12


def test_regularisers_have_the_values_of_their_formulas(folds, assay, small):
    """By hand, for ln g̃ = k + 3u²: its second derivative is 6; for ln g̃ = k the length is e^(k/2) times the warp's."""
    problem, ode, source = _model(folds, assay, small)
    batch, u = source.batch(0, 0), ode.table.nodes[:, :, None].expand(-1, -1, len(ode.wavelength))

    def value(term, log_metric):
        return REGULARISERS[term](ode, MetricOnTable(torch.exp(0.5 * log_metric), log_metric), batch)

    def everywhere(number):
        return torch.full((problem.models,), number, dtype=torch.float64)

    torch.testing.assert_close(value("smoothness", 1.7 + 0.4 * u + 3.0 * u**2), everywhere(36.0), rtol=1e-6, atol=0)
    torch.testing.assert_close(value("path_length", torch.full_like(u, 0.8)), everywhere(0.16), rtol=1e-6, atol=0)
    torch.testing.assert_close(value("bounds", torch.full_like(u, -6.6)), everywhere(4.0), rtol=1e-6, atol=0)


def test_christoffel_loss_is_half_the_slope_of_the_log_metric_against_the_pullback(folds, assay, small):
    problem, ode, source = _model(folds, assay, small.replace(loss=LossWeights(christoffel=1.0)))
    nodes, step = ode.table.nodes, 1e-5
    with torch.no_grad():
        slope = (ode.log_metric(nodes + step) - ode.log_metric(nodes - step)) / (2.0 * step)
        expected = (0.5 * slope - problem.gamma[..., None]).square().mean((1, 2))
        value = losses(ode, source.batch(0, 0), {**ONLY_DATA, "christoffel": 1.0})["christoffel"]
    torch.testing.assert_close(value, expected, rtol=1e-6, atol=0)


def test_clipping_is_per_model_and_exact():
    parameters = [torch.nn.Parameter(torch.zeros(2, 3)), torch.nn.Parameter(torch.zeros(2))]
    parameters[0].grad = torch.tensor([[3.0, 0.0, 0.0], [0.3, 0.0, 0.0]])
    parameters[1].grad = torch.tensor([4.0, 0.4])
    norms = clip_gradients(parameters, 1.0)
    torch.testing.assert_close(norms, torch.tensor([5.0, 0.5]))
    torch.testing.assert_close(parameters[0].grad[0], torch.tensor([0.6, 0.0, 0.0]))
    torch.testing.assert_close(parameters[0].grad[1], torch.tensor([0.3, 0.0, 0.0]))
    torch.testing.assert_close(parameters[1].grad, torch.tensor([0.8, 0.4]))


def test_learning_rate_warms_up_and_decays():
    assert 0 < learning_rate(0.0) < 0.2
    assert learning_rate(0.05) == pytest.approx(1.0)
    assert learning_rate(1.0) == pytest.approx(0.01)


def test_groups_have_their_own_rates(folds, assay, small):
    _, ode, _ = _model(folds, assay, small)
    groups = {group["name"]: group["lr"] for group in parameter_groups(ode)}
    assert groups == {"metric": small.metric_lr, "flow": small.flow_lr}
    _, ode, _ = _bare(folds, assay, small.replace(metric_network=False))
    assert [group["name"] for group in parameter_groups(ode)] == ["flow"]


def _bare(folds, assay, config: GeodesicConfig):
    problem = build_problem(folds, assay.wavelengths, config).to("cpu", torch.float64)
    return problem, problem.build_model(config, 0), None
