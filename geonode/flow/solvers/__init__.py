"""How a spectrum is carried from one end of a path to the other: solver objects, in one registry."""

from geonode.flow.solvers.base import SOLVERS, Solver, Transport
from geonode.flow.solvers.quadrature import Quadrature

from geonode.flow.solvers.integrators import Adjoint, Dopri5, RungeKutta4  # isort: skip
from geonode.flow.solvers.potential import PotentialDifference  # isort: skip

__all__ = [
    "SOLVERS",
    "Adjoint",
    "Dopri5",
    "PotentialDifference",
    "Quadrature",
    "RungeKutta4",
    "Solver",
    "Transport",
]
