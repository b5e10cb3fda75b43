"""From paths to spectra: flow networks and the coupled ODE."""

from geonode.flow.base import FLOWS
from geonode.flow.multi import MultiAnalyteODE
from geonode.flow.network import FreeFlow, GradientFlow, SpectralFlow, VelocityFlow
from geonode.flow.ode import CoupledSpectralODE, linear_warp
from geonode.flow.solvers import SOLVERS, Solver

__all__ = [
    "FLOWS",
    "SOLVERS",
    "CoupledSpectralODE",
    "FreeFlow",
    "GradientFlow",
    "MultiAnalyteODE",
    "Solver",
    "SpectralFlow",
    "VelocityFlow",
    "linear_warp",
]
