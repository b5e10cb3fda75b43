"""The metric's logarithm bends little."""

from __future__ import annotations

from torch import Tensor

from geonode.flow import CoupledSpectralODE
from geonode.flow.path import MetricOnTable
from geonode.training.terms.base import LOSSES, LossTerm
from geonode.training.terms.batch import Batch

_STRIDE = 4  # the second derivative uses every fourth table node: closer ones amplify rounding


@LOSSES.register("smoothness")
class Smoothness(LossTerm):
    """Mean |∂² ln g̃/∂u²|² by divided differences over every fourth table node."""

    weight = 1e-5
    of_metric = True

    def __call__(self, ode: CoupledSpectralODE, table: MetricOnTable, batch: Batch) -> Tensor:
        """[M]; see the class."""
        value, u = table.log_metric[:, ::_STRIDE], ode.table.nodes[:, ::_STRIDE, None].to(table.log_metric)
        slope = value.diff(dim=1) / u.diff(dim=1)
        second = 2.0 * slope.diff(dim=1) / (u[:, 2:] - u[:, :-2])
        share = (u[:, 2:] - u[:, :-2]).abs()
        return ((second.square() * share).sum(1) / share.sum(1)).mean(-1)
