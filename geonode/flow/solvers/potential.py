"""Differences of a potential: the default for several analytes, whose geodesics then need not be known."""

from __future__ import annotations

from torch import Tensor

from geonode.flow.solvers.base import SOLVERS, Solver, Transport


@SOLVERS.register("potential")
class PotentialDifference(Solver):
    """H(end) − H(start), for flows that have a potential."""

    closed_form = True
    needs_potential = True

    def transport(self, problem: Transport) -> Tensor:
        """See `Solver.transport`."""
        return problem.source + problem.potential_change()
