"""A small network to begin with, and what adapting makes of it on the made-up instrument."""

from __future__ import annotations

import pytest
import torch

from geonode.adaptation import AdaptSettings, adapt
from geonode.prior.network import Network, NetworkSize
from geonode.prior.stored import save_network
from tests.adaptation.instrument import series

NAMES = ("january", "march", "june", "october")
QUICK = AdaptSettings(steps=45, lr=1e-2)


@pytest.fixture(scope="session")
def small() -> Network:
    """At its start: the geodesic process."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Network(NetworkSize(width=16, blocks=2, heads=2)).requires_grad_(False).eval()


@pytest.fixture(scope="session")
def base(small, tmp_path_factory):
    """The file of its weights."""
    return save_network(small, {"what": "a small network at its start"}, tmp_path_factory.mktemp("base"), "small")


@pytest.fixture(scope="session")
def earlier():
    """Four calibrations of the made-up instrument."""
    return [series(seed, width=31) for seed in range(len(NAMES))]


@pytest.fixture(scope="session")
def adapted(base, earlier):
    return adapt(earlier, weights=base, settings=QUICK, names=NAMES)


@pytest.fixture(scope="session")
def weights(adapted, tmp_path_factory):
    """The file of the adapted weights."""
    return adapted.save(tmp_path_factory.mktemp("adapted") / "ours.safetensors")
