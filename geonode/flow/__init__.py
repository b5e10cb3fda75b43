"""From paths to spectra: flow networks and the coupled ODE."""

from geonode.flow.base import FLOWS, Flow, FlowPoint
from geonode.flow.coordinates import linear_warp
from geonode.flow.free import FreeFlow
from geonode.flow.gradient import GradientFlow
from geonode.flow.multi import MultiAnalyteODE
from geonode.flow.ode import CoupledSpectralODE
from geonode.flow.path import FlowPath
from geonode.flow.pretrained import PretrainedFlow
from geonode.flow.solvers import SOLVERS, Solver
from geonode.flow.spectral import SpectralFlow
from geonode.flow.velocity import VelocityFlow

__all__ = [
    "FLOWS",
    "SOLVERS",
    "CoupledSpectralODE",
    "Flow",
    "FlowPath",
    "FlowPoint",
    "FreeFlow",
    "GradientFlow",
    "MultiAnalyteODE",
    "PretrainedFlow",
    "Solver",
    "SpectralFlow",
    "VelocityFlow",
    "linear_warp",
]
