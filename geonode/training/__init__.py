"""Training: the pure step, the batches, the stacked loop, and Lightning around them.

The names load on first use (PEP 562): the stacked loop (`train`, `predict`) never needs Lightning, which takes seconds.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# Public name → the module that defines it.
_PUBLIC = {
    "BatchSource": "batches",
    "GeodesicSpectralModule": "lightning.module",
    "PairsBatch": "batches",
    "PointsBatch": "batches",
    "Problem": "problem",
    "SafetensorsIO": "lightning.checkpoints",
    "SpectralDataModule": "lightning.datamodule",
    "build_problem": "problem",
    "build_trainer": "lightning.trainer",
    "fit_gp": "problem",
    "fit_node_folds": "ensemble",
    "losses": "loss",
    "predict": "ensemble",
    "train": "ensemble",
    "train_module": "lightning.trainer",
}

if TYPE_CHECKING:
    from geonode.training.batches import BatchSource, PairsBatch, PointsBatch
    from geonode.training.ensemble import fit_node_folds, predict, train
    from geonode.training.lightning.checkpoints import SafetensorsIO
    from geonode.training.lightning.datamodule import SpectralDataModule
    from geonode.training.lightning.module import GeodesicSpectralModule
    from geonode.training.lightning.trainer import build_trainer, train_module
    from geonode.training.loss import losses
    from geonode.training.problem import Problem, build_problem, fit_gp

__all__ = [
    "BatchSource",
    "GeodesicSpectralModule",
    "PairsBatch",
    "PointsBatch",
    "Problem",
    "SafetensorsIO",
    "SpectralDataModule",
    "build_problem",
    "build_trainer",
    "fit_gp",
    "fit_node_folds",
    "losses",
    "predict",
    "train",
    "train_module",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'geonode.training' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"geonode.training.{_PUBLIC[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
