"""Small problems that train in a fraction of a second."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from geonode.calibration import GeodesicGP
from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset, simulate_assay
from geonode.training import Problem


@pytest.fixture(scope="session")
def assay() -> SpectralDataset:
    """The simulated assay on 21 wavelengths."""
    return simulate_assay(wavelengths=np.linspace(300.0, 700.0, 21).tolist())


@pytest.fixture(scope="session")
def small() -> GeodesicConfig:
    """A quick configuration in float64, two members, every wavelength."""
    return GeodesicConfig(
        metric_hidden=(8, 8), flow_hidden=12, table_nodes=16, collocation=8, epochs=4, precision="64-true"
    )


@pytest.fixture(scope="session")
def folds(assay) -> list[GeodesicGP]:
    """GPs without one level each: folds of equal size."""
    levels, means = assay.levels, assay.level_means()
    keep = [np.delete(np.arange(6), i) for i in (0, 2, 5)]
    return [GeodesicGP().fit_levels(levels[k], means[k]) for k in keep]


@pytest.fixture
def away(monkeypatch) -> None:
    """Trainings start away from the least-squares optimum, where float32 gradients are rounding alone."""
    fresh = Problem.build_model

    def build(self, *arguments):
        ode = fresh(self, *arguments)
        draws = torch.Generator().manual_seed(7)
        with torch.no_grad():  # each model by the same step, however many there are
            for parameter in [*ode.metric.parameters(), *ode.flow.parameters()]:
                parameter.add_(
                    0.1 * torch.randn(parameter.shape[1:], generator=draws, dtype=torch.float64).to(parameter)
                )
        return ode

    monkeypatch.setattr(Problem, "build_model", build)
