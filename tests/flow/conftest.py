"""A coupled ODE with trained-looking weights: the metric bends, the flow moves."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from geonode.config import GeodesicConfig
from geonode.flow import CoupledSpectralODE
from geonode.metric import WarpMetric

WAVELENGTHS = torch.linspace(400.0, 700.0, 5)


def build(models: int = 1, dtype: torch.dtype = torch.float64, **changes) -> CoupledSpectralODE:
    """An ODE on five wavelengths whose metric varies about threefold."""
    config = GeodesicConfig(metric_hidden=(8, 8), flow_hidden=12, rtol=1e-7, atol=1e-9, ode_steps=40).replace(**changes)
    weights = torch.full((13,), 0.05, dtype=torch.float64)
    weights[6], weights[10] = 1.0, 0.5
    warp = WarpMetric.from_weights(weights, c_max=60.0, trainable=False)
    ode = CoupledSpectralODE(WAVELENGTHS, config, warp, models=models, low=-1.0, high=1.2, seed=3)
    ode = ode.to(dtype)
    ode.table = ode.table.double()
    ode.warp = ode.warp.double()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        if config.metric_network:
            last = ode.metric.network.mlp.weights[-1]
            last.copy_(torch.randn(last.shape, generator=generator, dtype=torch.float64))
        for parameter in ode.flow.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64).to(dtype))
    return ode


@pytest.fixture(scope="session")
def make() -> Callable[..., CoupledSpectralODE]:
    return build


@pytest.fixture
def pairs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """source [B, W], start, end [B] in user units; float64."""
    generator = torch.Generator().manual_seed(1)
    source = torch.rand(6, 5, generator=generator, dtype=torch.float64)
    start = torch.tensor([0.0, 10.0, 60.0, 25.0, 3.0, 40.0], dtype=torch.float64)
    end = torch.tensor([60.0, 12.0, 0.0, 40.0, 70.0, 1.0], dtype=torch.float64)
    return source, start, end
