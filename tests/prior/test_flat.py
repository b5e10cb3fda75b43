"""Weights as two vectors: the same network, the same gradients, the same memory; and what a replay gives back."""

from __future__ import annotations

import contextlib
import types
from functools import partial

import pytest
import torch

from geonode.errors import InputError
from geonode.prior.captured import CapturedLoss
from geonode.prior.examples import draw_examples
from geonode.prior.feed import sized
from geonode.prior.flat import FlatNetwork
from geonode.prior.network import Network, NetworkSize
from geonode.prior.settings import cpu_settings
from geonode.prior.training import PretrainModule, loss_of, pretrain
from geonode.training.lightning.checkpoints import SafetensorsIO
from tests.prior.pretrain_run import settings


@pytest.fixture
def plain() -> Network:
    """With no weight at zero: all gradients are alive."""
    torch.manual_seed(0)
    network = Network(NetworkSize(width=24, blocks=1, heads=2))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return network


@pytest.fixture
def batch():
    return draw_examples(sized(settings(), 4), seed=1)


def test_a_flat_network_computes_what_the_network_does_with_its_gradients(plain, batch):
    flat = FlatNetwork(plain)
    one, other = loss_of(settings(), plain, batch)[0], loss_of(settings(), flat, batch)[0]
    torch.testing.assert_close(other, one, rtol=0, atol=1e-6)
    named = dict(plain.named_parameters())
    theirs = dict(zip(named, torch.autograd.grad(one, list(named.values())), strict=True))
    mine = flat.named(torch.autograd.grad(other, [flat.matrices, flat.vectors]))
    assert mine.keys() == theirs.keys()
    assert all(float(gradient.abs().max()) > 0 for gradient in theirs.values())
    for name, gradient in theirs.items():
        torch.testing.assert_close(mine[name], gradient, rtol=1e-4, atol=1e-6, msg=name)


def test_matrices_alone_decay_and_every_weight_begins_aligned(plain):
    flat = FlatNetwork(plain)
    parts = flat.named([flat.matrices, flat.vectors])
    own = flat.matrices.untyped_storage().data_ptr()
    for name, value in plain.named_parameters():
        assert torch.equal(parts[name], value)
        assert parts[name].storage_offset() % 64 == 0
        assert (parts[name].untyped_storage().data_ptr() == own) == (value.ndim > 1)


def test_the_network_of_a_flat_one_shares_its_memory(plain):
    flat = FlatNetwork(Network(plain.size))
    flat.take(plain)
    network = flat.as_network()
    with torch.no_grad():
        flat.matrices.mul_(2.0)
    for (name, value), now in zip(plain.named_parameters(), network.parameters(), strict=True):
        torch.testing.assert_close(now, (2.0 if value.ndim > 1 else 1.0) * value, msg=name)


def test_what_a_replay_leaves_behind_is_the_gradient_times_its_weight(plain, batch, monkeypatch):
    """The device's graph by a stand-in that computes at capture and replays nothing."""
    stand_in = types.SimpleNamespace(wait_stream=lambda _: None, replay=lambda: None)
    for name in ("Stream", "current_stream", "CUDAGraph", "graph_pool_handle"):
        monkeypatch.setattr(torch.cuda, name, lambda: stand_in)
    for name in ("stream", "graph"):
        monkeypatch.setattr(torch.cuda, name, lambda *_, **__: contextlib.nullcontext())
    monkeypatch.setattr(Network, "all_blocks", [])  # nothing is compiled
    flat = FlatNetwork(plain)
    captured = CapturedLoss(partial(loss_of, settings()), flat, [batch])
    loss, summary = captured(batch)
    expected, said = loss_of(settings(), flat, batch)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(summary, said)
    pair = [flat.matrices, flat.vectors]
    for mine, theirs in zip(torch.autograd.grad(3.0 * loss, pair), torch.autograd.grad(expected, pair), strict=True):
        torch.testing.assert_close(mine, 3.0 * theirs, rtol=1e-4, atol=1e-6)


def test_a_checkpoint_that_kept_every_tensor_apart_is_refused_with_the_way_on(tmp_path):
    pretrain(settings(2), tmp_path, accelerator="cpu")
    path = tmp_path / "last.ckpt"
    kept = SafetensorsIO().load_checkpoint(path)
    pair = [kept["state_dict"][f"network.{name}"] for name in ("matrices", "vectors")]
    kept["state_dict"] = {f"network.{k}": v for k, v in PretrainModule(settings()).network.named(pair).items()}
    SafetensorsIO().save_checkpoint(kept, path)
    with pytest.raises(InputError, match=r"in another way.*--start"):
        pretrain(settings(4), tmp_path, accelerator="cpu", resume=path)


def test_weights_of_another_size_are_refused(plain):
    with pytest.raises(InputError, match="The weights are of a network of"):
        PretrainModule(cpu_settings()).begin_with(plain)
