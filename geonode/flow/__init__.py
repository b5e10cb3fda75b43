"""From paths to spectra: flow networks and the coupled ODE."""

from geonode.flow.multi import MultiAnalyteODE
from geonode.flow.network import FreeFlow, GradientFlow, SpectralFlow
from geonode.flow.ode import CoupledSpectralODE, linear_warp
from geonode.flow.solvers import SOLVERS

__all__ = [
    "SOLVERS",
    "CoupledSpectralODE",
    "FreeFlow",
    "GradientFlow",
    "MultiAnalyteODE",
    "SpectralFlow",
    "linear_warp",
]
