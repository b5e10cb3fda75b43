"""The contract of a loss term, and the registry of all terms."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from geonode.flow import CoupledSpectralODE
from geonode.flow.path import MetricOnTable
from geonode.registry import Registry
from geonode.training.terms.batch import Batch

LOSSES: Registry[type[LossTerm]] = Registry("loss term", package=__package__)


class LossTerm:
    """One term of the training loss. Subclasses give `__call__` and their default weight.

    ``weight`` is the term's weight where the settings name none (the reconstruction's, 1, is the unit; 0 leaves the
    term out, and it is then not computed). ``ramped`` terms grow from zero over the first part of the training
    (`LossConfig.ramp`), so that the data speak first. Terms ``of_metric`` look at the metric's own parameters alone.
    """

    weight: ClassVar[float] = 0.0
    ramped: ClassVar[bool] = True
    of_metric: ClassVar[bool] = False

    def __call__(self, ode: CoupledSpectralODE, table: MetricOnTable, batch: Batch) -> Tensor:
        """The term [M] of each model, unweighted, differentiable; a mean over wavelengths.

        Args:
            ode: the stack of M models.
            table: the metric at the table's nodes, for the batch's wavelengths.
            batch: inputs and targets.
        """
        raise NotImplementedError
