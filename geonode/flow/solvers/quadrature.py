"""Gauss–Legendre quadrature along closed-form paths: the default."""

from __future__ import annotations

from geonode.flow.solvers.base import SOLVERS, Solver


@SOLVERS.register("quadrature")
class Quadrature(Solver):
    """The flow's integral along the closed-form path, by ``nodes`` Gauss–Legendre nodes.

    Args:
        nodes: per pair.
    """

    closed_form = True

    def __init__(self, nodes: int = 16) -> None:
        self.nodes = nodes
