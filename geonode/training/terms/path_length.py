"""The calibrated range keeps the length that it has under the warp alone."""

from __future__ import annotations

from torch import Tensor

from geonode.flow import CoupledSpectralODE
from geonode.flow.path import MetricOnTable
from geonode.training.terms.base import LOSSES, LossTerm
from geonode.training.terms.batch import Batch


@LOSSES.register("path_length")
class PathLength(LossTerm):
    """Mean squared log of the calibrated range's length over its length under the warp alone (2)."""

    of_metric = True

    def __call__(self, ode: CoupledSpectralODE, table: MetricOnTable, batch: Batch) -> Tensor:
        """[M]; see the class."""
        return (0.5 * ode.table.length(table.density)).log().square().mean((1, 2))
