"""The Christoffel symbol is that of the spectral map's pull-back metric."""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.flow import CoupledSpectralODE
from geonode.flow.path import MetricOnTable
from geonode.training.terms.base import LOSSES, LossTerm
from geonode.training.terms.batch import Batch


@LOSSES.register("christoffel")
class PullbackChristoffel(LossTerm):
    """Mean squared difference of Γ̃ to that of the pull-back metric of the spectral map, at the table nodes."""

    of_metric = True

    def __call__(self, ode: CoupledSpectralODE, table: MetricOnTable, batch: Batch) -> Tensor:
        """[M]; see the class."""
        if batch.gamma is None:
            return torch.zeros(ode.models, device=table.density.device)
        _, slope = ode.log_metric_and_slope(ode.table.nodes.to(table.density), batch.index)
        return (0.5 * slope - batch.gamma[..., None]).square().mean((1, 2))
