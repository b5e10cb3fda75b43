"""The contract of a solver, and the registry of all solvers."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from geonode.registry import Registry

SOLVERS: Registry[type[Solver]] = Registry("solver", package=__package__)


class Solver:
    """From the coupled state at t = 0 to the state at t = 1. Subclasses give `integrate`.

    What a solver needs and does is said by its attributes: ``closed_form`` solvers take paths and their arc length from
    closed forms and never integrate the state; ``adaptive`` ones choose their steps by looking at values (no CUDA
    graph can record them); ``by_parameters`` ones differentiate with respect to the parameters of the right-hand side
    alone, which then must compute everything from these.
    """

    closed_form: ClassVar[bool] = False
    adaptive: ClassVar[bool] = False
    by_parameters: ClassVar[bool] = False

    def integrate(self, rhs: nn.Module, state: Tensor) -> Tensor:
        """State [N, S] at t = 1.

        Args:
            rhs: called as ``rhs(t, state)``, gives the derivative of the state [N, S].
            state: at t = 0.
        """
        raise NotImplementedError
