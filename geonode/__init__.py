"""geonode: geodesic-coupled spectral neural ODEs.

From the spectra of a few standards: the spectrum at concentrations nobody measured, the concentration of an unknown,
and where the assay can tell two concentrations apart.

    import geonode

    standards = geonode.load_standards("standards.csv")
    model = geonode.fit(standards)
    mean, std = model.predict_spectra([100.0, 300.0])

The public names load on first use (PEP 562): importing geonode imports nothing heavy and touches no GPU.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from geonode import _bootstrap

_bootstrap.ensure_siblings_importable()

# Public name → the module that defines it.
_PUBLIC = {
    "load_standards": "geonode.data",
    "load_unknowns": "geonode.calibration.unknown_files",
    "SpectralDataset": "geonode.data",
    "simulate_assay": "geonode.data",
    "MetricNetwork": "geonode.metric",
    "WarpMetric": "geonode.metric",
    "christoffel": "geonode.christoffel",
    "exponential_map": "geonode.geodesic",
    "shoot": "geonode.geodesic",
    "arc_length_geodesic": "geonode.geodesic",
    "GeodesicSolution": "geonode.geodesic",
    "GeodesicGP": "geonode.calibration",
    "Calibration": "geonode.calibration",
    "GeodesicCalibrator": "geonode.calibration",
    "LeaveOneConcentrationOut": "geonode.calibration",
    "SpectralFlow": "geonode.flow",
    "CoupledSpectralODE": "geonode.flow",
    "GeodesicConfig": "geonode.config",
    "GeodesicSpectralModule": "geonode.training",
    "SpectralDataModule": "geonode.training",
    "setup_device": "geonode.device",
    "fit": "geonode.model",
    "evaluate": "geonode.validation",
    "load": "geonode.model",
    "adapt": "geonode.adaptation",
}
_SUBMODULES = (
    "adaptation",
    "calibration",
    "config",
    "data",
    "device",
    "errors",
    "flow",
    "geodesic",
    "metric",
    "model",
    "training",
    "validation",
)

# `geonode.christoffel` is a function and the submodule that holds it: see _bootstrap.CallableModule.
_callable_submodules = ("christoffel",)
sys.modules[__name__].__class__ = _bootstrap.PackageModule

if TYPE_CHECKING:
    from geonode.adaptation import adapt
    from geonode.calibration import Calibration, GeodesicCalibrator, GeodesicGP, LeaveOneConcentrationOut
    from geonode.calibration.unknown_files import load_unknowns
    from geonode.christoffel import christoffel
    from geonode.config import GeodesicConfig
    from geonode.data import SpectralDataset, load_standards, simulate_assay
    from geonode.device import setup_device
    from geonode.flow import CoupledSpectralODE, SpectralFlow
    from geonode.geodesic import GeodesicSolution, arc_length_geodesic, exponential_map, shoot
    from geonode.metric import MetricNetwork, WarpMetric
    from geonode.model import fit, load
    from geonode.training import GeodesicSpectralModule, SpectralDataModule
    from geonode.validation import evaluate

    __version__: str

__all__ = [  # noqa: RUF022 - in the order in which a reader meets them
    "load_standards",
    "load_unknowns",
    "SpectralDataset",
    "simulate_assay",
    "MetricNetwork",
    "WarpMetric",
    "christoffel",
    "exponential_map",
    "shoot",
    "arc_length_geodesic",
    "GeodesicSolution",
    "GeodesicGP",
    "Calibration",
    "GeodesicCalibrator",
    "LeaveOneConcentrationOut",
    "SpectralFlow",
    "CoupledSpectralODE",
    "GeodesicConfig",
    "GeodesicSpectralModule",
    "SpectralDataModule",
    "setup_device",
    "fit",
    "evaluate",
    "load",
    "adapt",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = _bootstrap.version()
    elif name in _callable_submodules:
        return importlib.import_module(f"geonode.{name}")
    elif name in _PUBLIC:
        value = getattr(importlib.import_module(_PUBLIC[name]), name)
    elif name in _SUBMODULES:
        return importlib.import_module(f"geonode.{name}")
    else:
        raise AttributeError(f"module 'geonode' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    dunders = (name for name in globals() if name.startswith("__") and name.endswith("__"))
    return sorted({*dunders, *__all__, *_SUBMODULES})
