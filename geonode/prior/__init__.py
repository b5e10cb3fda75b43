"""A flow pre-trained on simulated calibrations: it reads the standards of one assay and trains nothing.

    from geonode.prior import AssayFlow, load_network

    flow = AssayFlow(load_network(), levels, means)
    flow.predict(concentrations).mean

What it is, how it was trained and what it reaches: docs/prior.md. The names load on first use (PEP 562).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from geonode._bootstrap import lazily

# Public name → the module that defines it.
_PUBLIC = {
    "AssayFlow": ".flow",
    "FlowPrediction": ".flow",
    "Network": ".network",
    "NetworkSize": ".network",
    "PretrainSettings": ".settings",
    "cpu_settings": ".settings",
    "load_network": ".stored",
    "model_card": ".stored",
    "pretrain": ".training",
    "replicate_variance": ".flow",
    "save_network": ".stored",
    "untrained_network": ".stored",
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


__getattr__, __dir__ = lazily(__name__, _PUBLIC)
