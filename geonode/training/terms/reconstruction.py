"""The data: what is carried along paths lands on what was measured."""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.flow import CoupledSpectralODE
from geonode.flow.path import MetricOnTable
from geonode.training.terms.base import LOSSES, LossTerm
from geonode.training.terms.batch import Batch, PairsBatch, PointsBatch


@LOSSES.register("reconstruction")
class Reconstruction(LossTerm):
    """Weighted mean squared difference of transported to measured spectra, over all pairs of the batch."""

    weight = 1.0
    ramped = False

    def __call__(self, ode: CoupledSpectralODE, table: MetricOnTable, batch: Batch) -> Tensor:
        """[M]; see the class.

        Raises:
            InputError: points of a flow that has no potential; give it pairs.
        """
        return _points(ode, table, batch) if isinstance(batch, PointsBatch) else _pairs(ode, table, batch)


def _points(ode: CoupledSpectralODE, table: MetricOnTable, batch: PointsBatch) -> Tensor:
    """Mean over all ordered pairs (a, b) of w_a w_b |A_a + P_b − P_a − A_b|², halved.

    With residual r = P − A that is the weighted variance of r over points: no pair is formed.
    """
    reached = ode.potential(batch.phi, table, batch.index, ode.path.interval_nodes)
    residual = reached - batch.target
    share = (batch.weight / batch.weight.sum(1, keepdim=True))[..., None]
    centre = (share * residual).sum(1, keepdim=True)
    return (share * (residual - centre).square()).sum(1).mean(-1)


def _pairs(ode: CoupledSpectralODE, table: MetricOnTable, batch: PairsBatch) -> Tensor:
    """Mean over pairs of w |A_end − measured|²."""
    change = batch.target - batch.source
    fused = ode.misfit(batch.start, batch.end, change, batch.weight, batch.index, table, batch.phi)
    if fused is not None:
        return fused
    predicted = ode.transport(batch.source, batch.start, batch.end, batch.index, table=table)
    error, weight = predicted - batch.target, batch.weight[..., None].expand_as(predicted)
    if ode.path.name == "shooting":  # a geodesic that was not found (NaN) teaches nothing, and counts for nothing
        lost = torch.isnan(predicted.detach())
        error, weight = torch.where(lost, 0.0, error), torch.where(lost, 0.0, weight)
    # where none was found that is no number: a loss of zero would pass for the best there is
    return (error.square() * weight).sum((1, 2)) / weight.sum((1, 2))
