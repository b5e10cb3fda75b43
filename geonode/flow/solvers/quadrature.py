"""Gauss–Legendre quadrature along closed-form paths: the default for one analyte."""

from __future__ import annotations

from torch import Tensor

from geonode.flow.solvers.base import SOLVERS, Solver, Transport


@SOLVERS.register("quadrature")
class Quadrature(Solver):
    """The flow's integral along the closed-form path.

    Args:
        nodes: Gauss–Legendre nodes per pair.
    """

    closed_form = True

    def __init__(self, nodes: int = 16) -> None:
        self.nodes = nodes

    def transport(self, problem: Transport) -> Tensor:
        """See `Solver.transport`."""
        return problem.source + problem.flow.integral(problem.path(), self.nodes)
