"""The metric stays a correction of its warp."""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.flow import CoupledSpectralODE
from geonode.flow.path import MetricOnTable
from geonode.training.terms.base import LOSSES, LossTerm
from geonode.training.terms.batch import Batch

_BOUND = 4.6  # |ln g̃| beyond ln 100 is penalised: a metric that far from its warp has stopped being a correction


@LOSSES.register("bounds")
class Bounds(LossTerm):
    """Mean squared excess of |ln g̃| over ln 100."""

    weight = 1e-2
    of_metric = True

    def __call__(self, ode: CoupledSpectralODE, table: MetricOnTable, batch: Batch) -> Tensor:
        """[M]; see the class."""
        return torch.relu(table.log_metric.abs() - _BOUND).square().mean((1, 2))
