"""A flow pre-trained on simulated calibrations: it reads the standards of one assay and trains nothing.

    from geonode.prior import AssayFlow, load_network

    flow = AssayFlow(load_network(), levels, means)
    flow.predict(concentrations).mean

What it is, how it was trained and what it reaches: docs/prior.md. The names load on first use (PEP 562).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# Public name → the module that defines it.
_PUBLIC = {
    "AssayFlow": "flow",
    "FlowPrediction": "flow",
    "Network": "network",
    "NetworkSize": "network",
    "PretrainSettings": "settings",
    "cpu_settings": "settings",
    "load_network": "stored",
    "model_card": "stored",
    "pretrain": "training",
    "replicate_variance": "flow",
    "save_network": "stored",
    "untrained_network": "stored",
}

if TYPE_CHECKING:
    from geonode.prior.flow import AssayFlow, FlowPrediction, replicate_variance
    from geonode.prior.network import Network, NetworkSize
    from geonode.prior.settings import PretrainSettings, cpu_settings
    from geonode.prior.stored import load_network, model_card, save_network, untrained_network
    from geonode.prior.training import pretrain

__all__ = [
    "AssayFlow",
    "FlowPrediction",
    "Network",
    "NetworkSize",
    "PretrainSettings",
    "cpu_settings",
    "load_network",
    "model_card",
    "pretrain",
    "replicate_variance",
    "save_network",
    "untrained_network",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'geonode.prior' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"geonode.prior.{_PUBLIC[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
