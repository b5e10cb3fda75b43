"""Laws of the adapters: at their start nothing changes; merged is what it was before; only they are trained."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from geonode.adaptation import LowRank, adapters, gather_series, merged, tune, with_adapters
from geonode.adaptation.lowrank import HEADS, layer_names
from geonode.prior.flow import AssayFlow
from tests.adaptation.conftest import NAMES, QUICK
from tests.adaptation.instrument import series


def predicted(network):
    data = series(9, width=31)
    flow = AssayFlow(network, data.levels, data.level_means())
    found = flow.predict(np.linspace(data.levels[0], data.levels[-1], 9))
    return found.mean, found.scale


def moved(network, size=0.1):
    """A network whose adapters are somewhere else than at their start."""
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in adapters(network):
            parameter += size * torch.randn(parameter.shape, generator=draw)
    return network


@pytest.mark.parametrize("rank", [1, 2, 4, 16])
def test_adapters_at_their_start_change_nothing(small, rank):
    for before, after in zip(predicted(small), predicted(with_adapters(small, rank)), strict=True):
        np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("rank", [1, 3])
def test_merged_predicts_what_the_adapters_do_and_has_none(small, rank):
    network = moved(with_adapters(small, rank))
    whole = merged(network)
    assert adapters(network) and not adapters(whole)
    assert whole.state_dict().keys() == small.state_dict().keys()
    for one, other in zip(predicted(whole), predicted(network), strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.abs(predicted(whole)[0] - predicted(small)[0]).max() > 1e-4


@settings(max_examples=20, deadline=None)
@given(rows=st.integers(1, 9), columns=st.integers(1, 9), rank=st.integers(1, 4), seed=st.integers(0, 99))
def test_the_correction_is_of_its_rank_and_is_added_to_what_the_layer_does(rows, columns, rank, seed):
    torch.manual_seed(seed)
    layer, x = nn.Linear(columns, rows).double(), torch.randn(5, columns, dtype=torch.float64)
    one = LowRank(layer.weight, rank, seed)
    assert torch.equal(one(layer.weight), layer.weight)
    nn.init.normal_(one.u)
    change = (one(layer.weight) - layer.weight).detach()
    assert int(torch.linalg.matrix_rank(change, rtol=1e-10)) <= rank
    whole = nn.functional.linear(x, one(layer.weight), layer.bias)
    by_parts = layer(x) + (x @ one.v.T) @ one.u.T
    torch.testing.assert_close(whole, by_parts, rtol=1e-12, atol=1e-12)


def test_tuning_changes_the_layers_with_adapters_by_no_more_than_their_rank_and_nothing_else(small, earlier):
    before = {name: value.clone() for name, value in small.state_dict().items()}
    after = tune(small, gather_series(earlier, NAMES), QUICK).network.state_dict()
    changed = {name for name, value in before.items() if not torch.equal(after[name], value)}
    assert changed == {f"{name}.weight" for name in layer_names(small)}
    assert set(HEADS) < set(layer_names(small))
    assert not any(name.startswith("blocks.0.") for name in layer_names(small))
    for name in changed:
        ranks = torch.linalg.matrix_rank(after[name] - before[name], rtol=1e-4)
        assert 1 <= int(ranks) <= QUICK.rank
    for name, value in small.state_dict().items():
        assert torch.equal(value, before[name])
